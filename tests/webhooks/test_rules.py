"""The retry ladder of outgoing webhooks, and when one is switched off."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.errors import Invalid
from wakeful.core.records import Outgoing, Webhook
from wakeful.outgoing import rules as outgoing_rules
from wakeful.outgoing.rules import Result
from wakeful.webhooks import rules
from wakeful.webhooks.rules import BadWebhookAddress

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DOWN = Result(outcome="failed", reason="it cannot be reached")
SENT = Result(outcome="sent", status=204)

WEBHOOK = Webhook(
    id="webhook",
    user_id="user",
    name="ops",
    url="https://example.com/secret",
    shown="https://example.com/****",
    secret="encrypted",
    events=("run.failed",),
    created_at=NOW,
    updated_at=NOW,
)
MESSAGE = Outgoing(
    id="message",
    kind="webhook",
    target="webhook",
    event="run.failed",
    about="run:1",
    body='{"run_id":"1"}',
    next_at=NOW,
    created_at=NOW,
)


def fail(message, now, **more):
    return outgoing_rules.settle(message, replace(DOWN, **more), rules.LADDER, now)


def test_a_message_that_was_taken_is_over_and_ends_the_failures():
    failing = replace(WEBHOOK, failing_since=NOW, last_error="down", last_error_at=NOW)
    message = outgoing_rules.settle(MESSAGE, SENT, rules.LADDER, NOW)
    assert (message.status, message.next_at, message.attempts) == ("sent", None, 1)
    webhook = rules.record_result(failing, "run.failed", SENT, NOW)
    assert (webhook.failing_since, webhook.last_error, webhook.last_sent_at) == (None, None, NOW)


def test_the_attempts_are_spread_over_a_day_and_then_given_up():
    message, now = MESSAGE, NOW
    times = [now]
    while (message := fail(message, now)).next_at is not None:
        now = message.next_at
        times.append(now)
    assert message.status == "failed"
    assert len(times) == len(rules.LADDER) + 1
    assert timedelta(hours=23) < times[-1] - times[0] <= timedelta(days=1)
    assert times[1] - times[0] == timedelta(seconds=5)


def test_a_receiver_may_ask_for_a_longer_wait_but_not_for_ever():
    assert fail(MESSAGE, NOW, retry_after=600).next_at == NOW + timedelta(minutes=10)
    assert fail(MESSAGE, NOW, retry_after=10**6).next_at == NOW + outgoing_rules.MAX_WAIT


@pytest.mark.parametrize(
    ("failing_since", "status", "is_on"),
    [
        (NOW - timedelta(days=4), None, True),
        (NOW - timedelta(days=5), None, False),
        (None, 410, False),
        (None, 404, True),
    ],
)
def test_one_that_fails_for_five_days_or_is_gone_is_switched_off(failing_since, status, is_on):
    result = replace(DOWN, status=status)
    assert (
        rules.record_result(replace(WEBHOOK, failing_since=failing_since), "run.failed", result, NOW).enabled is is_on
    )


def test_a_test_switches_nothing_off():
    failing = replace(WEBHOOK, failing_since=NOW - timedelta(days=9))
    assert rules.record_result(failing, outgoing_rules.TEST, DOWN, NOW).enabled
    webhook = rules.record_result(WEBHOOK, outgoing_rules.TEST, DOWN, NOW)
    assert (webhook.failing_since, webhook.last_error) == (None, DOWN.reason)


def test_a_replay_starts_the_ladder_again_under_the_same_id():
    failed = replace(MESSAGE, status="failed", attempts=8, next_at=None, settled_at=NOW)
    again = outgoing_rules.replay(failed, NOW)
    assert (again.id, rules.to_body(again), again.status, again.attempts) == (
        MESSAGE.id,
        rules.to_body(MESSAGE),
        "pending",
        0,
    )


def test_the_body_is_json_and_the_same_in_every_attempt():
    body = rules.to_body(MESSAGE)
    assert json.loads(body) == {"type": "run.failed", "timestamp": NOW.isoformat(), "data": {"run_id": "1"}}
    assert rules.to_body(replace(MESSAGE, attempts=3, next_at=None)) == body


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://example.com",
        "https://",
        "https://u:pass@example.com",
        "https://example.com/#y",
        "http://x:99999",
        "é://x",
    ],
)
def test_an_unfit_address_is_refused_without_being_named(url):
    with pytest.raises(BadWebhookAddress) as refused:
        rules.check_url(url)
    assert "example" not in url or url not in refused.value.message


def test_a_webhook_without_events_is_refused():
    with pytest.raises(Invalid):
        rules.check(replace(WEBHOOK, events=()))
