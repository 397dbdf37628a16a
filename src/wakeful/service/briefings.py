"""Everything the work of a run begins with, read at one moment."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.clock import Clock
from wakeful.domain import bounds, session_config
from wakeful.domain.types import Agent, Message, Run, RunUsage, Session, User, Wake
from wakeful.service.agent_data import ShownView
from wakeful.service.sessions import all_messages
from wakeful.store.store import Store, Tx
from wakeful.store.usage import Spent

_LOOK_BACK = timedelta(days=31)  # for how the last run ended; a month is the longest horizon of a mode
_SHOW_IMAGES_OF = 3  # the latest messages that have any; models see older ones no more

ImageBytes = tuple[str, bytes]  # media type, content
ShowViews = Callable[[Agent, Sequence[str]], Awaitable[Sequence[ShownView]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """Who works, for whom, why, and what was said so far."""

    agent: Agent  # as it works in this session
    user: User
    session: Session
    wake: Wake | None
    last_run: Run | None = None  # the one before of the same wake or, for a next run, of the agent's next runs
    messages: Sequence[Message]
    usage: RunUsage | None  # of an earlier attempt at this run
    spent_today: Spent  # by the agent's other runs
    images: Mapping[str, ImageBytes] = field(default_factory=dict[str, ImageBytes])
    views: Sequence[ShownView] = ()  # of the agent's database, that the next run was booked with
    session_config: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of the schedule that began the session


class Briefings:
    """Reads what a run needs to know."""

    def __init__(self, store: Store, clock: Clock, show_views: ShowViews) -> None:
        self._store = store
        self._clock = clock
        self._show_views = show_views

    async def read(self, run: Run) -> Briefing:
        now = self._clock.now()
        assert run.session_id is not None
        session_id = run.session_id

        async def work(tx: Tx) -> Briefing:
            agent = await tx.agents.get(run.agent_id, run.user_id)
            user = await tx.agents.user(run.user_id)
            assert user is not None  # rows that name a user keep it
            messages = await all_messages(tx, session_id)
            midnight = bounds.local_day_start(now, agent.timezone)
            session = await tx.sessions.get(session_id, run.user_id)
            origin = None if session.origin_wake_id is None else await tx.wakes.read(session.origin_wake_id)
            config = (origin and origin.session_config) or {}
            return Briefing(
                agent=session_config.apply(agent, config),
                session_config=config,
                user=user,
                session=session,
                wake=None if run.wake_id is None else await tx.wakes.read(run.wake_id),
                last_run=await _last_run(tx, run, now),
                messages=messages,
                usage=await tx.usage.of_run(run.id),
                spent_today=await tx.usage.of_agent(agent.id, midnight, but_run=run.id),
                images=await _images(tx, session_id, messages),
            )

        briefing = await self._store.read(work)
        if briefing.wake is None or not briefing.wake.context_views:
            return briefing
        return replace(briefing, views=await self._show_views(briefing.agent, briefing.wake.context_views))


async def _last_run(tx: Tx, run: Run, now: datetime) -> Run | None:
    if run.wake_id is None:
        return None
    return await tx.runs.last_ended(run, now - _LOOK_BACK, None if run.kind == "next_run" else run.wake_id)


async def _images(tx: Tx, session_id: str, messages: Sequence[Message]) -> dict[str, ImageBytes]:
    with_images = [message for message in messages if message.data is not None and message.data.get("images")]
    found: dict[str, ImageBytes] = {}
    for message in with_images[-_SHOW_IMAGES_OF:]:
        assert message.data is not None
        for image in message.data["images"]:
            content = await tx.sessions.image(image["id"], session_id)
            if content is not None:
                found[image["id"]] = content
    return found
