"""Notifications of agents, and what a message about a notice says."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import orjson

from wakeful.core.clock import Clock
from wakeful.core.hub import Hub, user_topic
from wakeful.core.records import Outgoing, ViewsOf
from wakeful.core.types import Agent, Notice, Run
from wakeful.notices import texts as notices_texts
from wakeful.notices.service import write_times
from wakeful.outgoing.outbox import Outbox
from wakeful.outgoing.rules import Result
from wakeful.store.outgoing import Addressed
from wakeful.store.store import Store, Tx
from wakeful.timing import next_run_request

FRESH = timedelta(hours=1)  # an older notice is only shown in the inbox
_AGAIN = "(Sent once more: the server went down while it sent this.)"
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldNotice:
    """A notice as a message about it says it, to its person."""

    notice: Notice
    body: str
    agent: Agent | None


async def read_notice(tx: Tx, message: Outgoing) -> ToldNotice | None:
    """Return the notice that a message is about; None: it is about a wake that was muted."""
    about = orjson.loads(message.body)
    notice = await tx.notices.find(about["notice_id"])
    wake = None if notice is None or notice.wake_id is None else await tx.wakes.find(notice.wake_id)
    if notice is None or (wake is not None and wake.muted):
        return None
    user = await tx.agents.user(notice.user_id)
    body = write_times(notice, user and user.timezone).body
    agents = [] if notice.agent_id is None else await tx.agents.of_user(notice.user_id)
    return ToldNotice(
        notice=notice,
        body=f"{body}\n\n{_AGAIN}" if message.abandoned or "is_again" in about else body,  # 0.2 was sending it
        agent=next((agent for agent in agents if agent.id == notice.agent_id), None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified:
    """A notification in the inbox, and where else it was sent."""

    notice: Notice
    is_new: bool  # False: it was in the inbox already, and nothing was sent
    is_muted: bool = False  # the user muted the wake that it is about
    open_pages: int = 0  # on this node
    told: tuple[Addressed, ...] = ()
    results: Mapping[str, Result] = field(default_factory=dict[str, Result])  # of messages, by their ids


class Notify:
    """Adds an agent's notifications to the inbox and sends them over the channels, limited and without duplicates."""

    def __init__(self, store: Store, clock: Clock, outbox: Outbox, hub: Hub, views_of: ViewsOf) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._hub = hub
        self._views_of = views_of

    async def send(self, run: Run, agent: Agent, title: str, body: str, view_ref: str | None = None) -> Notified:
        """Add a notification to the inbox and send it over the channels, but the same text only once an hour."""
        now = self._clock.now()
        notice = replace(notices_texts.from_agent(run, title, body, now), view_ref=view_ref)
        if view_ref is not None:
            next_run_request.check_view(view_ref, await self._views_of(agent), field="view_ref")

        async def work(tx: Tx) -> Notified:
            lately = await tx.notices.of_agent(run.user_id, run.agent_id, notices_texts.NOTIFY, now - _HOUR)
            same = next((each for each in lately if (each.title, each.body) == (notice.title, notice.body)), None)
            if same is not None and same.id != notice.id:  # else our own: the answer to a first attempt was lost
                return Notified(notice=same, is_new=False)
            # Two nodes that count at once may let one more through, which does no harm.
            if same is None and len(lately) >= notices_texts.PER_HOUR:
                raise notices_texts.TooManyNotices(lately[-notices_texts.PER_HOUR].created_at + _HOUR, agent.zone)
            if same is None and not await tx.notices.add_quietly(notice):
                return Notified(notice=notice, is_new=False)
            wake = None if run.wake_id is None else await tx.wakes.find(run.wake_id)
            if wake is not None and wake.muted:
                return Notified(notice=notice, is_new=True, is_muted=True)
            # Claimed from the start, so that they are left to us: our answer says what the channels did.
            return Notified(notice=notice, is_new=True, told=tuple(await tx.notices.tell(notice, taken_at=now)))

        notified = await self._store.write(work, is_repeatable=True)
        if not notified.is_new:
            return notified
        pages = self._hub.count_listeners(user_topic(run.user_id))
        results = await self._outbox.send_now([each.message for each in notified.told])
        return replace(notified, open_pages=pages, results=results)
