"""Pausing: wakes wait and keep their place; live runs and chat go on."""

from datetime import datetime

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.errors import Invalid
from wakeful.domain.types import FOREVER, Pause
from wakeful.store.store import Store, Tx


class PauseService:
    """Pause and resume one agent, or everything a user owns."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def pause(self, user_id: str, agent_id: str | None, until: datetime | None, reason: str = "") -> Pause:
        """Pause until an instant, or until someone resumes. A new pause takes the place of the one before."""
        now = self._clock.now()
        if until is not None and until <= now:
            raise Invalid(f"A pause until {until.isoformat()} is over already. Give a later time.", field="until")
        pause = Pause(
            id=ids.new_id(now),
            user_id=user_id,
            agent_id=agent_id,
            started_at=now,
            until=until or FOREVER,
            reason=reason,
        )

        async def work(tx: Tx) -> Pause:
            if agent_id is not None:
                await tx.agents.get(agent_id, user_id)
            await tx.agents.end_pauses(user_id, agent_id, now)
            await tx.agents.add_pause(pause)
            # What an earlier pause held is looked at again: this one may be shorter.
            await tx.wakes.release_held(user_id, agent_id, now)
            return pause

        return await self._store.write(work)

    async def resume(self, user_id: str, agent_id: str | None) -> bool:
        """Lift the pause. What came due meanwhile is not late because of it. False if there was none."""
        now = self._clock.now()

        async def work(tx: Tx) -> bool:
            ended = await tx.agents.end_pauses(user_id, agent_id, now)
            await tx.wakes.release_held(user_id, agent_id, now)
            return ended > 0

        return await self._store.write(work)

    async def active(self, user_id: str, agent_id: str) -> list[Pause]:
        """Return the pauses that hold an agent now, its own and those of everything."""
        now = self._clock.now()
        return await self._store.read(lambda tx: tx.agents.pauses_of(user_id, agent_id, now))
