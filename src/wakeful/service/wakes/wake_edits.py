"""What a person may do to a wake by its id, whichever door it was booked at."""

from collections.abc import Mapping
from typing import Any

from wakeful.clock import Clock
from wakeful.domain.doors import recall, schedule
from wakeful.domain.errors import Invalid
from wakeful.domain.events import RecallAction
from wakeful.domain.types import Agent, Run, Wake
from wakeful.domain.wakes.kinds import is_schedule, kind_of
from wakeful.service.wakes.recalls import Recalls
from wakeful.service.wakes.wakes import WakeService
from wakeful.store.store import Store

_ONLY_IF_RECURRING = frozenset({"interval_seconds", "cron", "until", "max_runs", "timezone"})


class Bookings:
    """Edit, cancel, skip and run any wake; those who watch a recall's session are told."""

    def __init__(self, store: Store, wakes: WakeService, recall_service: Recalls, clock: Clock) -> None:
        self._store = store
        self._wakes = wakes
        self._recalls = recall_service
        self._clock = clock

    async def edit(self, wake_id: str, user_id: str, asked: Mapping[str, Any]) -> Wake:
        """Change a wake that waits, within the bounds that its door has for people."""
        wake = await self._wakes.get(wake_id, user_id)
        for name in asked:
            if name in _ONLY_IF_RECURRING and not kind_of(wake).can_recur:
                raise Invalid(
                    f"`{name}` is {asked[name]!r}, and a {wake.kind} has none: only a recall comes back. Leave it out.",
                    field=name,
                )
        agent = await self._store.read(lambda tx: tx.agents.get(wake.agent_id, wake.user_id))
        changes, wish = recall.read_changes(asked, wake, self._clock.now(), agent.known_zone)
        if "nominal_at" in changes:
            self._check_horizon(wake, agent, changes)
        edited = await self._wakes.edit(wake_id, user_id, changes, wish)
        await self._wakes.see(wake_id)
        return await self._told(edited, "rescheduled")

    async def cancel(self, wake_id: str, user_id: str) -> Wake:
        return await self._told(await self._wakes.cancel(wake_id, user_id), "cancelled")

    async def skip(self, wake_id: str, user_id: str) -> Wake:
        skipped = await self._wakes.skip(wake_id, user_id)
        await self._wakes.see(wake_id)
        return await self._told(skipped, "skipped")

    async def run_now(self, wake_id: str, user_id: str) -> Run:
        run = await self._wakes.run_now(wake_id, user_id)
        await self._wakes.see(wake_id)
        return run

    def _check_horizon(self, wake: Wake, agent: Agent, changes: Mapping[str, Any]) -> None:
        ahead = changes["nominal_at"] - self._clock.now()
        if is_schedule(wake):
            schedule.check_ahead("when", ahead)
        if wake.kind == "next_run" and ahead > agent.bounds.max_horizon:
            raise Invalid(
                f"`when` is {changes['nominal_at'].isoformat()}, beyond the horizon of agent {agent.name!r}, which "
                f"is {agent.bounds.max_horizon} from now. Take an earlier time, or widen its bounds.",
                field="when",
            )

    async def _told(self, wake: Wake, action: RecallAction) -> Wake:
        if wake.kind == "recall":
            await self._recalls.tell(wake, action)
        return wake
