"""The history of a wake, in order and in sentences."""

from dataclasses import replace
from datetime import timedelta

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core.types import FOREVER, Decision, Rules, Run
from wakeful.timing import explain, lifecycle
from wakeful.timing.lifecycle import RequestedTime, create


def booked(**more):
    fields = {
        "kind": "next_run",
        "agent_id": "agent",
        "user_id": "user",
        "session_id": None,
        "call_type": "once",
        "instructions": "Read notes.txt.",
        "timezone": "UTC",
        "scheduled_by": "user",
        "at": NOON + HOUR,
        "now": NOON,
        "rules": Rules(),
    }
    return create(**fields | more)


def run_of(wake, **more):
    fields = {
        "id": "run",
        "agent_id": "agent",
        "user_id": "user",
        "session_id": "session",
        "wake_id": wake.id,
        "kind": wake.kind,
        "trigger": "wake",
        "scheduled_by": wake.scheduled_by,
        "nominal_at": wake.nominal_at,
        "status": "success",
        "queued_at": wake.nominal_at,
        "started_at": wake.nominal_at + 3 * SECOND / 1000,
        "finished_at": wake.nominal_at + 15 * SECOND,
        "attempt": 1,
    }
    return Run(**fields | more)


def sentences(wake, decisions=(), runs=(), follow_ups=()):
    return [step.text for step in explain.explain(wake, decisions, runs, follow_ups, "Gardener")]


def iso(at):
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"


def test_a_booking_comes_first_even_if_another_node_ended_it_by_an_earlier_clock():
    replaced = lifecycle.supersede(booked(), NOON - SECOND)
    assert [said.code for said in explain.explain(replaced, [], [])] == ["booked", "wake_superseded"]


def test_the_story_has_the_request_each_move_the_start_the_end_and_what_was_scheduled():
    asked = RequestedTime(requested="in 10 s", at=NOON + 10 * SECOND, moved_by=("min_interval", "quiet_hours"))
    wake = booked(
        scheduled_by="agent", asked_time=asked, at=NOON + HOUR, booked_by_run="earlier", tools=("read_file", "notify")
    )
    wake = replace(wake, status="fired")
    next_one = booked(comment="Water again", at=NOON + DAY, now=NOON + HOUR + 5 * SECOND, booked_by_run="run")
    assert sentences(wake, runs=[run_of(wake)], follow_ups=[next_one]) == [
        f"Gardener scheduled it for {iso(NOON + HOUR)}. Requested: “in 10 s” ({iso(NOON + 10 * SECOND)}); moved: "
        "minimum gap between runs, then quiet hours. It may use 2 tools.",
        "Due.",
        "Started 3 ms late.",
        f"It scheduled “Water again” for {iso(NOON + DAY)}.",
        "Done after 15 s.",
    ]


def test_a_day_that_is_not_allowed_has_its_name_in_the_zone_of_the_agent():
    asked = RequestedTime(requested="tonight", at=NOON + 11 * HOUR, moved_by=("day_not_allowed", "quiet_hours"))
    [first] = explain.explain(booked(asked_time=asked, at=NOON + 2 * DAY), [], [], zone="Asia/Tokyo")
    assert f"; moved: not on {NOON + DAY:%A}s, then quiet hours." in first.text  # it was past midnight there


def test_a_run_that_scheduled_nothing_says_so_and_its_end_is_said_once():
    wake = replace(booked(), status="fired", updated_at=NOON + 2 * HOUR)
    assert sentences(wake, runs=[run_of(wake)]) == [
        f"You scheduled it for {iso(NOON + HOUR)}.",
        "Due.",
        "Started 3 ms late.",
        "Done after 15 s. It scheduled nothing.",
    ]


def test_what_follows_from_the_end_of_a_run_comes_after_it():
    wake = replace(booked(), status="fired")
    for code, text in (("loop_ended", "So no next run is scheduled."), ("backoff", None)):
        said = Decision(wake_id=wake.id, nominal_at=NOON, at=NOON + HOUR + 15 * SECOND, code=code, run_id="run")
        ended, after = sentences(wake, [said], [run_of(wake)])[-2:]
        assert ended == "Done after 15 s. It scheduled nothing."
        assert text is None or after == text


def test_a_duration_is_counted_in_the_milliseconds_that_the_times_are_shown_in():
    """The page knows the start and the end of a run in whole milliseconds, and its figures must not differ."""
    wake = replace(booked(), status="fired")
    began, ended = (wake.nominal_at + timedelta(microseconds=number) for number in (900, 229_100))
    assert "Done after 229 ms" in sentences(wake, runs=[run_of(wake, started_at=began, finished_at=ended)])[-1]


@pytest.mark.parametrize(
    ("code", "detail", "text"),
    [
        ("paused", {"until": FOREVER.isoformat()}, "Paused."),
        ("paused", {"until": (NOON + DAY).isoformat()}, f"Held until {iso(NOON + DAY)}: paused."),
        ("daily_cap", {"until": (NOON + DAY).isoformat()}, f"Held until {iso(NOON + DAY)}: daily limit reached."),
        ("deferred", {"until": (NOON + MINUTE).isoformat()}, f"Held until {iso(NOON + MINUTE)}: the session was busy."),
        ("day_not_allowed", {"until": (NOON + DAY).isoformat()}, f"Held until {iso(NOON + DAY)}: not on {NOON:%A}s."),
        ("missed", {"policy": "skip", "late_seconds": 3540, "count": 1}, "It was missed, by 59 min: it is skipped."),
        ("edited", {"changed": ["comment", "max_runs"]}, "You changed: label, number of runs."),
        ("edited", {"changed": []}, "You saved it unchanged."),
        ("cancelled", {"reason": "session_deleted"}, "Cancelled: the session was deleted."),
        ("cancelled", {"reason": None}, "Cancelled."),
        ("moon_phase", {}, "Moon phase."),  # of a newer server
    ],
)
def test_each_decision_is_a_sentence(code, detail, text):
    said = Decision(wake_id="wake", nominal_at=NOON, at=NOON, code=code, detail=detail)
    assert sentences(booked(), [said])[1] == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"status": "failed", "reason": "error", "error": "The model has a headache."},
            "Failed after 15 s: The model has a headache.",
        ),
        ({"status": "stopped", "reason": "stopped"}, "Stopped after 15 s."),
        ({"status": "success", "note": "did_nothing"}, "Done after 15 s: did nothing. It scheduled nothing."),
        (
            {"status": "skipped", "reason": "missed", "covers": 3, "started_at": None},
            "Skipped (3 planned times): missed.",
        ),
    ],
)
def test_the_end_of_a_run_is_a_sentence(fields, text):
    wake = booked()
    assert sentences(wake, runs=[run_of(wake, **fields)])[-1] == text


def test_a_run_by_hand_before_its_time_is_not_called_on_time():
    wake = booked()
    started = run_of(wake, trigger="run_now", queued_at=NOON, started_at=NOON, finished_at=NOON + SECOND)
    assert sentences(wake, runs=[started])[1:3] == ["Asked to run now.", "Started."]
