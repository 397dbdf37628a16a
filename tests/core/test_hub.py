"""Bounded queues, and a hub that never waits for a subscriber."""

import json
from datetime import UTC, datetime

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from wakeful.core.events import ErrorFrame, RecallUpdate, StreamDelta, ToolCall
from wakeful.core.frames import encode, to_wire
from wakeful.core.hub import MAX_BYTES, MAX_FRAMES, Hub, Sent, numbered


@pytest.fixture
def hub():
    return Hub()


def sent(seq, text):
    return Sent(seq, text, text.encode())


def frames(count, text="x", first=1):
    return [sent(seq, text) for seq in range(first, first + count)]


def test_every_subscriber_gets_what_is_published_in_order(hub):
    with hub.subscribe("a") as first, hub.subscribe("a") as second:
        hub.publish("a", frames(2))
        hub.publish("a", frames(1, first=3))
        assert [frame.seq for frame in first.drain()] == [1, 2, 3]
        assert [frame.seq for frame in second.drain()] == [1, 2, 3]
        assert first.drain() == []


def test_what_is_published_elsewhere_is_not_heard(hub):
    with hub.subscribe("a") as subscription:
        hub.publish("b", frames(1))
        assert subscription.drain() == []
        assert not subscription.wake.is_set()


def test_a_subscriber_is_roused_by_what_comes_and_rests_when_it_has_taken_it(hub):
    with hub.subscribe("a") as subscription:
        hub.publish("a", frames(1))
        assert subscription.wake.is_set()
        subscription.drain()
        assert not subscription.wake.is_set()


def test_who_has_left_hears_nothing_and_leaves_nothing_behind(hub):
    with hub.subscribe("a") as subscription:
        assert hub.count_listeners("a") == 1
    hub.publish("a", frames(1))
    assert subscription.drain() == []
    assert hub.count_listeners("a") == 0


def test_one_who_leaves_takes_nobody_along(hub):
    with hub.subscribe("a") as staying:
        with hub.subscribe("a"):
            pass
        hub.publish("a", frames(1))
        assert len(staying.drain()) == 1


