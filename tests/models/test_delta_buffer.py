import asyncio

import pytest

from wakeful.models.openai_wire import MAX_WAITING, DeltaBuffer, Silence

TEXT, THOUGHT = object(), object()


def never() -> float:
    return asyncio.get_running_loop().time() + 60


async def taking(buffer: DeltaBuffer[object]) -> asyncio.Task[list[tuple[object, str]]]:
    """Return a reader that already waits."""
    task = asyncio.create_task(buffer.take(never))
    await asyncio.sleep(0)
    return task


async def begun(window: float) -> DeltaBuffer[object]:
    """Return a buffer whose first piece was taken just now."""
    buffer = DeltaBuffer[object](window)
    buffer.put(TEXT, "one ")
    assert await buffer.take(never) == [(TEXT, "one ")]
    return buffer


async def test_the_first_piece_wakes_the_reader_at_once():
    buffer = DeltaBuffer[object](window=60)
    reader = await taking(buffer)
    buffer.put(TEXT, "one")
    buffer.notify()
    async with asyncio.timeout(1):
        assert await reader == [(TEXT, "one")]


async def test_pieces_within_the_window_go_out_together_when_it_is_over():
    loop = asyncio.get_running_loop()
    buffer = await begun(window=0.02)
    taken_at = loop.time()
    buffer.put(TEXT, "two ")
    reader = await taking(buffer)
    await asyncio.sleep(0.003)
    buffer.put(TEXT, "three")
    buffer.notify()
    async with asyncio.timeout(1):
        assert await reader == [(TEXT, "two three")]
    assert loop.time() - taken_at >= 0.019  # timers count in steps of their own


async def test_pieces_of_different_kinds_keep_their_order():
    buffer = DeltaBuffer[object]()
    for target, text in ((THOUGHT, "a"), (THOUGHT, "b"), (TEXT, "c"), (THOUGHT, "d")):
        buffer.put(target, text)
    assert await buffer.take(never) == [(THOUGHT, "ab"), (TEXT, "c"), (THOUGHT, "d")]


async def test_the_end_does_not_wait_for_the_window():
    buffer = await begun(window=60)
    buffer.put(TEXT, "two")
    reader = await taking(buffer)
    buffer.close()
    async with asyncio.timeout(1):
        assert await reader == [(TEXT, "two")]
        assert await buffer.take(never) == []


async def test_a_failure_comes_after_everything_before_it():
    buffer = await begun(window=60)
    buffer.put(TEXT, "two")
    buffer.close(ZeroDivisionError())
    assert await buffer.take(never) == [(TEXT, "two")]
    with pytest.raises(ZeroDivisionError):
        await buffer.take(never)


async def test_silence_has_an_end():
    until = asyncio.get_running_loop().time() + 0.005
    with pytest.raises(Silence):
        await DeltaBuffer[object]().take(lambda: until)


async def test_a_writer_waits_for_a_reader_that_is_too_far_behind():
    buffer = DeltaBuffer[object]()
    buffer.put(TEXT, "x" * (MAX_WAITING + 1))
    writer = asyncio.create_task(buffer.make_room())
    await asyncio.sleep(0)
    assert not writer.done()
    await buffer.take(never)
    async with asyncio.timeout(1):
        await writer
