"""The agenda foresees what then really runs."""

from dataclasses import replace
from datetime import time, timedelta
from itertools import pairwise

import pytest

from wakeful.domain.bounds.bounds import PRESETS
from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.errors import Invalid
from world import DAY, HOUR, MINUTE, NOON, SECOND

WEEK = 7 * DAY


@pytest.fixture
def agenda(world):
    return world.node.services.agenda


async def foreseen(world, agenda, until):
    found = await agenda.between(world.user.id, NOON, until)
    return sorted((each.wake_id, each.nominal_at, each.at, each.covers) for each in found.planned)


async def happened(world):
    """Return the same of what ran: when it was queued is when it began to matter."""
    runs = await world.node.runs.find(world.user.id, most=1_000)
    return sorted((run.wake_id, run.nominal_at, run.queued_at, run.covers) for run in runs if run.status == "success")


async def live_a_week(world):
    """Go from one moment that matters to the next, without the scheduler's safety looks in between."""
    while True:
        await world.turn()
        now = world.clock.now()
        moment = await world.node.store.read(
            lambda tx, now=now: tx.wakes.next_moment("", now, DAY, SECOND, judge_at=now, latest=now + DAY)
        )
        if moment is None or moment > NOON + WEEK:
            return
        world.clock.set(max(moment, world.clock.now()))


async def test_a_simulated_week_runs_as_the_agenda_said(world, agenda):
    quiet = replace(PRESETS["ambient"], quiet_from=time(22), quiet_to=time(7))
    other = await world.add_agent(bounds=quiet)
    await world.book(call_type="recurring", at=NOON + HOUR, every=6 * HOUR)
    await world.book(call_type="recurring", cron="30 9 * * 1-5")
    await world.book(at=NOON + 3 * DAY)
    await world.book(call_type="recurring", at=NOON + MINUTE, every=DAY, max_runs=3)
    await world.book(agent=other, kind="next_run", scheduled_by="agent", at=NOON + 14 * HOUR)  # in quiet hours
    await world.node.pauses.pause(world.user.id, world.agent.id, NOON + 2 * DAY)
    expected = await foreseen(world, agenda, NOON + WEEK)
    await live_a_week(world)
    assert await happened(world) == expected
    assert len(expected) > 25


async def test_a_time_that_moves_says_why(world, agenda):
    quiet = replace(PRESETS["ambient"], quiet_from=time(22), quiet_to=time(7))
    agent = await world.add_agent(bounds=quiet)
    wake = await world.book(agent=agent, kind="next_run", scheduled_by="agent", at=NOON + 14 * HOUR)
    paused = await world.book(at=NOON + HOUR)
    await world.node.pauses.pause(world.user.id, world.agent.id, NOON + 5 * HOUR)
    found = {each.wake_id: each for each in (await agenda.between(world.user.id, NOON, NOON + WEEK)).planned}
    assert found[wake.id].reason == "quiet_hours"
    assert found[wake.id].at > found[wake.id].nominal_at == NOON + 14 * HOUR
    assert (found[paused.id].reason, found[paused.id].at) == ("paused", NOON + 5 * HOUR)


async def test_what_ran_is_there_with_its_outcome(world, agenda):
    wake = await world.book(at=NOON + HOUR)
    await world.live_until(NOON + 2 * HOUR)
    found = await agenda.between(world.user.id, NOON, NOON + DAY)
    assert [(run.wake_id, run.status) for run in found.ran] == [(wake.id, "success")]
    assert found.planned == []


async def test_a_preview_shows_five_times_and_books_nothing(world, agenda):
    request = RecallRequest(call_type="recurring", instructions="(preview)", cron="0 9 * * *", timezone="Asia/Tokyo")
    times = await agenda.preview(request, world.agent.id, world.user.id)
    assert len(times) == 5
    assert {each.at - before.at for before, each in pairwise(times)} == {DAY}
    assert await world.node.wakes.find(world.user.id) == []


async def test_too_long_a_stretch_is_refused(world, agenda):
    with pytest.raises(Invalid, match="92 days"):
        await agenda.between(world.user.id, NOON, NOON + timedelta(days=365))
    with pytest.raises(Invalid):
        await agenda.between(world.user.id, NOON, NOON - HOUR)


async def test_someone_elses_wakes_are_in_nobodys_agenda(world, agenda):
    await world.book(at=NOON + HOUR)
    assert (await agenda.between("somebody else", NOON, NOON + DAY)).planned == []