@pytest.mark.parametrize(
    "published",
    [
        pytest.param([frames(1, first=seq) for seq in range(1, MAX_FRAMES + 2)], id="too many, one by one"),
        pytest.param([frames(MAX_FRAMES + 1)], id="too many at once"),
        pytest.param([frames(1, "x" * (MAX_BYTES // 4), first=seq) for seq in range(1, 6)], id="too large together"),
        pytest.param([frames(1, "x" * (MAX_BYTES + 1))], id="one that is too large"),
    ],
)
def test_a_queue_that_overflows_is_emptied_and_its_owner_is_behind(hub, published):
    with hub.subscribe("a") as slow, hub.subscribe("a") as quick:
        for each in published[:-1]:
            hub.publish("a", each)
            quick.drain()
        assert not slow.is_behind
        hub.publish("a", published[-1])
        assert slow.is_behind
        assert slow.wake.is_set()
        assert slow.drain() == []


def test_a_queue_that_is_just_full_is_kept(hub):
    with hub.subscribe("a") as subscription:
        hub.publish("a", frames(MAX_FRAMES))
        assert not subscription.is_behind
        assert len(subscription.drain()) == MAX_FRAMES


def test_who_is_behind_is_given_nothing_more_however_much_comes(hub):
    with hub.subscribe("a") as slow:
        for seq in range(1, 100_000):
            hub.publish("a", [sent(seq, "some words that take a little room")])
        assert slow.is_behind
        assert slow.drain() == []


def test_who_has_caught_up_is_given_what_comes_from_then_on(hub):
    with hub.subscribe("a") as slow:
        hub.publish("a", frames(MAX_FRAMES + 1))
        slow.is_behind = False
        hub.publish("a", frames(1, first=MAX_FRAMES + 2))
        assert [frame.seq for frame in slow.drain()] == [MAX_FRAMES + 2]
        assert not slow.is_behind


def test_room_is_counted_anew_after_each_take(hub):
    with hub.subscribe("a") as subscription:
        for seq in range(1, 20):
            hub.publish("a", [sent(seq, "x" * (MAX_BYTES // 2))])
            assert len(subscription.drain()) == 1
        assert not subscription.is_behind


def test_a_hint_makes_those_of_one_topic_look(hub):
    with hub.subscribe("a") as meant, hub.subscribe("b") as other:
        hub.look("a")
        assert (meant.is_behind, other.is_behind) == (True, False)
        hub.look_everywhere()
        assert other.is_behind
        assert other.wake.is_set()


def test_the_end_of_a_topic_is_told_to_its_subscribers(hub):
    with hub.subscribe("a") as meant, hub.subscribe("b") as other:
        hub.end("a")
        assert (meant.is_over, other.is_over) == (True, False)
        assert meant.wake.is_set()


def test_a_frame_is_written_without_the_fields_that_say_nothing():
    assert to_wire(StreamDelta(delta="x"), "r") == {"type": "stream_delta", "delta": "x", "run_id": "r"}
    assert json.loads(encode(ErrorFrame(message="m", code="c"))) == {"type": "error", "message": "m", "code": "c"}


def test_a_type_comes_first_so_that_a_frame_is_known_by_its_beginning():
    assert encode(StreamDelta(delta="x")).startswith('{"type":"stream_delta"')


def test_empty_values_that_mean_something_are_written():
    frame = ToolCall(tool="t", args={}, result="", success=False, call_id="c")
    written = json.loads(encode(frame))
    assert written == {
        "type": "tool_call",
        "tool": "t",
        "args": {},
        "result": "",
        "success": False,
        "metadata": {},
        "call_id": "c",
        "is_subagent": False,
    }


def test_times_are_written_in_utc():
    at = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    update = RecallUpdate(
        session_id="s", recall_id="r", call_type="once", trigger_at=at, status="pending", action="scheduled"
    )
    assert json.loads(encode(update))["trigger_at"] == "2026-03-02T12:00:00Z"


@pytest.mark.parametrize("delta", ["x", "}", '"}', "\n", "🦜", ""])
def test_a_number_is_added_without_touching_the_rest(delta):
    text = encode(StreamDelta(delta=delta))
    assert json.loads(numbered(text, 7).text) == json.loads(text) | {"seq": 7}


@pytest.mark.parametrize("length", [0, 60, 125, 126, 65_535, 65_536, 200_000])
def test_a_frame_on_the_wire_is_a_websocket_message_of_its_text(length):
    ready = numbered(encode(StreamDelta(delta="é" * length)), 7)
    client = ClientProtocol(parse_uri("ws://somewhere"), state=State.OPEN, max_size=None)
    client.receive_data(ready.wire)
    [message] = client.events_received()
    assert message.opcode == Opcode.TEXT
    assert message.fin
    assert message.data.decode() == ready.text


def test_a_frame_is_one_line_whatever_it_says():
    """Several are kept in one row, one on each line."""
    assert "\n" not in encode(StreamDelta(delta="a\nb\r\n\u2028c"))


def test_frames_are_sent_at_once_to_one_who_waits_and_queued_if_that_does_not_work(hub):
    with hub.subscribe("a") as subscription:
        told = []
        subscription.send_now = lambda given: told.append(given) is None
        hub.publish("a", frames(1))
        assert [frame.seq for given in told for frame in given] == [1]
        assert (subscription.drain(), subscription.wake.is_set()) == ([], False)
        subscription.send_now = lambda _given: False
        hub.publish("a", frames(1, first=2))
        assert subscription.wake.is_set()
        subscription.send_now = lambda given: told.append(given) is None
        hub.publish("a", frames(1, first=3))  # after the one that waits
        assert [frame.seq for frame in subscription.drain()] == [2, 3]
        assert len(told) == 1
        subscription.fall_behind()
        hub.publish("a", frames(1, first=4))
        assert len(told) == 1
