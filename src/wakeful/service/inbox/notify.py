"""What an agent says to its user when nobody may be there."""

from dataclasses import dataclass, replace
from datetime import timedelta

from wakeful.clock import Clock
from wakeful.domain.doors import next_run
from wakeful.domain.inbox import notices
from wakeful.domain.types import Agent, Notice, Run
from wakeful.hub import Hub, user_topic
from wakeful.service.inbox.channels import Channels, Deliveries
from wakeful.service.retrying import insist
from wakeful.service.wakes.next_runs import ViewsOf
from wakeful.store.store import Store, Tx

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """What became of a notification: the one in the inbox, whether it was there already, and who else was told."""

    notice: Notice
    is_new: bool
    open_pages: int = 0  # on this node
    told: Deliveries | None = None  # None: nobody else, because it is not new


class Notify:
    """Puts an agent's words into the inbox and onto the channels, not too often and not twice."""

    def __init__(self, store: Store, clock: Clock, channels: Channels, hub: Hub, views_of: ViewsOf) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._hub = hub
        self._views_of = views_of

    async def tell(self, run: Run, agent: Agent, title: str, body: str, view_ref: str | None = None) -> Notified:
        """Put it into the inbox and tell the channels; the same words within an hour are not told again."""
        now = self._clock.now()
        # Taken on from the start: nobody else tells the channels, because the answer says what they did.
        notice = replace(notices.from_agent(run, title, body, now), view_ref=view_ref, taken_at=now)
        if view_ref is not None:
            next_run.check_view(view_ref, await self._views_of(agent), field="view_ref")

        async def work(tx: Tx) -> Notified:
            lately = await tx.notices.of_agent(run.user_id, run.agent_id, notices.NOTIFY, now - _HOUR)
            same = next((each for each in lately if (each.title, each.body) == (notice.title, notice.body)), None)
            if same is not None:  # our own, if the answer to a first try got lost
                return Notified(notice=same, is_new=same.id == notice.id)
            # Two nodes that count at once may let one more through; people notice twenty, not twenty-one.
            if len(lately) >= notices.PER_HOUR:
                raise notices.TooManyNotices(lately[-notices.PER_HOUR].created_at + _HOUR)
            return Notified(notice=notice, is_new=await tx.notices.add(notice))

        notified = await self._store.write(work, is_repeatable=True)
        if not notified.is_new:
            return notified
        pages = self._hub.count_listeners(user_topic(run.user_id))
        told = await self._channels.deliver(notice)
        done_at = self._clock.now()
        # The channels are told by now: nobody may take it for untold when the store is back.
        await insist(lambda: self._store.write(lambda tx: tx.notices.settle(notice.id, done_at), is_synced=False))
        return replace(notified, notice=replace(notice, told_at=done_at), open_pages=pages, told=told)
