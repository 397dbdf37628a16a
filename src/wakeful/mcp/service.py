"""What the store keeps about MCP servers: runs that wait for one, which are unconfined, and changes of their tools."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b

from wakeful.core.clock import Clock
from wakeful.core.events import ErrorFrame
from wakeful.core.records import MCP_ELSEWHERE
from wakeful.core.texts import quote_line
from wakeful.core.types import Decision, Rules, Run
from wakeful.homes.directories import Directories
from wakeful.mcp.rules import McpServer, foreign_names
from wakeful.notices.texts import listed, make_notice
from wakeful.store.store import Store, Tx

_TOO_LONG = (
    "The agent uses an MCP server that no running node has in its settings. Add it to a node's settings, or turn it "
    "off for the agent, then continue this run."
)


class McpHolds:
    """Holds runs whose MCP servers no running node has, with one notice each, until such a node starts."""

    def __init__(self, store: Store, clock: Clock, rules: Rules, directories: Directories) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._directories = directories
        self._may_be_held = True  # runs, by this node or by one before it

    async def sweep(self) -> None:
        """Hold or release queued runs by the MCP servers of the running nodes; end a user's run after ten minutes."""
        now = self._clock.now()
        since = self._directories.alive_since(now)
        is_missing = await self._store.read(lambda tx: tx.nodes.is_mcp_missing(since), is_single=True)
        if not is_missing and not self._may_be_held:
            return  # all that is queued would be read for nothing

        async def work(tx: Tx) -> None:
            await tx.nodes.release_for_mcp(since)
            for run in await tx.nodes.hold_for_mcp(since):
                await _note_hold(tx, run, now)
            for run in await tx.nodes.interrupt_for_mcp(now - self._rules.resume_chat_within, _TOO_LONG, now):
                if run.session_id is not None:
                    tx.say(run.session_id, [ErrorFrame(message=_TOO_LONG, code=MCP_ELSEWHERE)], now, run_id=run.id)

        await self._store.write(work)
        self._may_be_held = is_missing


async def _note_hold(tx: Tx, run: Run, now: datetime) -> None:
    agent = await tx.agents.get(run.agent_id, run.user_id)
    names = ", ".join(agent.mcp_servers)
    await tx.notices.add(make_notice(MCP_ELSEWHERE, run, now, agent=agent, names=names))
    if run.wake_id is not None:
        held = Decision(
            wake_id=run.wake_id,
            nominal_at=run.nominal_at,
            at=now,
            code=MCP_ELSEWHERE,
            run_id=run.id,
            detail={"mcp_servers": list(agent.mcp_servers)},
        )
        await tx.notices.record([held])


async def settle_unconfined(store: Store, servers: Mapping[str, McpServer]) -> frozenset[str]:
    """Return the names of servers that run unconfined although their entry does not say so.

    The first start after the upgrade records every program whose entry does not say whether it is confined. A name is
    removed for good once its entry says so; a confined program never becomes unconfined again by itself.
    """

    async def work(tx: Tx) -> frozenset[str]:
        programs = {name: server for name, server in servers.items() if server.kind == "stdio"}
        if await tx.unconfined_mcp_servers.claim_upgrade():
            for name, server in programs.items():
                if server.is_limited is None:
                    await tx.unconfined_mcp_servers.add(name)
        for name in await tx.unconfined_mcp_servers.names():
            if name in programs and programs[name].is_limited is not None:
                await tx.unconfined_mcp_servers.drop(name)
        return await tx.unconfined_mcp_servers.names()

    return await store.write(work)


async def settle_tool_names(store: Store, clock: Clock, toolset_of: Mapping[str, str | None]) -> None:
    """Drop stored names that 0.2 used for a tool of an MCP server, and that mean another tool now.

    The first start after the upgrade does so. `toolset_of` are the toolsets of the built-in tools.
    """
    now = clock.now()

    async def work(tx: Tx) -> None:
        if not await tx.mcp_tools.claim_upgrade():
            return
        for agent_id in await tx.mcp_tools.agents_with_servers():
            agent = await tx.agents.of_anyone(agent_id)
            found = {tool: await tx.mcp_tools.drop_name(agent_id, tool) for tool in foreign_names(agent, toolset_of)}
            dropped = sorted(tool for tool, places in found.items() if places)
            if dropped:
                places = sorted({place for places in found.values() for place in places})
                await tx.notices.add(make_notice("tools_dropped", agent, now, names=dropped, places=places))

    await store.write(work, is_long=True)


async def note_tools(store: Store, clock: Clock, server: str, tools: Mapping[str, str]) -> None:
    """Save the fingerprints of a server's tools, and notify owners if they differ from those of its last start."""
    now = clock.now()

    async def work(tx: Tx) -> None:
        before = await tx.mcp_tools.of(server)
        if before == tools:
            return
        await tx.mcp_tools.save(server, tools)
        if before is None:
            return
        changes = _describe_changes(before, tools)
        digest = blake2b(repr(sorted(tools.items())).encode(errors="replace"), digest_size=8).hexdigest()
        for owner in await tx.accounts.hold_owners():
            notice = make_notice("mcp_tools_changed", owner, now, server=server, changes=changes, digest=digest)
            await tx.notices.add(notice)

    await store.write(work, is_repeatable=True)


def _describe_changes(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return which tools are new, gone and changed, given a fingerprint of each."""
    changes = {
        "New": after.keys() - before.keys(),
        "Gone": before.keys() - after.keys(),
        "Changed": {name for name in before.keys() & after.keys() if before[name] != after[name]},
    }
    return " ".join(
        f"{what}: {listed([quote_line(name, 64) for name in sorted(names)])}."
        for what, names in changes.items()
        if names
    )
