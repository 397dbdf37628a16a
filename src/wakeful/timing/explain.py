"""The history of a wake: every decision about it and its runs, in order, each with a sentence.

The page, REST and the commands show these sentences. Instants in them are ISO 8601 in UTC, which the page and the
commands replace by the reader's own time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from wakeful.core.errors import NotFound
from wakeful.core.labels import REASONS, RUN_NOTES, describe_door
from wakeful.core.texts import title_of
from wakeful.core.types import FOREVER, Decision, Run, Wake
from wakeful.core.zones import format_duration, load_zone
from wakeful.timing.fire_rule import decision

_CHANGED = {
    "nominal_at": "time",
    "comment": "label",
    "every": "interval",
    "cron": "cron rule",
    "until": "last time",
    "max_runs": "number of runs",
    "on_miss": "what happens when it is missed",
    "timezone": "time zone",
    "context_views": "views",
    "wall_clock": None,  # says the same as the time
}
_AFTER_THE_END = ("loop_ended", "backoff")  # saved together with the end of a run, from which they follow
_NOTES: dict[str | None, str] = dict(RUN_NOTES.items())
_POLICIES = {"skip": "it is skipped", "run_once": "it runs once now", "run_catchup": "each one runs now"}


class NothingPlanned(NotFound):
    code = "nothing_planned"

    def __init__(self, at: datetime) -> None:
        super().__init__(
            f"No run of this agent was planned within 12 hours of {_time(at)}. The list of its wakes has their times."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Decision):
    """A decision with its sentence."""

    text: str


def explain(
    wake: Wake,
    decisions: Sequence[Decision],
    runs: Sequence[Run],
    follow_ups: Sequence[Wake] = (),
    agent_name: str = "The agent",
    zone: str = "UTC",
) -> list[Step]:
    """Return every decision about a wake and its runs, in order of time; `follow_ups` are what its runs booked.

    The zone is that of the agent's allowed days.
    """
    first = next((each for each in decisions if each.code == "booked"), None) or booked(wake)
    chain = [each for each in decisions if each.code != "booked"]
    for run in runs:
        chain += _history(wake, run, [each for each in follow_ups if each.booked_by_run == run.id])
    codes = {each.code for each in chain}
    is_said = wake.status in codes or (wake.status == "fired" and any(run.finished_at for run in runs))
    if wake.status not in ("pending", "queued", "running") and not is_said:
        chain.append(decision(wake, wake.updated_at, f"wake_{wake.status}", reason=wake.reason, error=wake.error))
    # Of two bookings of one slot at the same time, the one that reads the clock first may be saved last. It then ends
    # the other at a time before that one was booked.
    chain.sort(key=lambda decision: (decision.at, decision.code in _AFTER_THE_END))
    return [_with_text(each, agent_name, zone) for each in [first, *chain]]


def booked(wake: Wake) -> Decision:
    """Return the record of a booking: who made it, the requested time, and the booked one."""
    by: dict[str, Any] = {"by": wake.scheduled_by}
    if wake.door is not None:
        by |= {"door": wake.door, "token_name": wake.token_name}
    if wake.tools is not None:
        by |= {"run_id": wake.booked_by_run, "tools": list(wake.tools)}
    return Decision(
        wake_id=wake.id,
        nominal_at=_first_planned(wake),
        at=wake.created_at,
        code="booked",
        detail=by | dict(wake.booking or {}),
    )


def _first_planned(wake: Wake) -> datetime:
    """Return the instant that was booked; a recurring wake has moved on since."""
    return wake.nominal_at if wake.booking is None else datetime.fromisoformat(wake.booking["final"])


def _history(wake: Wake, run: Run, follow_ups: Sequence[Wake]) -> list[Decision]:
    def said(at: datetime, code: str, **detail: Any) -> Decision:
        return Decision(wake_id=wake.id, nominal_at=run.nominal_at, at=at, code=code, run_id=run.id, detail=detail)

    found = [said(run.queued_at, "queued" if run.trigger == "wake" else "run_now", covers=run.covers)]
    if run.status == "skipped" and run.started_at is None and run.queued_at == run.finished_at:
        found = []
    if run.started_at is not None:
        late = run.started_at - run.nominal_at
        found.append(said(run.started_at, "started", late_seconds=round(late.total_seconds(), 3), attempt=run.attempt))
    for each in follow_ups:
        about, final = title_of(each.comment, each.instructions), _first_planned(each).isoformat()
        found.append(said(each.created_at, "scheduled", wake_id=each.id, about=about, final=final))
    if run.finished_at is not None:
        outcome: dict[str, Any] = {"reason": run.reason, "error": run.error, "covers": run.covers}
        if run.started_at is not None:
            outcome["seconds"] = (_whole_ms(run.finished_at) - _whole_ms(run.started_at)).total_seconds()
        if run.status == "success" and not wake.is_recurring:
            outcome["scheduled"] = len(follow_ups)
        found.append(said(run.finished_at, run.status, **outcome, **({} if run.note is None else {"note": run.note})))
    return found


def _whole_ms(at: datetime) -> datetime:
    """Cut an instant to milliseconds, as the page does: its figures and these sentences must not differ."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


