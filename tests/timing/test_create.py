"""Creation of a wake from a request, and requests that are refused."""

from datetime import UTC, datetime, timedelta

import pytest

from harness import DAY, HOUR, NOON, SECOND
from wakeful.core.errors import Invalid
from wakeful.core.types import Rules
from wakeful.timing.lifecycle import create

DEFAULTS = {
    "kind": "recall",
    "agent_id": "agent",
    "user_id": "user",
    "session_id": "session",
    "call_type": "once",
    "instructions": "Read notes.txt.",
    "timezone": "UTC",
    "scheduled_by": "user",
    "now": NOON,
    "rules": Rules(),
}


def make(**request):
    return create(**(DEFAULTS | request))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        pytest.param({}, "when", id="once without a time"),
        pytest.param({"call_type": "recurring", "every": HOUR}, "when", id="an interval without a time"),
        pytest.param({"call_type": "recurring", "at": NOON}, "interval_seconds", id="recurring without a rule"),
        pytest.param(
            {"call_type": "recurring", "at": NOON, "every": HOUR, "cron": "0 9 * * *"},
            "interval_seconds",
            id="two rules",
        ),
        pytest.param({"at": NOON, "every": HOUR}, "interval_seconds", id="once with an interval"),
        pytest.param({"at": NOON, "cron": "0 9 * * *"}, "cron", id="once with a cron rule"),
        pytest.param(
            {"call_type": "recurring", "at": NOON, "every": 9 * SECOND}, "interval_seconds", id="too short an interval"
        ),
        pytest.param(
            {"call_type": "recurring", "at": NOON, "every": timedelta(seconds=10.5)},
            "interval_seconds",
            id="half a second",
        ),
        pytest.param({"call_type": "recurring", "cron": "61 * * * *"}, "cron", id="a cron rule that is none"),
        pytest.param({"call_type": "immediate", "at": NOON}, "when", id="immediate with a time"),
        pytest.param(
            {"kind": "next_run", "call_type": "recurring", "every": HOUR, "at": NOON}, "call_type", id="next_run recurs"
        ),
        pytest.param({"at": NOON, "session_id": None}, "session_id", id="a recall without a session"),
        pytest.param({"at": NOON, "instructions": " \n"}, "instructions", id="no instructions"),
        pytest.param({"at": NOON, "instructions": "x" * 32_001}, "instructions", id="a novel"),
        pytest.param({"at": NOON, "comment": "x" * 1_001}, "comment", id="a long comment"),
        pytest.param({"at": NOON, "timezone": "Europe/Atlantis"}, "timezone", id="a zone that is none"),
        pytest.param(
            {"call_type": "recurring", "every": HOUR, "at": NOON + HOUR, "until": NOON},
            "until",
            id="ends before it begins",
        ),
        pytest.param(
            {"call_type": "recurring", "every": HOUR, "at": NOON, "max_runs": 0}, "max_runs", id="no runs at all"
        ),
    ],
)
def test_a_request_that_cannot_be_kept_is_refused_and_says_which_field(request_, field):
    with pytest.raises(Invalid) as refusal:
        make(**request_)
    assert refusal.value.field == field


@pytest.mark.parametrize(
    ("kind", "slot", "on_miss"),
    [
        ("recall", "session:session", "run_once"),
        ("next_run", "agent:agent", "skip"),
        ("message", None, "run_once"),
        ("session", None, "run_once"),
    ],
)
def test_the_kind_decides_slot_and_policy(kind, slot, on_miss):
    wake = make(kind=kind, at=NOON)
    assert (wake.slot, wake.on_miss) == (slot, on_miss)


def test_a_time_in_the_past_means_now():
    assert make(at=NOON - DAY).nominal_at == NOON


def test_the_time_given_with_a_cron_rule_means_not_before():
    assert make(call_type="recurring", cron="0 9 * * *", at=NOON + 3 * DAY).nominal_at == NOON + 4 * DAY - 3 * HOUR


def test_a_cron_instant_at_the_very_time_given_counts():
    at = datetime(2026, 3, 5, 9, tzinfo=UTC)
    assert make(call_type="recurring", cron="0 9 * * *", at=at).nominal_at == at
