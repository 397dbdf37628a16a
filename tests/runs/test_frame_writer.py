"""Frames of a run: first saved, then published, in order; deltas close together are merged."""

import asyncio

import pytest

from wakeful.core.events import StepSaved, StreamDelta, StreamStart, ThinkingDelta, ThinkingEnd
from wakeful.runs.frame_writer import FrameWriter, batch_seconds


class Store:
    """Notes what is saved; a gate can hold it up, an error can be raised instead."""

    def __init__(self):
        self.writings = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_writing = asyncio.Event()
        self.error = None

    async def save(self, step, frames):
        self.is_writing.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.writings.append((step, list(frames)))

    @property
    def frames(self):
        return [frame for _, frames in self.writings for frame in frames]

    @property
    def text(self):
        return "".join(frame.delta for frame in self.frames if isinstance(frame, StreamDelta))


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def teller(store):
    return FrameWriter(store.save)


STEP = StepSaved(role="assistant", content="Hello")


async def test_what_is_said_is_saved_by_itself_within_a_moment(store, teller):
    async with teller, asyncio.timeout(2):
        await teller.say(StreamStart())
        await store.is_writing.wait()
    assert store.frames == [StreamStart()]


async def test_a_step_is_saved_together_with_what_was_said_before_it(store, teller):
    async with teller:
        await teller.say(StreamDelta(delta="Hel"))
        await teller.say(StreamDelta(delta="lo"))
        await teller.save(STEP)
    assert store.text == "Hello"
    assert [step for step, _ in store.writings if step is not None] == [STEP]
    steps = [number for number, (step, _) in enumerate(store.writings) if step is not None]
    assert steps == [len(store.writings) - 1]


async def test_pieces_that_come_close_together_become_one_frame(store, teller):
    async with teller:
        for _ in range(100):
            await teller.say(StreamDelta(delta="x"))
        await teller.flush()
    assert store.text == "x" * 100
    assert len(store.frames) == 1


async def test_the_first_word_waits_for_nothing_after_frames_without_words(store, teller):
    async with teller:
        await teller.say(StreamStart())
        await teller.flush()
        await teller.say(StreamDelta(delta="Hi"))
        for _ in range(10):  # turns of the event loop, not time
            await asyncio.sleep(0)
        assert store.text == "Hi"


async def test_pieces_of_different_kinds_keep_their_order_and_are_not_merged(store, teller):
    said = [
        StreamStart(),
        ThinkingDelta(delta="a"),
        ThinkingEnd(),
        StreamDelta(delta="b"),
        ThinkingDelta(delta="c"),
        StreamDelta(delta="d"),
    ]
    async with teller:
        for frame in said:
            await teller.say(frame)
        await teller.flush()
    assert store.frames == said


async def test_nothing_is_written_when_nothing_was_said(store, teller):
    async with teller:
        await teller.flush()
    assert store.writings == []
    assert not teller.has_spoken


async def test_what_was_said_last_is_saved_after_the_work_is_over(store, teller):
    async with teller:
        await teller.say(StreamDelta(delta="the end"))
    await teller.flush()
    assert store.text == "the end"


async def test_what_is_being_written_when_the_work_ends_is_not_lost(store, teller):
    store.gate.clear()

    async def work():
        async with teller:
            await teller.say(StreamStart())
            await store.is_writing.wait()
            raise ValueError("the run fails")

    working = asyncio.create_task(work())
    await store.is_writing.wait()
    asyncio.get_running_loop().call_later(0.01, store.gate.set)
    with pytest.raises(ValueError, match="the run fails"):
        await working
    await teller.flush()
    assert store.frames == [StreamStart()]


async def test_work_that_is_cancelled_does_not_wait_for_a_store_that_hangs(store, teller):
    store.gate.clear()

    async def work():
        async with teller:
            await teller.say(StreamStart())
            await asyncio.sleep(60)

    working = asyncio.create_task(work())
    await store.is_writing.wait()
    working.cancel()
    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await working


async def test_an_error_of_the_store_comes_out_at_the_next_word(store, teller):
    store.error = OSError("disk full")
    async with teller:
        await teller.say(StreamStart())
        await store.is_writing.wait()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="disk full"):
            await teller.say(StreamDelta(delta="x"))


async def test_a_run_that_says_more_than_the_store_takes_waits_for_it(store, teller):
    store.gate.clear()
    said = 0

    async def talk():
        nonlocal said
        async with teller:
            for _ in range(5_000):
                await teller.say(ThinkingEnd())
                said += 1
            await teller.flush()

    talking = asyncio.create_task(talk())
    await store.is_writing.wait()
    for _ in range(100):
        await asyncio.sleep(0)
    assert said < 5_000
    store.gate.set()
    await talking
    assert len(store.frames) == 5_000


@pytest.mark.parametrize(
    ("commit", "batch"),
    [
        pytest.param(0.002, 0.02, id="never shorter than 20 ms"),
        pytest.param(0.045, 0.045, id="as long as the commit"),
        pytest.param(2.0, 0.1, id="never longer than 100 ms"),
    ],
)
def test_a_batch_of_frames_lasts_as_long_as_the_last_commit(commit, batch):
    assert batch_seconds(commit) == batch