# ── Sentences ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _with_text(said: Decision, agent_name: str, zone: str) -> Step:
    return Step(
        wake_id=said.wake_id,
        nominal_at=said.nominal_at,
        at=said.at,
        code=said.code,
        run_id=said.run_id,
        detail=said.detail,
        text=_sentence(said, agent_name, zone),
    )


def _sentence(said: Decision, agent_name: str, zone: str) -> str:
    if said.code == "booked":
        return _booked(said, agent_name, zone)
    if said.code == "edited":
        return _edited(said.detail, zone)
    if said.code in _FIXED:
        return _FIXED[said.code]
    if said.code in _ENDINGS:
        return _ended(_ENDINGS[said.code], said.detail)
    return _SENTENCES[said.code](said.detail) if said.code in _SENTENCES else _held(said, zone)


def _booked(said: Decision, agent_name: str, zone: str) -> str:
    who = {"user": "You", "agent": agent_name}.get(said.detail["by"], "The server")
    through = describe_door(said.detail.get("door"), said.detail.get("token_name"))
    how = f", {through}" if through else ""
    text = f"{who} scheduled it for {_time(said.nominal_at)}{how}.{_request(said.detail, zone)}"
    tools = said.detail.get("tools")
    return text if tools is None else f"{text} It may use {len(tools)} tool{'' if len(tools) == 1 else 's'}."


def _request(detail: Mapping[str, Any], zone: str) -> str:
    """Return the requested time, and each reason why another one was booked."""
    requested, moves = detail.get("requested"), detail.get("moved_by") or ()
    if not requested:
        return ""
    if not moves:
        return " Requested: at once." if requested in ("immediate", "in 0 s") else f" Requested: “{requested}”."
    meant = detail.get("requested_at")
    instant = f" ({_time_of(meant)})" if meant else ""
    # The first move is from the requested day; those after it are from times that are not saved.
    first = _reason_of_hold(moves[0], datetime.fromisoformat(meant), zone) if meant else _reason(moves[0])
    return f" Requested: “{requested}”{instant}; moved: {', then '.join([first, *map(_reason, moves[1:])])}."


def _edited(detail: Mapping[str, Any], zone: str) -> str:
    names = [_CHANGED.get(name, name.replace("_", " ")) for name in detail.get("changed", ())]
    named = ", ".join(name for name in names if name)
    text = f"You changed: {named}." if named else "You saved it unchanged."
    final = detail.get("final")
    return f"{text} Now for {_time_of(final)}.{_request(detail, zone)}" if final else text


def _due(detail: Mapping[str, Any]) -> str:
    more = detail["covers"] - 1
    return f"Due, with {more} later time{'' if more == 1 else 's'} in the same run." if more > 0 else "Due."


