"""Approvals: ask the user before a tool call, and act on the answer."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.core import ids
from wakeful.core.call_words import describe_call
from wakeful.core.clock import MAX_WAIT, Clock
from wakeful.core.events import ApprovalChanged, LookAgain
from wakeful.core.labels import BRAKED, Via
from wakeful.core.records import Allowance, Approval
from wakeful.core.types import Agent, ClaimedRun, Run
from wakeful.notices.texts import NEEDS_APPROVAL, make_notice
from wakeful.outgoing.rules import approval_message
from wakeful.runs.rules import (
    GRANT,
    MAX_NOTICES,
    AlreadyAnswered,
    AlwaysNeedsApproval,
    NoSuchApproval,
    RunIsOver,
    covers,
    is_granted,
)
from wakeful.runs.service import run_again
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

_MAX_WAITING = 100  # listed at once
_RELOAD = timedelta(seconds=20)  # a page that is loaded again takes less


class Approvals:
    """Asks for approval of tool calls. A question of a run with a person also goes to that person's browsers."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        store.on(ApprovalChanged, lambda news: _set_all(self._waiting.get(news.run_id, ())))
        store.on(LookAgain, lambda _: _set_all(event for events in self._waiting.values() for event in events))

    async def ask(
        self,
        run: ClaimedRun,
        agent: Agent,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        server: str | None = None,
        is_resumed: bool = False,
        request: str | None = None,
    ) -> Approval:
        """Request approval of a call, of a tool of an MCP server if one is named; return the request with its status.

        `request` says what the call wants, if that depends on more than its arguments; then it is asked about each
        time, also if the tool is allowed in the session.

        A resumed run gets the request that it made before. A tool that is allowed in the session is approved at once.
        A headless run is refused at once, with a notice in the inbox, unless the user has approved exactly this call
        for it. A run that a program started waits only while its user has the page open.
        """
        now = self._clock.now()
        fresh = Approval(
            run_id=run.id,
            call_id=call_id,
            user_id=run.user_id,
            session_id=run.session_id,
            agent_id=agent.id,
            tool=tool,
            args=dict(args),
            status="refused" if run.is_headless else "pending",
            sentence=describe_call(agent.name, tool, args, server, request),
            asked_at=now,
        )

        async def work(tx: Tx) -> Approval:
            await tx.runs.get(run.id)  # locks the row: two calls at once would both use the same grant
            known = await tx.approvals.of_run(run.id)
            for each in known:
                # With our own time, it is from a first attempt whose answer was lost.
                if each.call_id == call_id and (is_resumed or each.asked_at == now):
                    return each
            grant = next((each for each in known if is_granted(each, tool, args)), None)
            if grant is not None:
                await tx.approvals.save(replace(grant, status="used"))
                approved = replace(fresh, status="approved", note=grant.note, answered_at=grant.answered_at)
                await tx.approvals.save(approved)
                return approved
            if request is None and await tx.approvals.is_allowed(run.session_id, agent.id, tool):
                approved = replace(fresh, status="approved", answered_at=now)
                await tx.approvals.save(approved)
                return approved
            if run.door in BRAKED and not run.is_headless and not await tx.presence.has_page(run.user_id, now):
                refused = replace(fresh, status="refused")
                await tx.approvals.save(refused)
                return refused
            await tx.approvals.save(fresh)
            if run.is_headless and sum(each.status == "refused" for each in known) < MAX_NOTICES:
                notice = make_notice(NEEDS_APPROVAL, run, now, agent=agent, call_id=call_id, tool=tool)
                await tx.notices.add(notice)
            if not run.is_headless:
                shown = approval_message(fresh, agent)
                await tx.outgoing.tell(run.user_id, "approval", shown["id"], shown, now, kinds=["push"])
            return fresh

        return await self._store.write(work, is_repeatable=True)

    async def wait(self, approval: Approval, run: ClaimedRun) -> Approval:
        """Wait for the user's answer, until cancelled; for a program's run, only while the user has the page open."""
        page_seen_at = self._clock.now()
        with self._listening(approval.run_id) as news:
            while True:
                news.clear()
                found = await self._store.read(lambda tx: _find(tx, approval.run_id, approval.call_id))
                if found.status != "pending":
                    return found
                if run.door not in BRAKED or await self._has_page(run.user_id):
                    page_seen_at = self._clock.now()
                elif self._clock.now() - page_seen_at > _RELOAD:
                    return await self._give_up(approval)
                await self._clock.wait(self._clock.now() + MAX_WAIT, news)

    async def _has_page(self, user_id: str) -> bool:
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.presence.has_page(user_id, now), is_single=True)

    async def _give_up(self, approval: Approval) -> Approval:
        """Refuse a call that nobody can answer any more, unless someone did at the last moment."""

        async def work(tx: Tx) -> Approval:
            await tx.runs.get(approval.run_id)
            found = await _find(tx, approval.run_id, approval.call_id)
            if found.status == "pending":
                found = replace(found, status="refused")
                await tx.approvals.save(found)
            return found

        return await self._store.write(work, is_repeatable=True)

    async def use(self, approval: Approval) -> None:
        """Record that the call is about to be made: after a crash from here on, its outcome is unknown."""
        used = replace(approval, status="used")
        await self._store.write(lambda tx: tx.approvals.save(used), is_repeatable=True)

    async def of_run(self, run_id: str, user_id: str) -> list[Approval]:
        """Return a run's requests for approval, the oldest first."""

        async def work(tx: Tx) -> list[Approval]:
            await tx.runs.read(run_id, user_id)
            return [each for each in await tx.approvals.of_run(run_id) if not each.call_id.startswith(GRANT)]

        return await self._store.read(work)

    async def waiting(self, user_id: str) -> list[Approval]:
        """Return the calls of a user's runs that wait for an answer, the oldest first."""
        return await self._store.read(lambda tx: tx.approvals.waiting(user_id, _MAX_WAITING))

    async def answer(
        self,
        run_id: str,
        call_id: str,
        user_id: str,
        *,
        approve: bool,
        note: str | None = None,
        always: bool = False,
        via: Via | None = None,
    ) -> Run | None:
        """Answer a run that waits. A headless run does not wait: approving starts and returns a new run, which may make
        this call with these arguments once. With `always` the agent may call the tool in this session from now on, and
        its other calls of the tool that wait there, such as those of parallel subagents, are approved too.
        """
        if always and not approve:
            raise AlwaysNeedsApproval
        now = self._clock.now()

        async def work(tx: Tx) -> Run | None:
            run = await tx.runs.get(run_id, user_id)
            asked = await _find(tx, run_id, call_id)
            if asked.status not in ("pending", "refused"):
                raise AlreadyAnswered(asked)
            if asked.status == "pending" and run.status not in ("queued", "running"):
                raise RunIsOver(run)
            answered = replace(asked, status="approved" if approve else "denied", note=note, answered_at=now)
            if always:
                await self._allow(tx, asked, asked.agent_id or run.agent_id, now)
            if asked.status == "pending" or not approve:
                await tx.approvals.save(answered)
                return None
            # Used up by the new run: the old one, if it is continued, may not make the call as well.
            await tx.approvals.save(replace(answered, status="used"))
            return await self._run_again(tx, run, answered, via)

        return await self._store.write(work)

    async def allowances(self, agent_id: str, user_id: str) -> list[tuple[Allowance, str]]:
        """Return the tools that an agent may call in some session without asking, with the session's title."""

        async def work(tx: Tx) -> list[tuple[Allowance, str]]:
            await tx.agents.get(agent_id, user_id)
            found = await tx.approvals.allowances(agent_id, user_id)
            return [(each, (await tx.sessions.get(each.session_id, user_id)).title) for each in found]

        return await self._store.read(work)

    async def revoke(self, allowance_id: str, agent_id: str, user_id: str) -> None:
        """Ask again before each call of a tool that was allowed in a session."""
        gone = await self._store.write(lambda tx: tx.approvals.revoke(allowance_id, agent_id, user_id))
        log.info("allowed tool revoked", extra=_fields(gone))

    async def _allow(self, tx: Tx, asked: Approval, agent_id: str, now: datetime) -> None:
        allowance = Allowance(
            id=ids.new_id(now),
            user_id=asked.user_id,
            agent_id=agent_id,
            session_id=asked.session_id,
            tool=asked.tool,
            created_at=now,
        )
        if await tx.approvals.allow(allowance):
            log.info("tool allowed in a session", extra=_fields(allowance))
        # A session has one run at a time, so all calls that wait in it are this run's. Its row is locked: a call that
        # is asked about at the same moment is either found here or finds the allowance.
        for other in await tx.approvals.of_run(asked.run_id):
            if covers(allowance, other) and other.call_id != asked.call_id:
                await tx.approvals.save(replace(other, status="approved", answered_at=now))

    async def _run_again(self, tx: Tx, run: Run, answered: Approval, via: Via | None) -> Run:
        now = self._clock.now()
        again = await run_again(tx, run, now, via)
        assert again.session_id is not None
        granted = replace(answered, run_id=again.id, session_id=again.session_id, call_id=f"{GRANT}{ids.new_id(now)}")
        await tx.approvals.save(granted)
        return again

    @contextmanager
    def _listening(self, run_id: str) -> Generator[asyncio.Event]:
        news = asyncio.Event()
        self._waiting[run_id].add(news)
        try:
            yield news
        finally:
            self._waiting[run_id].discard(news)
            if not self._waiting[run_id]:
                del self._waiting[run_id]


def _fields(allowance: Allowance) -> dict[str, str]:
    """Return the fields of a log line."""
    return {name: getattr(allowance, name) for name in ("user_id", "agent_id", "session_id", "tool")}


def _set_all(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        event.set()


async def _find(tx: Tx, run_id: str, call_id: str) -> Approval:
    for each in await tx.approvals.of_run(run_id):
        if each.call_id == call_id:
            return each
    raise NoSuchApproval(run_id, call_id)
