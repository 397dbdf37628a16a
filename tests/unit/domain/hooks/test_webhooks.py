"""The retry ladder of outgoing webhooks, and when one is switched off."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from wakeful.core.errors import Invalid
from wakeful.core.records import Webhook, WebhookMessage
from wakeful.outgoing.rules import Reply
from wakeful.webhooks import rules
from wakeful.webhooks.rules import BadWebhookAddress

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
DOWN = Reply(error="it cannot be reached")

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
MESSAGE = WebhookMessage(
    id="message",
    webhook_id="webhook",
    event="run.failed",
    about="run:1",
    data='{"run_id":"1"}',
    next_at=NOW,
    created_at=NOW,
)


def test_a_message_that_was_taken_is_over_and_ends_the_failures():
    failing = replace(WEBHOOK, failing_since=NOW, last_error="down", last_error_at=NOW)
    message, webhook = rules.record_attempt(MESSAGE, failing, Reply(status=204), NOW)
    assert (message.status, message.next_at, message.attempts) == ("sent", None, 1)
    assert (webhook.failing_since, webhook.last_error, webhook.last_sent_at) == (None, None, NOW)


def test_the_attempts_are_spread_over_a_day_and_then_given_up():
    message, webhook, now = MESSAGE, WEBHOOK, NOW
    times = [now]
    while True:
        message, webhook = rules.record_attempt(message, webhook, DOWN, now)
        if message.next_at is None:
            break
        now = message.next_at
        times.append(now)
    assert message.status == "failed"
    assert len(times) == len(rules.LADDER) + 1
    assert timedelta(hours=23) < times[-1] - times[0] <= timedelta(days=1)
    assert times[1] - times[0] == timedelta(seconds=5)
    assert webhook.enabled


def test_a_receiver_may_ask_for_a_longer_wait_but_not_for_ever():
    message, _ = rules.record_attempt(
        MESSAGE, WEBHOOK, Reply(status=503, error="it answered 503", retry_after=600), NOW
    )
    assert message.next_at == NOW + timedelta(minutes=10)
    message, _ = rules.record_attempt(
        MESSAGE, WEBHOOK, Reply(status=503, error="it answered 503", retry_after=10**6), NOW
    )
    assert message.next_at == NOW + rules.MAX_WAIT


@pytest.mark.parametrize(
    ("failing_since", "reply", "is_on"),
    [
        (NOW - timedelta(days=4), DOWN, True),
        (NOW - timedelta(days=5), DOWN, False),
        (None, Reply(status=410, error="it answered 410"), False),
        (None, Reply(status=404, error="it answered 404"), True),
    ],
)
def test_one_that_fails_for_five_days_or_is_gone_is_switched_off(failing_since, reply, is_on):
    message, webhook = rules.record_attempt(MESSAGE, replace(WEBHOOK, failing_since=failing_since), reply, NOW)
    assert webhook.enabled is is_on
    assert message.status == ("pending" if is_on else "failed")


def test_a_test_is_tried_once_and_switches_nothing_off():
    test = replace(MESSAGE, event=rules.TEST)
    message, webhook = rules.record_attempt(test, replace(WEBHOOK, failing_since=NOW - timedelta(days=9)), DOWN, NOW)
    assert (message.status, webhook.enabled) == ("failed", True)
    _, webhook = rules.record_attempt(test, WEBHOOK, DOWN, NOW)
    assert (webhook.failing_since, webhook.last_error) == (None, DOWN.error)


def test_a_replay_starts_the_ladder_again_under_the_same_id():
    failed = replace(MESSAGE, status="failed", attempts=8, next_at=None, settled_at=NOW)
    again = rules.replay(failed, NOW)
    assert (again.id, again.body, again.status, again.attempts) == (MESSAGE.id, MESSAGE.body, "pending", 0)


def test_the_body_is_json_and_the_same_in_every_attempt():
    assert json.loads(MESSAGE.body) == {"type": "run.failed", "timestamp": NOW.isoformat(), "data": {"run_id": "1"}}
    assert replace(MESSAGE, attempts=3, next_at=None).body == MESSAGE.body


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
