"""Edit, cancel, skip and run a wake by its id, for a person."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from wakeful.clock import Clock
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.doors import recall, schedule
from wakeful.domain.errors import Invalid
from wakeful.domain.types import Agent, Run, Wake
from wakeful.domain.wakes.kinds import is_schedule, kind_of
from wakeful.service.wakes.wakes import WakeService, edit
from wakeful.store.store import Store, Tx

_ONLY_IF_RECURRING = frozenset({"interval_seconds", "cron", "until", "max_runs", "timezone"})


class Bookings:
    """Edit, cancel, skip and run wakes of every kind."""

    def __init__(self, store: Store, wakes: WakeService, clock: Clock, rules: Rules) -> None:
        self._store = store
        self._wakes = wakes
        self._clock = clock
        self._rules = rules

    async def edit(self, wake_id: str, user_id: str, asked: Mapping[str, Any]) -> Wake:
        """Change a wake that waits, within the bounds that its door has for people, in one transaction."""
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            wake = await tx.wakes.get(wake_id, user_id)
            _check_fields(wake, asked)
            agent = await tx.agents.get(wake.agent_id, wake.user_id)
            changes, asked_time = recall.read_changes(asked, wake, now, agent.known_zone)
            if "nominal_at" in changes:
                _check_horizon(wake, agent, changes["nominal_at"], now)
            return await edit(tx, wake, changes, asked_time, now, self._rules)

        return await self._store.write(work)

    async def cancel(self, wake_id: str, user_id: str) -> Wake:
        return await self._wakes.cancel(wake_id, user_id)

    async def skip(self, wake_id: str, user_id: str) -> Wake:
        return await self._wakes.skip(wake_id, user_id)

    async def run_now(self, wake_id: str, user_id: str) -> Run:
        return await self._wakes.run_now(wake_id, user_id)


def _check_fields(wake: Wake, asked: Mapping[str, Any]) -> None:
    for name in asked:
        if name in _ONLY_IF_RECURRING and not kind_of(wake).can_recur:
            raise Invalid(
                f"`{name}` is {asked[name]!r}, and a {wake.kind} has none: only a recall comes back. Leave it out.",
                field=name,
            )


def _check_horizon(wake: Wake, agent: Agent, at: datetime, now: datetime) -> None:
    ahead = at - now
    if is_schedule(wake):
        schedule.check_ahead("when", ahead)
    if wake.kind == "next_run" and ahead > agent.bounds.max_horizon:
        raise Invalid(
            f"`when` is {at.isoformat()}, beyond the horizon of agent {agent.name!r}, which "
            f"is {agent.bounds.max_horizon} from now. Take an earlier time, or widen its bounds.",
            field="when",
        )
