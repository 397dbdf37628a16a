"""Holds runs whose data directory no running node has, with one notice each, until such a node starts."""

from collections.abc import Sequence
from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain.agents.directories import MEMORY_ELSEWHERE, AwayDirectory
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.events import ErrorFrame
from wakeful.domain.inbox import notices
from wakeful.domain.types import Decision, Run
from wakeful.service.agents.directories import Directories
from wakeful.store.store import Store, Tx

_TOO_LONG = (
    "The agent's database and files are in a data directory that no running node has. "
    "Start the node with that directory, then continue this run."
)


class MemoryHolds:
    def __init__(self, store: Store, clock: Clock, rules: Rules, directories: Directories) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._directories = directories
        self.away: Sequence[AwayDirectory] = ()  # found by the last sweep

    async def sweep(self) -> None:
        """Hold the runs whose directory has had no node for a lease; interrupt a user's run after ten minutes."""
        now = self._clock.now()
        since, own = self._directories.alive_since(now), self._directories.id
        self.away = await self._store.read(lambda tx: tx.directories.away(since, own), is_single=True)
        if not self.away:
            return

        async def work(tx: Tx) -> None:
            for run in await tx.directories.hold_runs(since, own):
                await self._note_hold(tx, run, now)
            too_long_ago = now - self._rules.resume_chat_within
            for run in await tx.directories.interrupt_messages(too_long_ago, own, _TOO_LONG, now):
                if run.session_id is not None:
                    tx.say(run.session_id, [ErrorFrame(message=_TOO_LONG, code=MEMORY_ELSEWHERE)], now, run_id=run.id)

        await self._store.write(work)

    async def _note_hold(self, tx: Tx, run: Run, now: datetime) -> None:
        directory = await self._directories.of_agent(tx, run.agent_id)
        assert directory is not None
        await tx.notices.add(notices.memory_elsewhere(run, directory, now))
        if run.wake_id is not None:
            held = Decision(
                wake_id=run.wake_id,
                nominal_at=run.nominal_at,
                at=now,
                code=MEMORY_ELSEWHERE,
                run_id=run.id,
                detail={"directory": directory.id, "place": directory.place},
            )
            await tx.notices.record([held])
