import asyncio

import pytest

from wakeful.runtime.models.openai_chat.delta_buffer import MAX_WAITING, Mailbox, Silence

TEXT, THOUGHT = object(), object()


def never() -> float:
    return asyncio.get_running_loop().time() + 60


async def taking(mailbox: Mailbox[object]) -> asyncio.Task[list[tuple[object, str]]]:
    """Return a reader that already waits."""
    task = asyncio.create_task(mailbox.take(never))
    await asyncio.sleep(0)
    return task


async def begun(window: float) -> Mailbox[object]:
    """Return a mailbox whose first piece was taken just now."""
    mailbox = Mailbox[object](window)
    mailbox.put(TEXT, "one ")
    assert await mailbox.take(never) == [(TEXT, "one ")]
    return mailbox


async def test_the_first_piece_wakes_the_reader_at_once():
    mailbox = Mailbox[object](window=60)
    reader = await taking(mailbox)
    mailbox.put(TEXT, "one")
    mailbox.tell()
    async with asyncio.timeout(1):
        assert await reader == [(TEXT, "one")]


async def test_pieces_within_the_window_go_out_together_when_it_is_over():
    loop = asyncio.get_running_loop()
    mailbox = await begun(window=0.02)
    taken_at = loop.time()
    mailbox.put(TEXT, "two ")
    reader = await taking(mailbox)
    await asyncio.sleep(0.003)
    mailbox.put(TEXT, "three")
    mailbox.tell()
    async with asyncio.timeout(1):
        assert await reader == [(TEXT, "two three")]
    assert loop.time() - taken_at >= 0.019  # timers count in steps of their own


async def test_pieces_of_different_kinds_keep_their_order():
    mailbox = Mailbox[object]()
    for target, text in ((THOUGHT, "a"), (THOUGHT, "b"), (TEXT, "c"), (THOUGHT, "d")):
        mailbox.put(target, text)
    assert await mailbox.take(never) == [(THOUGHT, "ab"), (TEXT, "c"), (THOUGHT, "d")]


async def test_the_end_does_not_wait_for_the_window():
    mailbox = await begun(window=60)
    mailbox.put(TEXT, "two")
    reader = await taking(mailbox)
    mailbox.close()
    async with asyncio.timeout(1):
        assert await reader == [(TEXT, "two")]
        assert await mailbox.take(never) == []


async def test_a_failure_comes_after_everything_before_it():
    mailbox = await begun(window=60)
    mailbox.put(TEXT, "two")
    mailbox.close(ZeroDivisionError())
    assert await mailbox.take(never) == [(TEXT, "two")]
    with pytest.raises(ZeroDivisionError):
        await mailbox.take(never)


async def test_silence_has_an_end():
    until = asyncio.get_running_loop().time() + 0.005
    with pytest.raises(Silence):
        await Mailbox[object]().take(lambda: until)


async def test_a_writer_waits_for_a_reader_that_is_too_far_behind():
    mailbox = Mailbox[object]()
    mailbox.put(TEXT, "x" * (MAX_WAITING + 1))
    writer = asyncio.create_task(mailbox.make_room())
    await asyncio.sleep(0)
    assert not writer.done()
    await mailbox.take(never)
    async with asyncio.timeout(1):
        await writer
