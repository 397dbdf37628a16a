"""Writes that wait at the same time are carried out as one."""

import asyncio

import pytest

from wakeful.store.drivers.database import Together


async def double(items):
    await asyncio.sleep(0)
    return [2 * item for item in items]


def noting():
    """Make a list, and what carries items out and notes each batch of them there."""
    batches = []

    async def carry_out(items):
        batches.append(list(items))
        await asyncio.sleep(0.01)
        return items

    return batches, carry_out


async def test_every_caller_gets_its_own_answer():
    together = Together(double)
    assert await asyncio.gather(*[together(number) for number in range(500)]) == [2 * n for n in range(500)]


async def test_calls_that_wait_share_a_batch():
    batches, carry_out = noting()
    together = Together(carry_out, most=8)
    await asyncio.gather(*[together(number) for number in range(20)])
    assert [len(batch) for batch in batches] == [8, 8, 4]


async def test_one_batch_is_under_way_at_a_time():
    under_way = most = 0

    async def carry_out(items):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return items

    together = Together(carry_out, most=4)
    await asyncio.gather(*[together(number) for number in range(50)])
    assert most == 1


async def test_what_waits_is_shared_out_among_the_batches_that_may_be_under_way_at_once():
    batches, carry_out = noting()
    together = Together(carry_out, most=8, at_once=2)
    assert await asyncio.gather(*[together(number) for number in range(10)]) == list(range(10))
    assert batches == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


async def test_of_what_has_the_same_key_one_is_carried_out_after_the_other():
    under_way = []

    async def carry_out(items):
        assert len({*under_way, *items}) == len(under_way) + len(items)
        under_way.extend(items)
        await asyncio.sleep(0.001)
        for item in items:
            under_way.remove(item)
        return items

    together = Together(carry_out, at_once=2, key=lambda item: item)
    wanted = [number % 7 for number in range(100)]
    assert await asyncio.wait_for(asyncio.gather(*[together(number) for number in wanted]), timeout=20) == wanted


async def test_one_bad_call_does_not_spoil_the_others():
    async def carry_out(items):
        await asyncio.sleep(0)
        if 13 in items:
            raise ValueError("unlucky")
        return items

    together = Together(carry_out)
    results = await asyncio.gather(*[together(number) for number in range(20)], return_exceptions=True)
    assert [result for result in results if isinstance(result, ValueError)] == [results[13]]
    assert [result for number, result in enumerate(results) if number != 13] == [n for n in range(20) if n != 13]


async def test_a_caller_that_gives_up_does_not_hold_up_the_others():
    release = asyncio.Event()

    async def carry_out(items):
        await release.wait()
        return items

    together = Together(carry_out)
    impatient, patient = asyncio.create_task(together(1)), asyncio.create_task(together(2))
    await asyncio.sleep(0)
    impatient.cancel()
    release.set()
    assert await patient == 2
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_a_call_made_the_moment_the_worker_leaves_is_carried_out():
    """Each caller calls again from the very callback that answered it."""
    together = Together(double)

    async def caller(number):
        for _ in range(200):
            number = await together(number) // 2
        return number

    answers = await asyncio.wait_for(asyncio.gather(*[caller(n) for n in range(5)]), timeout=20)
    assert answers == [0, 1, 2, 3, 4]
