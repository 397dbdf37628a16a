"""Recovery of a run whose owner is gone, and the next state of a wake whose run has ended."""

from dataclasses import replace

import pytest

from harness import HOUR, MINUTE, NOON, SECOND
from wakeful.core.types import Rules, Run
from wakeful.runs import rules as runs_rules
from wakeful.sessions.service import SessionBusy

RULES = Rules()
HEADLESS = Run(
    id="run",
    agent_id="agent",
    user_id="user",
    session_id="session",
    wake_id="wake",
    kind="recall",
    trigger="wake",
    scheduled_by="agent",
    nominal_at=NOON,
    queued_at=NOON,
    status="running",
    started_at=NOON,
    owner="dead",
    lease_until=NOON + 30 * SECOND,
    fence=1,
    attempt=1,
    has_called=True,
)
CHAT = replace(HEADLESS, wake_id=None, kind=None, trigger="message", scheduled_by="user")


@pytest.mark.parametrize("run", [HEADLESS, CHAT], ids=["headless", "chat"])
@pytest.mark.parametrize("attempt", [1, 2])
def test_a_lost_run_is_tried_again(run, attempt):
    after = runs_rules.recover(replace(run, attempt=attempt), NOON + MINUTE, RULES)
    assert (after.status, after.reason, after.is_resuming, after.finished_at) == ("queued", "resumed", True, None)
    assert (after.owner, after.lease_until, after.attempt) == (None, None, attempt)


@pytest.mark.parametrize("run", [HEADLESS, CHAT], ids=["headless", "chat"])
def test_the_third_attempt_is_the_last(run):
    after = runs_rules.recover(replace(run, attempt=3), NOON + MINUTE, RULES)
    assert (after.status, after.reason, after.finished_at) == ("interrupted", "attempts_used_up", NOON + MINUTE)
    assert "3 times" in after.error


@pytest.mark.parametrize("run", [HEADLESS, CHAT], ids=["headless", "chat"])
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_start_that_reached_no_call_spends_no_attempt(run, attempt):
    lost = replace(run, attempt=attempt, has_called=False, lost_starts=7)
    after = runs_rules.recover(lost, NOON + MINUTE, RULES)
    assert (after.status, after.reason, after.attempt, after.lost_starts) == ("queued", "resumed", attempt - 1, 8)


def test_a_run_that_never_reaches_a_call_is_given_up_with_words():
    after = runs_rules.recover(replace(HEADLESS, has_called=False, lost_starts=49), NOON + MINUTE, RULES)
    assert (after.status, after.reason, after.attempt) == ("interrupted", "starts_used_up", 0)
    assert after.error == "The process died 50 times before this run reached a model or tool call."


@pytest.mark.parametrize(
    ("away", "status"), [(10 * MINUTE, "queued"), (10 * MINUTE + SECOND, "interrupted"), (HOUR, "interrupted")]
)
def test_a_chat_run_is_not_taken_up_after_ten_minutes(away, status):
    assert runs_rules.recover(CHAT, CHAT.lease_until + away, RULES).status == status


def test_a_headless_run_is_taken_up_however_late():
    assert runs_rules.recover(HEADLESS, NOON + 100 * HOUR, RULES).status == "queued"


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_lost_run_that_was_asked_to_stop_is_stopped(attempt):
    asked = replace(HEADLESS, attempt=attempt, stop_requested_at=NOON + SECOND)
    after = runs_rules.recover(asked, NOON + MINUTE, RULES)
    assert (after.status, after.reason, after.finished_at) == ("stopped", "stopped", NOON + MINUTE)


@pytest.mark.parametrize(("run", "what"), [(HEADLESS, "a scheduled run"), (CHAT, "another message")])
def test_a_busy_session_says_what_it_is_busy_with(run, what):
    assert what in SessionBusy(run).message
