"""What an agent says to its user when nobody may be there."""

from dataclasses import dataclass
from datetime import timedelta

from wakeful.clock import Clock
from wakeful.domain import next_runs, notices
from wakeful.domain.types import Agent, Notice, Run
from wakeful.service.next_runs import ViewsOf
from wakeful.store.store import Store, Tx

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """What became of a notification: the one in the inbox, and whether it was there already."""

    notice: Notice
    is_new: bool


class Notify:
    """Puts an agent's words into the inbox, not too often and not twice."""

    def __init__(self, store: Store, clock: Clock, views_of: ViewsOf) -> None:
        self._store = store
        self._clock = clock
        self._views_of = views_of

    async def tell(self, run: Run, agent: Agent, title: str, body: str, view_ref: str | None = None) -> Notified:
        """Put it into the inbox; the same words within an hour are not told again."""
        now = self._clock.now()
        notice = notices.from_agent(run, title, body, now)
        if view_ref is not None:
            next_runs.check_view(view_ref, await self._views_of(agent), field="view_ref")

        async def work(tx: Tx) -> Notified:
            lately = await tx.notices.of_agent(run.user_id, run.agent_id, notices.NOTIFY, now - _HOUR)
            same = next((each for each in lately if (each.title, each.body) == (notice.title, notice.body)), None)
            if same is not None:
                return Notified(notice=same, is_new=False)
            # Two nodes that count at once may let one more through; people notice twenty, not twenty-one.
            if len(lately) >= notices.PER_HOUR:
                raise notices.TooManyNotices(lately[-notices.PER_HOUR].created_at + _HOUR)
            return Notified(notice=notice, is_new=await tx.notices.add(notice))

        return await self._store.write(work)