def _started(detail: Mapping[str, Any]) -> str:
    late = detail["late_seconds"]
    text = f"Started {_took(late)} late" if late > 0 else "Started on time" if late == 0 else "Started"
    return f"{text}, attempt {detail['attempt']}." if detail["attempt"] > 1 else f"{text}."


def _ended(word: str, detail: Mapping[str, Any]) -> str:
    note, reason, error = detail.get("note"), detail.get("reason"), detail.get("error")
    after = f" after {_took(detail['seconds'])}" if "seconds" in detail else ""
    times = f" ({detail['covers']} planned times)" if (detail.get("covers") or 0) > 1 else ""
    if reason in (word.lower(), "error"):  # said already; the text of an error says more
        reason = None
    why = _NOTES.get(note) or (reason and _reason(reason))
    parts = [part for part in (why, error) if part]
    text = f"{word}{after}{times}: {'. '.join(parts).rstrip('.')}." if parts else f"{word}{after}{times}."
    return f"{text} It scheduled nothing." if detail.get("scheduled") == 0 else text


def _missed(detail: Mapping[str, Any]) -> str:
    times = f"{detail['count']} times were missed" if detail["count"] > 1 else "It was missed"
    return f"{times}, by {_took(detail['late_seconds'])}: {_POLICIES.get(detail['policy'], detail['policy'])}."


def _held(said: Decision, zone: str) -> str:
    """Return the sentence of a decision that held a wake back; any other code gets its label."""
    until, error = said.detail.get("until"), said.detail.get("error")
    reason = _reason_of_hold(said.code, said.at, zone)
    if until is None or datetime.fromisoformat(until) >= FOREVER:
        return f"{reason[0].upper()}{reason[1:]}{f': {error}' if error else '.'}"
    return f"Held until {_time_of(until)}: {reason}."


def _reason_of_hold(code: str, at: datetime, zone: str) -> str:
    """Return why a run may not start at a time, with the name of a day that is not allowed."""
    return f"not on {at.astimezone(load_zone(zone)):%A}s" if code == "day_not_allowed" else _reason(code)


_FIXED = {
    "superseded": "Replaced by a newer scheduled run.",
    "wake_superseded": "Replaced by a newer scheduled run.",
    "run_now": "Asked to run now.",
    "queued_while_busy": "Its session was still busy, so it waited for that run to end.",
    "folded": "An earlier run was still waiting, and covers this time too.",
    "loop_ended": "So no next run is scheduled.",
}
_ENDINGS = {
    "success": "Done",
    "failed": "Failed",
    "stopped": "Stopped",
    "skipped": "Skipped",
    "interrupted": "Interrupted",
    "cancelled": "Cancelled",
    "wake_failed": "Failed",
    "wake_skipped": "Skipped",
    "wake_cancelled": "Cancelled",
}
_SENTENCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "queued": _due,
    "missed": _missed,
    "started": _started,
    "scheduled": lambda detail: f"It scheduled “{detail['about']}” for {_time_of(detail['final'])}.",
    "outage": lambda detail: f"{detail['error']} Tried again at {_time_of(detail['until'])}.",
    "zone_rules_changed": lambda detail: (
        f"Moved from {_time_of(detail['was'])} to {_time_of(detail['next'])}: the rules of the time zone "
        f"{detail['zone']} have changed."
    ),
    "replanned": lambda detail: f"Moved to {_time_of(detail['next'])}: the server's clock had been wrong.",
}


def _reason(code: str) -> str:
    return REASONS.get(code) or code.replace("_", " ")


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"


def _time_of(text: str) -> str:
    return _time(datetime.fromisoformat(text))


def _took(seconds: float) -> str:
    if seconds < 1:
        return f"{max(1, round(seconds * 1000))} ms"
    return f"{seconds:.1f} s" if seconds < 10 else format_duration(timedelta(seconds=round(seconds)))
