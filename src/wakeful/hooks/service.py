"""Make, change, rotate, test and delete incoming hooks, and read their deliveries."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from wakeful.core import device_key, ids
from wakeful.core.errors import Invalid, WakefulError
from wakeful.core.records import FOLDER, Hook, Payload, ReceivedDelivery, Scheme
from wakeful.core.types import ClaimedRun
from wakeful.database.files import AgentFiles
from wakeful.homes.workspace import Workspace, WorkspaceLimits
from wakeful.hooks import rules, schemes
from wakeful.hooks.receiving import Received, Receiving
from wakeful.hooks.rules import HookData
from wakeful.runs.claims import cancel_wake
from wakeful.store.base import Base
from wakeful.store.store import Tx
from wakeful.timing import session_config
from wakeful.toolbox.registry import ToolCatalog

_TEST_EVENT = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """A hook with its secret, which is shown this once; None: a person has set it, so they know it."""

    hook: Hook
    secret: str | None


class Hooks:
    """Manages incoming hooks. Their secrets are shown once, when they are made."""

    def __init__(
        self,
        base: Base,
        receiving: Receiving,
        catalog: ToolCatalog,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self._device_key = base.device_key
        self._receiving = receiving
        self._catalog = catalog

    async def of_user(self, user_id: str) -> list[Hook]:
        return await self._store.read(lambda tx: tx.hooks.of_user(user_id))

    async def get(self, hook_id: str, user_id: str) -> Hook:
        return await self._store.read(lambda tx: tx.hooks.read(hook_id, user_id))

    async def add(
        self,
        user_id: str,
        agent_id: str,
        scheme: Scheme,
        fields: Mapping[str, Any],
        *,
        secret: str | None = None,
        confirm_session: bool = False,
    ) -> Revealed:
        """Make a hook, with a secret of its own or one that the sender has made."""
        now = self._clock.now()
        hook_id = ids.new_id(now)
        given = None if secret is None else schemes.check_secret(scheme, secret)
        made = given or schemes.make_secret(scheme)
        values: dict[str, Any] = {"session_id": None, "instructions": ""} | dict(fields)
        hook = Hook(
            **values,
            id=hook_id,
            user_id=user_id,
            agent_id=agent_id,
            scheme=scheme,
            secret=device_key.encrypt_secret(self._device_key, made, hook_id),
            created_at=now,
            updated_at=now,
        )
        rules.check(hook)
        _check_confirmed(hook, None, confirm_session)
        await self._check_tools(hook)

        async def work(tx: Tx) -> None:
            await tx.agents.get(agent_id, user_id)
            await _check_session(tx, hook)
            if len(await tx.hooks.of_user(user_id)) >= rules.MAX_HOOKS:
                raise rules.TooManyHooks
            if not await tx.hooks.add(hook):
                raise rules.HookNameTaken(hook.name)

        await self._store.write(work)
        return Revealed(hook=hook, secret=None if given else made)

    async def change(
        self, hook_id: str, user_id: str, changes: Mapping[str, Any], *, confirm_session: bool = False
    ) -> Hook:
        """Change what a hook does, or switch it off or on."""
        now = self._clock.now()
        before = await self.get(hook_id, user_id)
        if "tools" in changes:
            await self._check_tools(replace(before, **changes))

        async def work(tx: Tx) -> Hook:
            before = await tx.hooks.get(hook_id, user_id)
            after = replace(before, **changes, updated_at=now)
            rules.check(after)
            _check_confirmed(after, before, confirm_session)
            if after.session_id != before.session_id:
                await _check_session(tx, after)
            if any(each.name == after.name and each.id != hook_id for each in await tx.hooks.of_user(user_id)):
                raise rules.HookNameTaken(after.name)
            await tx.hooks.save(after)
            return after

        return await self._store.write(work)

    async def rotate(self, hook_id: str, user_id: str, secret: str | None = None) -> Revealed:
        """Replace the secret. The one before is accepted for another day, so that no delivery is lost meanwhile."""
        now = self._clock.now()

        async def work(tx: Tx) -> Revealed:
            before = await tx.hooks.get(hook_id, user_id)
            given = None if secret is None else schemes.check_secret(before.scheme, secret)
            made = given or schemes.make_secret(before.scheme)
            after = replace(
                before,
                secret=device_key.encrypt_secret(self._device_key, made, hook_id),
                old_secret=before.secret,
                old_until=now + rules.OLD_SECRET,
                updated_at=now,
            )
            await tx.hooks.save(after)
            return Revealed(hook=after, secret=None if given else made)

        return await self._store.write(work)

    async def delete(self, hook_id: str, user_id: str) -> None:
        """Delete a hook with its deliveries, and cancel its runs that have not begun."""
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.hooks.get(hook_id, user_id)
            for wake_id in await tx.hooks.live_wakes(hook_id):
                wake = await tx.wakes.get(wake_id)
                if wake.is_live:  # else another node has started it since
                    await cancel_wake(tx, wake, "hook_deleted", now, run_reason="hook_deleted")
            await tx.hooks.delete(hook_id, user_id)

        await self._store.write(work)

    async def deliveries(
        self, hook_id: str, user_id: str, *, before: tuple[datetime, str] | None = None, most: int = 50
    ) -> list[ReceivedDelivery]:
        """Return a page of a hook's deliveries, the latest first."""

        async def work(tx: Tx) -> list[ReceivedDelivery]:
            await tx.hooks.read(hook_id, user_id)
            return await tx.hooks.deliveries(hook_id, before, most)

        return await self._store.read(work)

    async def delivery(self, hook_id: str, user_id: str, delivery_id: str) -> Payload:
        """Return a delivery with its body."""

        async def work(tx: Tx) -> Payload:
            await tx.hooks.read(hook_id, user_id)
            return await tx.hooks.payload(hook_id, delivery_id)

        return await self._store.read(work)

    async def test(self, hook_id: str, user_id: str) -> Received:
        """Send a signed test delivery to a hook, past its filter of events; it starts a run like any other."""
        now = self._clock.now()
        hook = await self.get(hook_id, user_id)
        secret = device_key.decrypt_secret(self._device_key, hook.secret, hook.id)
        if secret is None:
            raise rules.SecretUnreadable
        test_id = f"test-{ids.new_id(now)}"
        body = orjson.dumps({"id": test_id, "type": _TEST_EVENT, "hook": hook.name, "sent_at": now.isoformat()})
        headers = schemes.sign(hook.scheme, secret, test_id, _TEST_EVENT, now, body)
        return await self._receiving.receive(hook_id, headers, body, is_test=True)

    async def _check_tools(self, hook: Hook) -> None:
        """Refuse names of tools that the agent does not have."""
        if hook.tools is None:
            return
        agent = await self._store.read(lambda tx: tx.agents.get(hook.agent_id, hook.user_id))
        # The tools of an MCP server are known once it has started.
        asked = {"tool_ids": list(hook.tools)}
        problems = await self._catalog.prepare(agent) if session_config.names_tool_of(agent, asked) else ()
        known = self._catalog.names_for(agent)
        for name in hook.tools:
            if name not in known:
                raise Invalid(
                    f"The agent {agent.name!r} has no tool {name[:64]!r}. Its tools: {', '.join(sorted(known))}.",
                    field="tools",
                    hint=" ".join(problems) or None,
                )


