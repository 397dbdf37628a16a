"""Reads everything that a run starts with, in one transaction."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from wakeful.agents import rules as agents_rules
from wakeful.core.budget import Spent
from wakeful.core.clock import Clock
from wakeful.core.labels import shown_toolsets
from wakeful.core.records import Skill
from wakeful.core.types import Agent, ClaimedRun, Message, Run, RunUsage, ScheduledBy, Session, User, Wake
from wakeful.database.service import ShownView
from wakeful.hooks.rules import HookData
from wakeful.runs import rules as runs_rules
from wakeful.sessions.messages import all_messages
from wakeful.store.store import Store, Tx
from wakeful.timing import bounds, next_run_request, session_config

_LOOK_BACK = timedelta(days=31)  # to find the last run; a month is the longest horizon of a mode
_SHOW_IMAGES_OF = 3  # the latest messages with images; models do not see older images
ImageBytes = tuple[str, bytes]  # media type, content
Describe = Callable[[Agent], Awaitable[Sequence[str]]]
ShowViews = Callable[[Agent, Sequence[str]], Awaitable[Sequence[ShownView]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """The agent, user, session, wake and transcript of a run."""

    agent: Agent  # with the session's configuration
    user: User
    session: Session
    wake: Wake | None
    last_run: Run | None = None  # the previous one of the same wake or, for a next run, of the agent's next runs
    messages: Sequence[Message]  # without earlier versions
    superseded: int = 0  # number of messages of earlier versions
    usage: RunUsage | None  # of an earlier attempt at this run
    spent_today: Spent  # by the agent's other runs
    images: Mapping[str, ImageBytes] = field(default_factory=dict[str, ImageBytes])
    helpers: Sequence[Agent] = ()  # its subagents
    task_from: str | None = None  # the name of the agent that gave a subagent its task
    database: Sequence[str] = ()  # its tables and views, a line each
    views: Sequence[ShownView] = ()  # saved views that the next run was booked with
    session_config: Mapping[str, Any] = field(default_factory=dict[str, Any])  # of the schedule that opened the session
    outside_sources: Sequence[str] = ()  # of the runs of this session: what they have read is in the transcript
    opened_by: ScheduledBy = "user"  # who booked that schedule
    booked_model: str | None = None  # that this agent booked the session with; unused if its owner took it back
    profiles: Sequence[Agent] = ()  # agents that it may hand the session over to
    skills: Sequence[Skill] = ()
    agents_file: str = ""  # the accepted AGENTS.md of its workspace
    notes: Sequence[str] = ()  # problems with its tools and skills
    hook_data: HookData | None = None  # what the hook that started the run has received
    told_at: datetime | None = None  # the time in the prompt; None: updated before each model call

    @property
    def only(self) -> Collection[str] | None:
        """Return the largest set of tools for this run: those of the run that booked its wake, and those its session
        was opened with. None: no limit.
        """
        booked_with = None if self.wake is None else self.wake.tools
        begun_with: Collection[str] | None = self.session_config.get("tool_ids")
        limits = [set(limit) for limit in (booked_with, begun_with) if limit is not None]
        return limits[0].intersection(*limits[1:]) if limits else None


class Briefings:
    def __init__(self, store: Store, clock: Clock, show_views: ShowViews, describe_database: Describe) -> None:
        self._store = store
        self._clock = clock
        self._show_views = show_views
        self._describe_database = describe_database

    async def wake(self, run: ClaimedRun) -> Wake | None:
        """Return the wake of a run, to save its instructions before the rest is read."""
        wake_id = run.wake_id
        return None if wake_id is None else await self._store.read(lambda tx: tx.wakes.read(wake_id), is_single=True)

    async def read(self, run: ClaimedRun) -> Briefing:
        now, session_id = self._clock.now(), run.session_id

        async def work(tx: Tx) -> Briefing:
            transcript = await all_messages(tx, session_id)
            messages = runs_rules.current_version(transcript)
            agent = await tx.agents.get(agents_rules.acting_agent(run, messages), run.user_id)
            user = await tx.agents.user(run.user_id)
            assert user is not None  # a user's row is never deleted
            session = await tx.sessions.get(session_id, run.user_id)
            origin = None if session.origin_wake_id is None else await tx.wakes.read(session.origin_wake_id)
            config = agents_rules.limit_profile((origin and origin.session_config) or {}, session)
            others = await tx.agents.of_user(run.user_id) if agent.profiles else []
            booked_model = None
            if origin is not None and origin.agent_id == agent.id:
                agent, booked_model = (
                    session_config.apply_config(agent, config, origin.scheduled_by),
                    config.get("model"),
                )
            return Briefing(
                agent=agent,
                session_config=config,
                opened_by="user" if origin is None else origin.scheduled_by,
                booked_model=booked_model,
                profiles=[each for each in others if each.id in agent.profiles and each.id != agent.id],
                user=user,
                session=session,
                wake=None if run.wake_id is None else await tx.wakes.read(run.wake_id),
                last_run=await _last_run(tx, run, now),
                messages=messages,
                outside_sources=await tx.runs.sources_of_session(session_id),
                superseded=len(transcript) - len(messages),
                usage=await tx.usage.of_run(run.id),
                helpers=await _helpers(tx, agent),
                spent_today=await _spent_today(tx, agent, run, now),
                images=await _images(tx, session_id, messages),
            )

        briefing = await self._store.read(work)
        briefing = replace(briefing, database=await self._describe_database(briefing.agent))
        if briefing.wake is None or not briefing.wake.context_views:
            return briefing
        return replace(briefing, views=await self._show_views(briefing.agent, briefing.wake.context_views))

    async def spent_today(self, run: Run) -> Spent:
        """Return what the agent's other runs have spent today."""
        now = self._clock.now()

        async def work(tx: Tx) -> Spent:
            return await _spent_today(tx, await tx.agents.get(run.agent_id, run.user_id), run, now)

        return await self._store.read(work)

    async def is_awaited(self, run: Run, agent_id: str) -> bool:
        """Return whether a wake of the agent is pending that was booked in the session of a run, or its next run."""

        async def work(tx: Tx) -> bool:
            if run.session_id is None:
                return False
            booked = await tx.wakes.of_session(run.session_id, is_live=True)
            coming = await tx.wakes.in_slot(next_run_request.slot_of(agent_id))
            return coming is not None or any(wake.agent_id == agent_id for wake in booked)

        return await self._store.read(work)


async def _spent_today(tx: Tx, agent: Agent, run: Run, now: datetime) -> Spent:
    return await tx.usage.of_agent(agent.id, bounds.local_day_start(now, agent.zone), but_run=run.id)


async def _helpers(tx: Tx, agent: Agent) -> list[Agent]:
    if "subagents" not in shown_toolsets(agent):
        return []
    return [each for each in await tx.agents.of_user(agent.user_id) if each.id in agent.subagents]


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
