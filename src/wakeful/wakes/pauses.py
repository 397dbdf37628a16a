"""Pauses: wakes wait and keep their place; running runs and chat continue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.types import Pause, Run, Wake
from wakeful.runs.service import RunService
from wakeful.store.store import Store, Tx
from wakeful.timing import bounds
from wakeful.timing.bounds import PausePreset

_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivePause:
    """A pause, and how many scheduled runs it holds."""

    pause: Pause
    held: int


class PauseService:
    """Pauses and resumes one agent, or all agents of a user."""

    def __init__(self, store: Store, runs: RunService, clock: Clock) -> None:
        self._store = store
        self._runs = runs
        self._clock = clock

    async def pause(
        self,
        user_id: str,
        agent_id: str | None,
        until: datetime | None,
        reason: str = "",
        *,
        preset: PausePreset | None = None,
        length: timedelta | None = None,
        stop: bool = False,
    ) -> ActivePause:
        """Pause until an instant, for a length, or until resumed. With `stop`, also stop running runs, chat included.

        A new pause replaces the previous one.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> ActivePause:
            pause = Pause(
                id=ids.new_id(now),
                user_id=user_id,
                agent_id=agent_id,
                started_at=now,
                until=bounds.end_of(until, preset, now, await _zone(tx, user_id, agent_id), length),
                reason=reason,
            )
            await tx.agents.end_pauses(user_id, agent_id, now)
            await tx.agents.add_pause(pause)
            # This pause may be shorter than an earlier one, so decide again about the wakes that it held.
            await tx.wakes.release_held(user_id, agent_id, now)
            return await _count(tx, pause)

        pause = await self._store.write(work)
        if stop:  # after the commit: before it, another run could begin
            await self._stop_live(user_id, agent_id)
        return pause

    async def resume(self, user_id: str, agent_id: str | None) -> bool:
        """End the pause. Wakes that came due meanwhile do not count as late. False if there was none."""
        now = self._clock.now()

        async def work(tx: Tx) -> bool:
            if agent_id is not None:
                await tx.agents.get(agent_id, user_id)
            ended = await tx.agents.end_pauses(user_id, agent_id, now)
            await tx.wakes.release_held(user_id, agent_id, now)
            return ended > 0

        return await self._store.write(work)

    async def active(self, user_id: str, agent_id: str | None) -> list[ActivePause]:
        """Return the active pauses of an agent, including those of all agents; without an agent, only the latter."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[ActivePause]:
            if agent_id is not None:
                await tx.agents.get(agent_id, user_id)
            return [await _count(tx, pause) for pause in await tx.agents.pauses_of(user_id, agent_id, now)]

        return await self._store.read(work)

    async def all_active(self, user_id: str) -> list[ActivePause]:
        """Return the active pauses of all agents and of single ones."""
        now = self._clock.now()

        async def work(tx: Tx) -> list[ActivePause]:
            return [await _count(tx, pause) for pause in await tx.agents.all_pauses_of(user_id, now)]

        return await self._store.read(work)

    async def holding(self, wakes: Sequence[Wake]) -> frozenset[str]:
        """Return the ids of those wakes of one user that a pause holds at their planned time."""
        if not wakes:
            return frozenset()
        now = self._clock.now()
        active = await self._store.read(lambda tx: tx.agents.all_pauses_of(wakes[0].user_id, now))
        return frozenset(wake.id for wake in wakes if bounds.is_held(wake, active))

    async def _stop_live(self, user_id: str, agent_id: str | None) -> None:
        async def work(tx: Tx) -> list[Run]:
            return [
                run
                for status in ("queued", "running")
                for run in await tx.runs.of_user(user_id, agent_id=agent_id, status=status, most=_PAGE)
            ]

        for run in await self._store.read(work):
            if not run.is_headless or run.started_at is not None:  # a wake that has not begun keeps its place
                await self._runs.stop(run.id, user_id)


async def _count(tx: Tx, pause: Pause) -> ActivePause:
    held = await tx.wakes.count_live(pause.user_id, pause.agent_id, pause.until)
    return ActivePause(pause=pause, held=held)


async def _zone(tx: Tx, user_id: str, agent_id: str | None) -> str:
    """Return the zone that decides when tomorrow begins: the agent's or, for all agents, the user's."""
    if agent_id is not None:
        return (await tx.agents.get(agent_id, user_id)).zone
    if known := (await tx.accounts.user(user_id)).timezone:
        return known
    agents = await tx.agents.of_user(user_id)
    return agents[0].zone if agents else "UTC"
