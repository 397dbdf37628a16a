"""Approvals: ask the user before a tool call, and act on the answer."""

import asyncio
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from wakeful.clock import MAX_WAIT, Clock
from wakeful.domain import ids
from wakeful.domain.inbox import notices
from wakeful.domain.news import ApprovalChanged, LookAgain
from wakeful.domain.runs.approvals import (
    GRANT,
    MAX_NOTICES,
    AlreadyAnswered,
    Approval,
    NoSuchApproval,
    RunIsOver,
    is_granted,
)
from wakeful.domain.types import ClaimedRun, Run
from wakeful.service.runs.runs import run_again
from wakeful.store.store import Store, Tx


class Approvals:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        store.on(ApprovalChanged, lambda news: _set_all(self._waiting.get(news.run_id, ())))
        store.on(LookAgain, lambda _: _set_all(event for events in self._waiting.values() for event in events))

    async def ask(
        self, run: ClaimedRun, call_id: str, tool: str, args: Mapping[str, Any], *, is_resumed: bool = False
    ) -> Approval:
        """Request approval of a call, and return the request with its status.

        A resumed run gets the request that it made before. A headless run is refused at once, with a notice in the
        inbox, unless the user has approved exactly this call for it.
        """
        now = self._clock.now()
        fresh = Approval(
            run_id=run.id,
            call_id=call_id,
            user_id=run.user_id,
            session_id=run.session_id,
            tool=tool,
            args=dict(args),
            status="refused" if run.is_headless else "pending",
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
            await tx.approvals.save(fresh)
            if run.is_headless and sum(each.status == "refused" for each in known) < MAX_NOTICES:
                agent = await tx.agents.get(run.agent_id, run.user_id)
                await tx.notices.add(notices.needs_approval(run, agent, call_id, tool, now))
            return fresh

        return await self._store.write(work, is_repeatable=True)

    async def wait(self, approval: Approval) -> Approval:
        """Wait for the user's answer, until cancelled."""
        with self._listening(approval.run_id) as news:
            while True:
                news.clear()
                found = await self._store.read(lambda tx: _find(tx, approval.run_id, approval.call_id))
                if found.status != "pending":
                    return found
                await self._clock.wait(self._clock.now() + MAX_WAIT, news)

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

    async def answer(
        self, run_id: str, call_id: str, user_id: str, *, approve: bool, note: str | None = None
    ) -> Run | None:
        """Answer a run that waits. A headless run does not wait: approving starts and returns a new run, which may make
        this call with these arguments once.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> Run | None:
            run = await tx.runs.get(run_id, user_id)
            asked = await _find(tx, run_id, call_id)
            if asked.status not in ("pending", "refused"):
                raise AlreadyAnswered(asked)
            if asked.status == "pending" and run.status not in ("queued", "running"):
                raise RunIsOver(run)
            answered = replace(asked, status="approved" if approve else "denied", note=note, answered_at=now)
            if asked.status == "pending" or not approve:
                await tx.approvals.save(answered)
                return None
            # Used up by the new run: the old one, if it is continued, may not make the call as well.
            await tx.approvals.save(replace(answered, status="used"))
            return await self._run_again(tx, run, answered)

        return await self._store.write(work)

    async def _run_again(self, tx: Tx, run: Run, answered: Approval) -> Run:
        now = self._clock.now()
        again = await run_again(tx, run, now)
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


def _set_all(events: Iterable[asyncio.Event]) -> None:
    for event in events:
        event.set()


async def _find(tx: Tx, run_id: str, call_id: str) -> Approval:
    for each in await tx.approvals.of_run(run_id):
        if each.call_id == call_id:
            return each
    raise NoSuchApproval(run_id, call_id)
