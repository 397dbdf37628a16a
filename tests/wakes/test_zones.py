"""Quiet hours of an agent without a zone of its own are in its user's zone, and in UTC until that is known."""

from dataclasses import replace
from datetime import time

import pytest

from harness import HOUR, MINUTE, NOON
from wakeful.timing.bounds import PRESETS

pytestmark = pytest.mark.both_stores

# At 12:01 UTC it is 21:01 in Tokyo.
QUIET = replace(PRESETS["reactive"], quiet_from=time(20), quiet_to=time(22))


@pytest.fixture
async def agent(harness):
    return await harness.add_agent(timezone=None, bounds=QUIET)


async def book(harness, agent):
    return await harness.book(agent=agent, kind="next_run", scheduled_by="agent", at=NOON + MINUTE)


async def set_zone(harness, zone):
    changed = replace(harness.user, timezone=zone)
    await harness.node.store.write(lambda tx: tx.accounts.save_user(changed))


async def test_they_are_in_utc_while_no_zone_is_known(harness, agent):
    wake = await book(harness, agent)
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(wake)).status == "fired"


async def test_they_are_in_the_users_zone_once_that_is_known(harness, agent):
    wake = await book(harness, agent)
    await set_zone(harness, "Asia/Tokyo")
    await harness.turn_at(NOON + MINUTE)
    held = await harness.wake(wake)
    assert (held.status, held.held_by, held.attempt_at) == ("pending", "quiet_hours", NOON + HOUR)


async def test_an_agents_own_zone_comes_before_its_users(harness):
    agent = await harness.add_agent(timezone="UTC", bounds=QUIET)
    wake = await book(harness, agent)
    await set_zone(harness, "Asia/Tokyo")
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(wake)).status == "fired"
