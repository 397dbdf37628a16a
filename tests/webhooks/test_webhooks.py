"""Outgoing webhooks: each event is sent once, signed, and again until the receiver has taken it."""

import asyncio
import contextlib
import json
from datetime import timedelta

import pytest

from harness import HOUR, MINUTE, NOON, SECOND, Harness, doing, send_due
from network.webhook_receiver import WebhookReceiver
from wakeful.core.errors import Conflict, NotFound
from wakeful.core.outgoing import PrivateAddress
from wakeful.hooks import schemes
from wakeful.hooks.schemes import Unproven
from wakeful.webhooks import rules

pytestmark = pytest.mark.both_stores

ON_SQLITE = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)  # where the store plays no part
ALL = tuple(rules.EVENTS)
DAY = timedelta(days=1)


@pytest.fixture
async def receiver():
    async with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
async def harness(backend_settings):
    harness = Harness(backend_settings | {"fetch_private_hosts": ["127.0.0.1"]})
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


def webhooks(harness):
    return harness.node.services.webhooks


async def add(harness, receiver, *events, name="ops", **fields):
    given = {"name": name, "events": events or ALL, **fields}
    return await webhooks(harness).add(harness.user.id, receiver.url(), given)


async def send(harness):
    await send_due(harness.node, "webhook")


async def log(harness, made):
    return await webhooks(harness).deliveries(made.webhook.id, harness.user.id)


def read(taken):
    return json.loads(taken.body)


async def break_down(_run: object) -> None:
    raise Conflict("This is what a model or a person wrote, and stays here.")


async def test_a_finished_and_a_failed_run_are_told_signed_and_without_their_texts(harness, receiver):
    made = await add(harness, receiver, "run.finished", "run.failed")
    first = await harness.book()
    await harness.turn_at(first.nominal_at)
    harness.executor.default = doing(break_down)
    second = await harness.book()
    await harness.turn_at(second.nominal_at)
    await send(harness)
    told = {read(each)["type"]: each for each in receiver.taken}
    assert sorted(told) == ["run.failed", "run.finished"]
    for each in told.values():
        schemes.check("standard", each.headers, each.body, [made.secret], harness.clock.now())
        assert each.headers["content-type"] == "application/json"
    data = read(told["run.finished"])["data"]
    assert (data["wake_id"], data["status"], data["agent"]) == (first.id, "success", "Agent")
    failed = read(told["run.failed"])["data"]
    assert (failed["wake_id"], failed["status"], failed["reason"]) == (second.id, "failed", "conflict")
    assert b"stays here" not in told["run.failed"].body
    assert sorted(each.status for each in await log(harness, made)) == ["sent", "sent"]


async def test_a_missed_wake_an_ended_loop_and_a_notification_are_told_once_each(harness, receiver):
    made = await add(harness, receiver, "wake.missed", "loop.ended", "notification")
    late = await harness.book(on_miss="skip")
    await harness.book(kind="next_run", scheduled_by="agent")
    await harness.turn_at(NOON + 3 * HOUR)
    harness.clock.advance(SECOND)
    await harness.turn()
    await send(harness)
    told = sorted((read(each)["type"], read(each)["data"].get("wake_id")) for each in receiver.taken)
    assert ("wake.missed", late.id) in told
    assert [kind for kind, _ in told].count("loop.ended") == 1
    assert "notification" not in [kind for kind, _ in told]  # the same thing under another name
    assert len(await log(harness, made)) == len(told)


@ON_SQLITE
async def test_a_webhook_of_one_agent_hears_nothing_of_others_and_one_that_is_off_nothing(harness, receiver):
    other = await harness.add_agent(name="Other")
    made = await add(harness, receiver, agent_id=other.id)
    off = await add(harness, receiver, name="off", enabled=False)
    wake = await harness.book()
    await harness.turn_at(wake.nominal_at)
    assert await log(harness, made) == await log(harness, off) == []


