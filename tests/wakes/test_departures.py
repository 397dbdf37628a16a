"""Wakes of a deleted agent or user are cancelled in pages, however many there are."""

import tracemalloc
from dataclasses import replace

import pytest

from harness import DAY, NOON, eventually
from wakeful.core import ids
from wakeful.core.identity import Identity
from wakeful.store.agents import NoSuchAgent

pytestmark = pytest.mark.both_stores

MANY = 20_000
MAX_BYTES = 7_000_000  # pages take 5 MB however many there are; all in one transaction took 9 MB


async def book_many(harness, agent, count=MANY):
    first = await harness.book(agent=agent, kind="session", at=NOON + DAY)
    wakes = [replace(first, id=ids.new_id(NOON), session_id=None) for _ in range(count - 1)]
    for place in range(0, len(wakes), 1_000):
        await harness.node.store.write(lambda tx, page=wakes[place : place + 1_000]: tx.wakes.add(page))


async def live(harness, agent):
    return await harness.node.store.read(lambda tx: tx.wakes.count_live(harness.user.id, agent.id, NOON + 2 * DAY))


async def delete(harness, agent, what):
    if what == "agent":
        return await harness.node.agents.delete(agent.id, harness.user.id)
    other = await harness.node.agents.add_user(replace(harness.user, id=ids.new_id(), name="Bob"))
    return await harness.node.services.accounts.delete_user(
        Identity(user=other, scope="admin", token_id="t"), harness.user.id
    )


@pytest.fixture
async def agent(harness):
    return await harness.add_agent()


@pytest.mark.whole
@pytest.mark.parametrize("what", ["agent", "user"])
async def test_many_wakes_are_cancelled_in_pages_at_constant_memory(harness, agent, what):
    await book_many(harness, agent)
    kept = await harness.book(agent=harness.agent)
    tracemalloc.start()
    try:
        left = await delete(harness, agent, what)
        now_live = await live(harness, agent)
        await harness.node.services.departures.finish()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_BYTES
    assert left == now_live == MANY - 1_000 + (what == "user")  # the first page had one of the other agent
    assert await live(harness, agent) == 0
    assert (await harness.wake(kept)).is_live == (what == "agent")


async def test_wakes_that_are_left_do_not_fire_and_nothing_new_is_booked(harness, agent):
    await book_many(harness, agent, 1_010)
    assert await harness.node.agents.delete(agent.id, harness.user.id) == 10
    with pytest.raises(NoSuchAgent):
        await harness.book(agent=agent, kind="session", at=NOON + DAY)
    await harness.live_until(NOON + 2 * DAY)
    assert harness.executor.ran == []
    assert await live(harness, agent) == 0


async def test_a_node_that_starts_goes_on_where_another_was_cut_off(harness, agent):
    await book_many(harness, agent, 3_000)
    await harness.node.agents.delete(agent.id, harness.user.id)
    assert await live(harness, agent) == 2_000
    await harness.node.engine.start()
    try:
        await eventually(lambda: is_none_left(harness, agent))
    finally:
        await harness.node.engine.stop()


async def is_none_left(harness, agent):
    return await live(harness, agent) == 0
