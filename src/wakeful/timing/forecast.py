"""Future runs of wakes, computed with the rule that fires them."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from wakeful.core.texts import title_of
from wakeful.core.types import FOREVER, Agent, Pause, Rules, Wake, is_bounded
from wakeful.core.values import replace
from wakeful.timing.bounds import is_held_for_good
from wakeful.timing.fire_rule import Facts, fire

MAX_ENTRIES = 2_000  # a wake every ten seconds would fill any week
_MAX_STEPS = 10_000  # per wake; a guard against a rule that moves a wake for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A future run."""

    wake_id: str
    agent_id: str
    session_id: str | None
    kind: str
    comment: str
    about: str  # its label, or the first words of its instructions
    nominal_at: datetime  # the planned instant
    at: datetime  # when it will start if nothing changes
    covers: int  # number of planned instants that it covers
    reason: str | None = None  # why `at` is later than planned


@dataclass(frozen=True, slots=True, kw_only=True)
class AgendaContext:
    """Pauses, limits and counts of the agents whose wakes are listed."""

    agents: Mapping[str, Agent]
    pauses: Sequence[Pause] = ()
    used_today: Mapping[str, int] = field(default_factory=dict[str, int])


def plan_runs(
    live: Sequence[Wake],
    around: AgendaContext,
    now: datetime,
    until: datetime,
    rules: Rules,
    *,
    most: int = MAX_ENTRIES,
) -> list[Planned]:
    """Return the runs of these wakes until an instant, in order, if nothing unforeseen happens.

    Not foreseen are a user who talks, a busy session and a run that fails.
    """
    streams = [_runs_of(wake, around, now, until, rules) for wake in live if wake.agent_id in around.agents]
    return [planned for _, planned in zip(range(most), heapq.merge(*streams, key=lambda each: each.at), strict=False)]


def plan_held(
    live: Sequence[Wake],
    around: AgendaContext,
    now: datetime,
    until: datetime,
    rules: Rules,
    *,
    most: int = MAX_ENTRIES,
) -> list[Planned]:
    """Return the runs that wait for someone to resume: when they would run if the pause ended now."""
    without = replace(around, pauses=[pause for pause in around.pauses if pause.until < FOREVER])
    held = [
        replace(wake, attempt_at=max(wake.nominal_at, now)) if wake.held_by == "paused" else wake
        for wake in live
        if is_held_for_good(wake, around.pauses)
    ]
    return [replace(each, reason="paused") for each in plan_runs(held, without, now, until, rules, most=most)]


def _runs_of(wake: Wake, around: AgendaContext, now: datetime, until: datetime, rules: Rules) -> Iterator[Planned]:
    reason: str | None = None
    at = now
    for _ in range(_MAX_STEPS):
        if wake.status != "pending":
            return
        at = max(at, wake.attempt_at)
        if at > until:
            return
        verdict = fire(wake, _facts(wake, around, now, at), at, rules)
        if verdict.wake.status == "pending" and not verdict.runs and verdict.wake.attempt_at > at:
            reason = verdict.wake.held_by
        for run in verdict.runs:
            if run.status == "queued":
                yield Planned(
                    wake_id=wake.id,
                    agent_id=wake.agent_id,
                    session_id=wake.session_id,
                    kind=wake.kind,
                    comment=wake.comment,
                    about=title_of(wake.comment, wake.instructions),
                    nominal_at=run.nominal_at,
                    at=at,
                    covers=run.covers,
                    reason=reason,
                )
        if verdict.runs:
            reason = None
        wake = verdict.wake


def _facts(wake: Wake, around: AgendaContext, now: datetime, at: datetime) -> Facts:
    agent = around.agents[wake.agent_id]
    is_today = at - now < timedelta(days=1)
    return Facts(
        agent_timezone=agent.zone,
        bounds=agent.bounds if is_bounded(wake) else None,
        pauses=[
            pause
            for pause in around.pauses
            if pause.user_id == wake.user_id and pause.agent_id in (None, wake.agent_id)
        ],
        used_today=around.used_today.get(wake.agent_id, 0) if is_today else 0,
    )