async def test_two_nodes_send_an_event_once(backend_settings, receiver):
    harness = Harness(backend_settings | {"fetch_private_hosts": ["127.0.0.1"]})
    async with harness.node.opened():
        await harness.settle_in()
        await add(harness, receiver, "run.finished")
        for _ in range(3):
            wake = await harness.book()
            await harness.turn_at(wake.nominal_at)
        if harness.node.store.is_shared:
            other = harness.another_node(data_dir=harness.settings["data_dir"] / "other")
            async with other.opened():
                await asyncio.gather(*(send_due(node, "webhook") for node in (harness.node, other) * 2))
        else:
            await asyncio.gather(*(send_due(harness.node, "webhook") for _ in range(4)))
    assert len({each.headers["webhook-id"] for each in receiver.taken}) == len(receiver.taken) == 3


@pytest.mark.parametrize(("by", "sent"), [(SECOND, 0), (HOUR, 1)])
async def test_a_claim_a_little_ahead_is_another_nodes_and_one_far_ahead_is_from_before_the_clock_was_set(
    harness, receiver, by, sent
):
    """A node reads its clock before it waits for the claim of another."""
    await add(harness, receiver, "run.finished")
    wake = await harness.book()
    await harness.turn_at(wake.nominal_at)
    ahead = harness.clock.now() + by
    await harness.node.store.write(lambda tx: tx.outgoing.claim("webhook", ahead, NOON, ahead, 10))
    await send(harness)
    assert len(receiver.taken) == sent


async def test_messages_arrive_in_their_order_also_from_two_nodes(backend_settings, receiver):
    harness = Harness(backend_settings | {"fetch_private_hosts": ["127.0.0.1"]})
    async with harness.node.opened():
        await harness.settle_in()
        made = await add(harness, receiver, "run.finished")
        for _ in range(6):
            wake = await harness.book()
            await harness.turn_at(wake.nominal_at)
        other = harness.node if not harness.node.store.is_shared else harness.another_node()
        async with contextlib.nullcontext() if other is harness.node else other.opened():
            outboxes = [node.services.outbox for node in (harness.node, other) * 2]
            first = await asyncio.gather(*(outbox.send_due("webhook") for outbox in outboxes))
        assert sorted(first) == [0, 0, 0, 6]  # while one sends to a target, others leave it alone
        expected = [each.id for each in reversed(await log(harness, made))]
        assert [each.headers["webhook-id"] for each in receiver.taken] == expected


@ON_SQLITE
async def test_what_is_behind_a_message_without_an_answer_is_not_tried(harness, receiver):
    made = await add(harness, receiver, "run.finished")
    for _ in range(3):
        wake = await harness.book()
        await harness.turn_at(wake.nominal_at)
    harness.node.services.outbox.kinds["webhook"].seconds = 2.0
    receiver.is_silent = True
    assert await harness.node.services.outbox.send_due("webhook") == 3
    found = list(reversed(await log(harness, made)))
    assert [each.attempts for each in found] == [1, 0, 0]
    assert "may or may not have arrived" in found[0].last_error
    receiver.is_silent = False
    await send(harness)
    assert [each.status for each in await log(harness, made)] == ["sent", "sent", "pending"]


@ON_SQLITE
async def test_a_receiver_that_is_down_for_an_hour_gets_everything_after_it(harness, receiver):
    made = await add(harness, receiver, "run.finished")
    receiver.status = 503
    wake = await harness.book()
    await harness.turn_at(wake.nominal_at)
    began = harness.clock.now()
    while harness.clock.now() - began < HOUR:
        await send(harness)
        [waiting] = await log(harness, made)
        assert (waiting.status, waiting.last_error) == ("pending", "it answered 503")
        harness.clock.set(waiting.next_at)
    receiver.status = 200
    await send(harness)
    [sent] = await log(harness, made)
    assert (sent.status, sent.attempts) == ("sent", 5)
    assert len({(each.headers["webhook-id"], each.body) for each in receiver.taken}) == 1
    assert len({each.headers["webhook-timestamp"] for each in receiver.taken}) == 5  # signed again each time


