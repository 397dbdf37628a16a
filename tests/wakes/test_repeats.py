"""Bookings of programs that are sent again: one key books once, on all nodes together."""

import asyncio
from contextlib import nullcontext

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core.labels import TokenBraked, Via
from wakeful.timing.booking_request import BookingRequest, KeyTaken

pytestmark = pytest.mark.both_stores

LAPTOP = Via(door="mcp", token_id="token-1", token_name="laptop")
PHONE = Via(door="mcp", token_id="token-2", token_name="phone")
TODO = "Read notes.txt with read_file."


async def book(harness, node=None, via=LAPTOP, **asked):
    request = BookingRequest(**{"instructions": TODO, "when": "in 2 hours"} | asked)
    return await (node or harness.node).services.bookings.book(request, harness.user.id, via)


async def count(harness):
    sessions = await harness.node.sessions.find(harness.user.id)
    return len(await harness.node.wakes.find(harness.user.id)), len(sessions)


@pytest.mark.parametrize("door", ["recall", "session", "next_run"])
async def test_retries_of_one_key_at_the_same_time_on_two_nodes_book_once(harness, tmp_path, door):
    # An embedded store has one node; its requests still come at the same time.
    is_shared = harness.node.store.is_shared
    other = harness.another_node(data_dir=tmp_path / "other") if is_shared else harness.node
    async with other.opened() if is_shared else nullcontext():
        nodes = [harness.node, other] * 4
        booked = await asyncio.gather(*[book(harness, node, key="k", door=door) for node in nodes])
    assert len({each.wake.id for each in booked}) == 1
    assert sorted(each.is_repeated for each in booked) == [False] + [True] * 7
    assert await count(harness) == (1, 1 if door == "recall" else 0)


async def test_a_key_counts_for_a_day_and_for_its_token_alone(harness):
    first = await book(harness, key="k", when="in 3 days")
    assert not (await book(harness, via=PHONE, key="k", when="in 3 days")).is_repeated
    harness.clock.set(NOON + DAY - SECOND)
    assert (await book(harness, key="k", when="in 3 days")).wake.id == first.wake.id
    harness.clock.set(NOON + DAY)
    assert not (await book(harness, key="k", when="in 3 days")).is_repeated


async def test_a_key_of_another_task_is_refused(harness):
    first = await book(harness, key="k")
    with pytest.raises(KeyTaken, match=first.wake.id):
        await book(harness, key="k", instructions="Write a poem.")
    assert await count(harness) == (1, 1)


@pytest.mark.parametrize("when", ["in 2 hours", "2026-03-02T15:00:00Z"])
async def test_without_a_key_the_same_booking_is_a_retry_for_a_minute(harness, when):
    first = await book(harness, when=when)
    harness.clock.set(NOON + MINUTE - SECOND)
    again = await book(harness, when=when)
    assert (again.wake.id, again.is_repeated) == (first.wake.id, True)
    assert not (await book(harness, when=when, comment="x", interval_seconds=3_600)).is_repeated
    harness.clock.set(NOON + MINUTE)
    assert not (await book(harness, when=when)).is_repeated


async def test_a_repeat_is_answered_even_if_the_hour_of_its_token_is_used_up(harness):
    first = await book(harness, key="k")
    for number in range(harness.node.rules.runs_per_token - 1):
        await book(harness, key=f"k{number}")
    with pytest.raises(TokenBraked):
        await book(harness, key="another")
    assert (await book(harness, key="k")).wake.id == first.wake.id
    harness.clock.set(NOON + HOUR)
    assert not (await book(harness, key="another")).is_repeated  # what was refused has not used its key


async def test_old_keys_are_forgotten(harness):
    await book(harness, key="k")
    harness.clock.set(NOON + DAY)
    await harness.node.store.write(lambda tx: tx.booking_keys.delete_expired(harness.clock.now()))
    read = await harness.node.store.write(
        lambda tx: tx.booking_keys.claim("token-1", "k", "new", harness.clock.now() - DAY)
    )
    assert read == "new"