def _check_confirmed(after: Hook, before: Hook | None, is_confirmed: bool) -> None:
    is_new = after.session_id is not None and (before is None or before.session_id != after.session_id)
    if is_new and not is_confirmed:
        raise rules.SessionUnconfirmed


async def _check_session(tx: Tx, hook: Hook) -> None:
    """Refuse a session that is not there, or is of another agent."""
    if hook.session_id is None:
        return
    session = await tx.sessions.get(hook.session_id, hook.user_id)
    if session.agent_id != hook.agent_id:
        raise Invalid(
            f"The session {hook.session_id!r} is of another agent. Name one of the hook's agent, or leave it out.",
            field="session_id",
        )


# ── Deliveries for the agent ──────────────────────────────────────────────────────────────────────────────────────────


# As for the tools that write files. A body is shorter than any of them.
_LIMITS = WorkspaceLimits(bytes=1_000_000_000, file_bytes=10_000_000, files=10_000)


class HookPayloads:
    """Reads the deliveries that a run of a hook is about, and writes long ones to files in the agent's workspace."""

    def __init__(self, base: Base, agent_files: AgentFiles) -> None:
        self._base = base
        self._store = base.store
        self._agent_files = agent_files

    async def of_run(self, run: ClaimedRun) -> HookData | None:
        """Return the deliveries of a run, and write the long ones to files; None if it has none.

        Call it after the agent's files were brought to this node. Doing it again writes the same files.
        """
        wake_id = run.wake_id
        if wake_id is None:
            return None
        found = await self._store.read(lambda tx: tx.hooks.of_wake(wake_id))
        if found is None:
            return None
        name, payloads = found
        long = rules.find_long(payloads)
        unsaved = (
            await asyncio.to_thread(_write, Workspace(self._base.workspace_of(run.agent_id)), long) if long else {}
        )
        if long:
            await self._agent_files.save_files(run.agent_id, run.id)
        return HookData(hook=name, payloads=payloads, unsaved=unsaved)


def _write(workspace: Workspace, payloads: Sequence[Payload]) -> dict[str, str]:
    """Write bodies to files in place of the oldest, and return why not, by path, where the workspace is full."""
    unsaved: dict[str, str] = {}
    try:
        there = [entry.path for entry in workspace.entries(FOLDER) if entry.kind == "file"]
    except WakefulError:  # there is none yet; what else is wrong with it, the writing below reports
        there = []
    for path in rules.find_old(there, [each.path for each in payloads]):
        workspace.unlink(path)
    for each in payloads:
        try:
            workspace.write(each.path, each.body or b"", append=False, limits=_LIMITS)
        except WakefulError as error:
            unsaved[each.path] = error.message
    return unsaved
