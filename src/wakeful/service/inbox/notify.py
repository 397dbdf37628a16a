"""Notifications from an agent to its user."""

from dataclasses import dataclass, replace
from datetime import timedelta

from wakeful.clock import Clock
from wakeful.domain.doors import next_run
from wakeful.domain.inbox import notices
from wakeful.domain.types import Agent, Notice, Run
from wakeful.hub import Hub, user_topic
from wakeful.service.inbox.deliverer import Deliverer, Deliveries
from wakeful.service.wakes.next_runs import ViewsOf
from wakeful.store.store import Store, Tx

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A notification in the inbox, and where else it was delivered."""

    notice: Notice
    is_new: bool  # False: it was in the inbox already
    open_pages: int = 0  # on this node
    deliveries: Deliveries | None = None  # None: it is not new


class Notify:
    """Adds an agent's notifications to the inbox and sends them over the channels, limited and without duplicates."""

    def __init__(self, store: Store, clock: Clock, deliverer: Deliverer, hub: Hub, views_of: ViewsOf) -> None:
        self._store = store
        self._clock = clock
        self._deliverer = deliverer
        self._hub = hub
        self._views_of = views_of

    async def send(self, run: Run, agent: Agent, title: str, body: str, view_ref: str | None = None) -> Notified:
        """Add a notification to the inbox and send it over the channels, but the same text only once an hour."""
        now = self._clock.now()
        # Claimed from the start, so that the outbox leaves it to us: our answer says what the channels did.
        notice = replace(notices.from_agent(run, title, body, now), view_ref=view_ref, taken_at=now)
        if view_ref is not None:
            next_run.check_view(view_ref, await self._views_of(agent), field="view_ref")

        async def work(tx: Tx) -> Notified:
            lately = await tx.notices.of_agent(run.user_id, run.agent_id, notices.NOTIFY, now - _HOUR)
            same = next((each for each in lately if (each.title, each.body) == (notice.title, notice.body)), None)
            if same is not None:  # our own, if the answer to a first attempt was lost
                return Notified(notice=same, is_new=same.id == notice.id)
            # Two nodes that count at once may let one more through, which does no harm.
            if len(lately) >= notices.PER_HOUR:
                raise notices.TooManyNotices(lately[-notices.PER_HOUR].created_at + _HOUR, agent.zone)
            return Notified(notice=notice, is_new=await tx.notices.add(notice))

        notified = await self._store.write(work, is_repeatable=True)
        if not notified.is_new:
            return notified
        pages = self._hub.count_listeners(user_topic(run.user_id))
        deliveries = await self._deliverer.deliver(notice)
        notice = replace(notice, told_at=await self._deliverer.mark_delivered(notice.id))
        return replace(notified, notice=notice, open_pages=pages, deliveries=deliveries)