@ON_SQLITE
async def test_after_five_days_of_failures_it_is_off_with_a_notice(harness, receiver):
    made = await add(harness, receiver, "run.finished")
    receiver.status = 500
    for _ in range(7):
        wake = await harness.book()
        await harness.turn_at(wake.nominal_at)
        await send(harness)
        harness.clock.advance(DAY)
    webhook = await webhooks(harness).get(made.webhook.id, harness.user.id)
    assert not webhook.enabled
    assert [notice.code for notice in await harness.notices()].count("webhook_off") == 1
    assert {each.status for each in await log(harness, made)} <= {"failed", "cancelled"}
    with pytest.raises(rules.WebhookOff):
        await webhooks(harness).replay(made.webhook.id, harness.user.id, (await log(harness, made))[0].id)
    await webhooks(harness).change(made.webhook.id, harness.user.id, {"enabled": True})
    receiver.status = 200
    again = await webhooks(harness).replay(made.webhook.id, harness.user.id, (await log(harness, made))[0].id)
    await send(harness)
    assert receiver.taken[-1].headers["webhook-id"] == again.id


@ON_SQLITE
async def test_a_redirect_is_not_followed(harness, receiver):
    made = await add(harness, receiver)
    receiver.status, receiver.location = 302, "http://169.254.169.254/latest/meta-data"
    tried = await webhooks(harness).test(made.webhook.id, harness.user.id)
    assert (tried.status, tried.last_status) == ("failed", 302)
    assert "redirect, which is not followed" in tried.last_error


@ON_SQLITE
async def test_a_private_address_is_refused_when_it_is_saved_and_again_when_it_is_sent_to(backend_settings, receiver):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        with pytest.raises(PrivateAddress):
            await add(harness, receiver)
        private = await webhooks(harness).add(
            harness.user.id, "http://no-such-host.invalid/", {"name": "later", "events": ALL}
        )
        # A name that resolves to this machine by the time of sending.
        await harness.sql(f"UPDATE webhooks SET url = '{receiver.url()}'")
        tried = await webhooks(harness).test(private.webhook.id, harness.user.id)
    assert "not on the public internet" in tried.last_error
    assert receiver.taken == []


@ON_SQLITE
async def test_after_a_rotation_both_secrets_verify_for_a_day(harness, receiver):
    made = await add(harness, receiver)
    after = await webhooks(harness).rotate(made.webhook.id, harness.user.id)
    await webhooks(harness).test(made.webhook.id, harness.user.id)
    harness.clock.advance(25 * HOUR)
    await webhooks(harness).test(made.webhook.id, harness.user.id)
    both, new = receiver.taken
    for secret in (made.secret, after.secret):
        schemes.check("standard", both.headers, both.body, [secret], NOON)
    schemes.check("standard", new.headers, new.body, [after.secret], harness.clock.now())
    with pytest.raises(Unproven):
        schemes.check("standard", new.headers, new.body, [made.secret], harness.clock.now())


@ON_SQLITE
async def test_a_message_that_a_stopped_node_had_taken_is_sent_by_the_next(harness, receiver):
    made = await add(harness, receiver, "run.finished")
    wake = await harness.book()
    await harness.turn_at(wake.nominal_at)
    now = harness.clock.now()
    claimed = await harness.node.store.write(lambda tx: tx.outgoing.claim("webhook", now, now, now, 10))
    assert len(claimed) == 1  # and then it was killed
    await send(harness)
    assert receiver.taken == []
    harness.clock.advance(2 * MINUTE)
    await send(harness)
    assert [each.status for each in await log(harness, made)] == ["sent"]


@ON_SQLITE
async def test_another_person_sees_and_changes_nothing(harness, receiver):
    made = await add(harness, receiver)
    for act in (
        webhooks(harness).get(made.webhook.id, "someone"),
        webhooks(harness).change(made.webhook.id, "someone", {"enabled": False}),
        webhooks(harness).rotate(made.webhook.id, "someone"),
        webhooks(harness).test(made.webhook.id, "someone"),
        webhooks(harness).deliveries(made.webhook.id, "someone"),
        webhooks(harness).delete(made.webhook.id, "someone"),
    ):
        with pytest.raises(NotFound):
            await act
    assert receiver.taken == []
