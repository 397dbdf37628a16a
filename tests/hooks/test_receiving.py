"""Deliveries of hooks, on both stores: proven, counted once, and turned into runs or notices."""

import asyncio
import json
from datetime import timedelta

import pytest

from harness import HOUR, MINUTE, NOON, SECOND, Harness, doing
from wakeful.core import device_key
from wakeful.datadir.device_key import device_key_of
from wakeful.hooks import rules, schemes
from wakeful.hooks.rules import BadSignature, DeliveryReused, TooManyDeliveries, UnknownHook

pytestmark = pytest.mark.both_stores

DAY = timedelta(days=1)
PUSH = b'{"ref": "refs/heads/main"}'
PING = b'{"zen": "Keep it logically awesome.", "hook_id": 1, "hook": {}}'


@pytest.fixture
async def harness(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        yield harness


class Sender:
    """Another system that has a hook's secret."""

    def __init__(self, harness, revealed):
        self.harness = harness
        self.hook = revealed.hook
        self.secret = revealed.secret

    def sign(self, body=PUSH, *, delivery="d-1", event="push", at=None, secret=None):
        at = at or self.harness.clock.now()
        return schemes.sign(self.hook.scheme, secret or self.secret, delivery, event, at, body)

    async def send(self, body=PUSH, *, node=None, headers=None, **signed):
        receiving = (node or self.harness.node).services.receiving
        return await receiving.receive(self.hook.id, headers or self.sign(body, **signed), body)


async def a_hook(harness, scheme="github", **fields):
    given = {"name": "deploys", "instructions": "Look at it."} | fields
    confirm = given.pop("confirm_session", False)
    made = await harness.node.services.hooks.add(
        harness.user.id, harness.agent.id, scheme, given, confirm_session=confirm
    )
    return Sender(harness, made)


async def deliveries(sender):
    return await sender.harness.node.services.hooks.deliveries(sender.hook.id, sender.harness.user.id)


async def codes(harness):
    return sorted(each.code for each in await harness.notices())


async def test_a_delivery_starts_one_run_in_a_new_session_with_the_hook_as_its_source(harness):
    sender = await a_hook(harness)
    received = await sender.send()
    assert received.answer == "run"
    await harness.turn()
    [ran] = harness.executor.ran
    assert ran.run.id == received.delivery.run_id
    assert (ran.run.door, ran.run.token_id, ran.run.token_name) == ("hook", sender.hook.id, "deploys")
    session = await harness.node.sessions.get(ran.run.session_id, harness.user.id)
    assert session.title == "deploys: push"
    [logged] = await deliveries(sender)
    assert (logged.outcome, logged.event, logged.size) == ("run", "push", len(PUSH))


async def test_the_same_delivery_again_is_a_duplicate_with_the_same_run(harness):
    sender = await a_hook(harness)
    first, again = await sender.send(), await sender.send()
    assert again.answer == "duplicate"
    assert again.delivery.run_id == first.delivery.run_id
    await harness.turn()
    assert len(harness.executor.ran) == 1
    assert (await sender.send()).answer == "duplicate"  # after the run as well


async def test_an_unsigned_id_does_not_make_the_same_body_another_delivery_for_thirty_days(harness):
    sender = await a_hook(harness)
    first = await sender.send(delivery="d-1")
    replayed = await sender.send(delivery="d-2")
    assert (replayed.answer, replayed.delivery.run_id) == ("duplicate", first.delivery.run_id)
    harness.clock.advance(29 * DAY)
    assert (await sender.send(delivery="d-3")).answer == "duplicate"
    harness.clock.advance(2 * DAY)
    await harness.node.engine.upkeep.forget()
    assert (await sender.send(delivery="d-4")).answer == "run"


async def test_a_signed_id_makes_the_same_body_another_delivery(harness):
    sender = await a_hook(harness, "standard")
    first, second = await sender.send(delivery="m-1"), await sender.send(delivery="m-2")
    assert (first.answer, second.answer) == ("run", "run")
    assert first.delivery.run_id != second.delivery.run_id


async def test_a_used_id_with_another_body_is_refused_with_one_notice(harness):
    sender = await a_hook(harness)
    await sender.send()
    for number in range(3):
        with pytest.raises(DeliveryReused):
            await sender.send(json.dumps({"number": number}).encode())
    assert await codes(harness) == ["hook_reused"]
    assert len(await deliveries(sender)) == 1


async def test_racing_duplicates_on_two_nodes_start_one_run(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        sender = await a_hook(harness)
        if not harness.node.store.is_shared:  # one process has an embedded store; its tasks race
            nodes = [harness.node]
            received = await asyncio.gather(*(sender.send(node=nodes[0]) for _ in range(20)))
        else:
            other = harness.another_node(data_dir=harness.settings["data_dir"] / "other")
            async with other.opened():
                nodes = [harness.node, other]
                received = await asyncio.gather(*(sender.send(node=nodes[each % 2]) for each in range(20)))
        assert sorted(each.answer for each in received) == ["duplicate"] * 19 + ["run"]
        assert len({each.delivery.run_id for each in received}) == 1
        await harness.turn()
        assert len(harness.executor.ran) == 1


async def test_a_crash_after_the_answer_loses_nothing(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        received = await (await a_hook(harness)).send()
    harness.node = harness.another_node()  # the process is gone, and nothing had turned
    async with harness.node.opened():
        await harness.turn()
    assert [ran.run.id for ran in harness.executor.ran] == [received.delivery.run_id]


async def test_forged_deliveries_write_nothing_but_one_notice_a_day_and_the_hook_stays_on(harness):
    sender = await a_hook(harness)
    for number in range(50):
        with pytest.raises(BadSignature):
            await sender.send(secret="x" * 20, delivery=f"forged-{number}")
        harness.clock.advance(10 * SECOND)
    assert await codes(harness) == ["hook_refused"]
    assert await deliveries(sender) == []
    hook = await harness.node.services.hooks.get(sender.hook.id, harness.user.id)
    assert (hook.enabled, hook.refused_why) == (True, "wrong")
    assert hook.refused_at is not None
    harness.clock.advance(DAY)
    with pytest.raises(BadSignature):
        await sender.send(secret="x" * 20)
    assert await codes(harness) == ["hook_refused", "hook_refused"]
    assert (await sender.send()).answer == "run"


async def test_a_stale_delivery_is_refused_even_if_it_was_never_seen(harness):
    sender = await a_hook(harness, "stripe")
    with pytest.raises(BadSignature) as refused:
        await sender.send(b'{"id": "evt_1"}', at=NOON - 6 * MINUTE)
    assert refused.value.why == "stale"
    assert (await sender.send(b'{"id": "evt_1"}', at=NOON - 4 * MINUTE)).answer == "run"


async def test_unknown_switched_off_and_deleted_hooks_give_the_same_answer(harness):
    sender = await a_hook(harness)
    other = await a_hook(harness, name="of an agent that goes")
    agent = await harness.add_agent()
    gone = await harness.node.services.hooks.add(
        harness.user.id, agent.id, "github", {"name": "gone", "instructions": "x"}
    )
    await harness.node.agents.delete(agent.id, harness.user.id)
    await harness.node.services.hooks.change(sender.hook.id, harness.user.id, {"enabled": False})
    await harness.node.services.hooks.delete(other.hook.id, harness.user.id)
    answers = set()
    for hook_id in ("no-such-hook", sender.hook.id, other.hook.id, gone.hook.id):
        with pytest.raises(UnknownHook) as refused:
            await harness.node.services.receiving.receive(hook_id, sender.sign(), PUSH)
        answers.add((refused.value.code, refused.value.message, refused.value.hint))
    assert len(answers) == 1


async def test_after_a_rotation_the_old_secret_holds_a_day(harness):
    sender = await a_hook(harness)
    made = await harness.node.services.hooks.rotate(sender.hook.id, harness.user.id)
    assert made.secret != sender.secret
    assert (await sender.send(b"1", delivery="1")).answer == "run"
    harness.clock.advance(23 * HOUR)
    assert (await sender.send(b"2", delivery="2")).answer == "run"
    harness.clock.advance(2 * HOUR)
    with pytest.raises(BadSignature):
        await sender.send(b"3", delivery="3")
    assert (await sender.send(b"3", delivery="3", secret=made.secret)).answer == "run"


async def test_a_secret_that_the_sender_made_is_taken_and_not_shown(harness):
    sender = await a_hook(harness, "stripe")
    pasted = "whsec_0123456789abcdef0123"
    made = await harness.node.services.hooks.rotate(sender.hook.id, harness.user.id, pasted)
    assert made.secret is None
    assert (await sender.send(b'{"id": "evt_2"}', secret=pasted)).answer == "run"


async def test_secrets_are_encrypted_and_bound_to_their_hook(harness):
    sender = await a_hook(harness)
    stored = (await harness.node.services.hooks.get(sender.hook.id, harness.user.id)).secret
    assert sender.secret not in stored
    key = device_key_of(harness.node.settings)
    assert device_key.decrypt_secret(key, stored, sender.hook.id) == sender.secret
    assert device_key.decrypt_secret(key, stored, "another hook") is None


async def test_a_burst_is_folded_into_one_run(harness):
    sender = await a_hook(harness, coalesce_seconds=30)
    received = []
    for number in range(5):
        received.append(await sender.send(json.dumps({"number": number}).encode(), delivery=f"d-{number}"))
        harness.clock.advance(SECOND)
    assert [each.answer for each in received] == ["run", "folded", "folded", "folded", "folded"]
    assert len({each.delivery.run_id for each in received}) == 1
    await harness.turn()
    assert harness.executor.ran == []
    await harness.turn_at(NOON + 30 * SECOND)
    assert len(harness.executor.ran) == 1
    after = await sender.send(b"later", delivery="later")  # the run has begun, so this is the next one's
    assert after.answer == "run"
    assert after.delivery.run_id != received[0].delivery.run_id


async def test_a_run_takes_no_more_than_a_hundred_deliveries(harness):
    sender = await a_hook(harness, coalesce_seconds=60, per_minute=600)
    received = [await sender.send(str(each).encode(), delivery=str(each)) for each in range(rules.MAX_FOLDED + 1)]
    assert len({each.delivery.run_id for each in received}) == 2


async def test_a_ping_and_an_event_outside_the_filter_start_nothing(harness):
    sender = await a_hook(harness, events=("push",))
    assert (await sender.send(PING, delivery="1", event="ping")).answer == "ping"
    assert (await sender.send(b"2", delivery="2", event="issues")).answer == "filtered"
    assert (await sender.send(b"3", delivery="3", event="push")).answer == "run"
    await harness.turn()
    assert len(harness.executor.ran) == 1
    assert sorted(each.outcome for each in await deliveries(sender)) == ["filtered", "ping", "run"]


@pytest.mark.parametrize("delivery", ["d-1", "d-2"])
@pytest.mark.parametrize("event", ["ping", "issues"])
async def test_a_delivery_sent_before_with_another_event_header_is_not_lost(harness, event, delivery):
    """GitHub signs the body alone, so a proxy that holds a delivery back can send it with any event and id."""
    sender = await a_hook(harness, events=("push",))
    assert (await sender.send(event=event, delivery=delivery)).answer == "filtered"
    assert (await sender.send(event="push", delivery="d-1")).answer == "run"
    assert (await sender.send(event=event, delivery=delivery)).answer == "duplicate"
    assert (await sender.send(event="push", delivery="d-3")).answer == "duplicate"
    await harness.turn()
    assert len(harness.executor.ran) == 1


async def test_the_signed_body_decides_what_a_ping_of_github_is(harness):
    sender = await a_hook(harness)
    assert (await sender.send(PING, delivery="1", event="push")).answer == "ping"
    forged = await sender.send(delivery="2", event="ping")
    real = await sender.send(delivery="3")
    assert (forged.answer, real.answer, real.delivery.run_id) == ("run", "duplicate", forged.delivery.run_id)


async def test_more_deliveries_than_a_minute_allows_are_put_off(harness):
    sender = await a_hook(harness, per_minute=3)
    for number in range(3):
        await sender.send(str(number).encode(), delivery=str(number))
        harness.clock.advance(SECOND)
    with pytest.raises(TooManyDeliveries) as refused:
        await sender.send(b"3", delivery="3")
    assert refused.value.seconds == 57
    assert await codes(harness) == ["hook_busy"]
    assert (await sender.send(b"0", delivery="0")).answer == "duplicate"  # counts for nothing
    harness.clock.advance(57 * SECOND)
    assert (await sender.send(b"3", delivery="3")).answer == "run"


async def test_a_hook_that_notifies_needs_no_model(harness):
    sender = await a_hook(harness, mode="notify", instructions="The site was deployed.")
    received = await sender.send(b'{"repository": {"full_name": "ada/engine"}}')
    assert received.answer == "notified"
    await harness.turn()
    assert harness.executor.ran == []
    [notice] = await harness.notices()
    assert (notice.code, notice.title) == ("hook", "deploys: push")
    assert "The site was deployed." in notice.body
    assert "repository: ada/engine" in notice.body


async def test_landing_in_a_session_has_to_be_confirmed(harness):
    session = await harness.session()
    with pytest.raises(rules.SessionUnconfirmed):
        await a_hook(harness, session_id=session.id)
    sender = await a_hook(harness, session_id=session.id, confirm_session=True)
    await sender.send()
    await harness.turn()
    [ran] = harness.executor.ran
    assert ran.run.session_id == session.id


async def test_a_session_that_was_deleted_is_replaced_by_new_ones(harness):
    session = await harness.session()
    sender = await a_hook(harness, session_id=session.id, confirm_session=True)
    await harness.node.sessions.delete(session.id, harness.user.id)
    await sender.send()
    await harness.turn()
    [ran] = harness.executor.ran
    assert ran.run.session_id != session.id
    assert (await harness.node.services.hooks.get(sender.hook.id, harness.user.id)).session_id is None


async def test_the_tools_of_a_run_and_its_session_are_those_that_were_set(harness):
    agent = await harness.add_agent(toolsets=("files", "web", "shell"))
    harness.agent = agent
    sender = await a_hook(harness)
    wake_id = (await sender.send()).delivery.wake_id
    wake = await harness.node.wakes.get(wake_id, harness.user.id)
    assert "read_file" in wake.tools
    assert not {"fetch_page", "run_command"} & set(wake.tools)
    assert wake.session_config["tool_ids"] == list(wake.tools)
    await harness.node.services.hooks.change(sender.hook.id, harness.user.id, {"tools": ("read_file",)})
    wake_id = (await sender.send(b"2", delivery="2")).delivery.wake_id
    assert (await harness.node.wakes.get(wake_id, harness.user.id)).tools == ("read_file",)


async def test_a_tool_that_the_agent_does_not_have_is_refused(harness):
    with pytest.raises(Exception, match="has no tool 'no_such_tool'") as refused:
        await a_hook(harness, tools=("no_such_tool",))
    assert refused.value.field == "tools"


async def test_the_runs_of_a_hook_have_a_brake_of_their_own(harness):
    sender = await a_hook(harness, per_minute=600)
    for number in range(61):
        await sender.send(str(number).encode(), delivery=str(number))
    await harness.turn()
    assert len(harness.executor.ran) == 60
    assert "token_brake" in await codes(harness)
    await harness.live_until(NOON + 2 * HOUR)
    assert len(harness.executor.ran) == 61


async def test_deleting_a_hook_cancels_what_has_not_begun(harness):
    sender = await a_hook(harness, coalesce_seconds=60)
    wake_id = (await sender.send()).delivery.wake_id
    await harness.node.services.hooks.delete(sender.hook.id, harness.user.id)
    assert (await harness.node.wakes.get(wake_id, harness.user.id)).status == "cancelled"
    await harness.live_until(NOON + HOUR)
    assert harness.executor.ran == []


async def test_payloads_are_deleted_before_the_list_and_not_while_a_run_waits(harness):
    sender = await a_hook(harness)
    first = await sender.send(b"first", delivery="1")
    await harness.turn()
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    waiting = await sender.send(b"second", delivery="2")
    harness.clock.advance(4 * DAY)
    await harness.node.engine.upkeep.forget()
    read = harness.node.services.hooks.delivery
    assert (await read(sender.hook.id, harness.user.id, first.delivery.id)).body is None
    assert (await read(sender.hook.id, harness.user.id, waiting.delivery.id)).body == b"second"


async def test_a_run_of_a_deleted_delivery_still_runs(harness):
    sender = await a_hook(harness)
    seen = []

    async def look(run):
        seen.append(await harness.node.store.read(lambda tx: tx.hooks.of_wake(run.wake_id)))

    harness.executor.default = doing(look)
    await sender.send()
    await harness.turn()
    [(name, [payload])] = seen
    assert (name, payload.body) == ("deploys", PUSH)


async def test_a_test_is_signed_passes_the_filter_and_is_new_each_time(harness):
    for scheme in schemes.SENDERS:
        sender = await a_hook(harness, scheme, name=scheme, events=("push",))
        first = await harness.node.services.hooks.test(sender.hook.id, harness.user.id)
        second = await harness.node.services.hooks.test(sender.hook.id, harness.user.id)
        assert (first.answer, second.answer) == ("run", "run"), scheme
