"""Holds runs whose MCP servers no running node has, with one notice each, until such a node starts."""

from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.events import ErrorFrame
from wakeful.domain.inbox import notices
from wakeful.domain.nodes import MCP_ELSEWHERE
from wakeful.domain.types import Decision, Run
from wakeful.service.agents.directories import Directories
from wakeful.store.store import Store, Tx

_TOO_LONG = (
    "The agent uses an MCP server that no running node has in its settings. Add it to a node's settings, or turn it "
    "off for the agent, then continue this run."
)


class McpHolds:
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
    await tx.notices.add(notices.mcp_elsewhere(run, agent, now))
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
