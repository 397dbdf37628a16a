"""A scrape of the metrics while the store is busy: it neither waits nor keeps anyone waiting."""

import asyncio
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import NOON, eventually
from wakeful.core.identity import Identity

pytestmark = pytest.mark.both_stores

MAX_SECONDS = 0.05
BUSY_SECONDS = 1.0


async def scrape(harness):
    owner = Identity(user=harness.user, scope="read", token_id="")
    text = await harness.node.services.metrics.text(owner, is_ready=True, is_draining=False)
    families = text_string_to_metric_families(text.decode())
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


@pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)
async def test_a_scrape_does_not_wait_for_a_busy_store_and_holds_up_no_booking(harness):
    await harness.book()

    async def is_shown() -> bool:
        return (await scrape(harness)).get("wakeful_wakes_pending") == 1

    await eventually(is_shown)
    store = harness.node.store

    async def be_busy(_tx):
        time.sleep(BUSY_SECONDS)  # noqa: ASYNC251  (in the thread of the reader)

    reading = asyncio.create_task(store.read(be_busy))
    await asyncio.sleep(0.02)
    harness.clock.set(NOON.replace(hour=13))
    taken, booked = [], []
    for _ in range(5):
        began = time.perf_counter()
        found = await scrape(harness)
        taken.append(time.perf_counter() - began)
        began = time.perf_counter()
        await store.add_wakes([])
        booked.append(time.perf_counter() - began)
    assert not reading.done()
    assert sorted(taken)[2] <= MAX_SECONDS, taken
    assert max(booked) < BUSY_SECONDS / 2  # writes go on
    assert found["wakeful_wakes_pending"] == 1  # the last figures
    assert found["wakeful_sampled_timestamp_seconds"] == NOON.timestamp()  # and of when they are
    await reading


async def test_a_scrape_leaves_no_lock_behind(harness):
    """Twenty at once are one read, and a write that follows is not kept waiting."""
    await asyncio.gather(*[scrape(harness) for _ in range(20)])
    began = time.perf_counter()
    await harness.book()
    assert time.perf_counter() - began < 1.0
