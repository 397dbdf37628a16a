"""The agenda predicts what then really runs."""

from dataclasses import replace
from datetime import time, timedelta
from itertools import pairwise

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from wakeful.core.errors import Invalid
from wakeful.timing.bounds import PRESETS
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import RecallRequest

pytestmark = pytest.mark.both_stores

WEEK = 7 * DAY


@pytest.fixture
def agenda(harness):
    return harness.node.services.agenda


async def foreseen(harness, agenda, until):
    found = await agenda.between(harness.user.id, NOON, until)
    return sorted((each.wake_id, each.nominal_at, each.at, each.covers) for each in found.planned)


async def happened(harness):
    """Return the same of what ran: when it was queued is when it began to matter."""
    runs = await harness.node.runs.find(harness.user.id, most=1_000)
    return sorted((run.wake_id, run.nominal_at, run.queued_at, run.covers) for run in runs if run.status == "success")


async def live_a_week(harness):
    """Go from one moment that matters to the next, without the scheduler's safety looks in between."""
    while True:
        await harness.turn()
        now = harness.clock.now()
        moment = await harness.node.store.read(
            lambda tx, now=now: tx.wakes.next_moment(
                "", now, DAY, last_hold=now + SECOND, judge_at=now, latest=now + DAY
            )
        )
        if moment is None or moment > NOON + WEEK:
            return
        harness.clock.set(max(moment, harness.clock.now()))


async def test_a_simulated_week_runs_as_the_agenda_said(harness, agenda):
    quiet = replace(PRESETS["ambient"], quiet_from=time(22), quiet_to=time(7))
    other = await harness.add_agent(bounds=quiet)
    await harness.book(call_type="recurring", at=NOON + HOUR, every=6 * HOUR)
    await harness.book(call_type="recurring", cron="30 9 * * 1-5")
    await harness.book(at=NOON + 3 * DAY)
    await harness.book(call_type="recurring", at=NOON + MINUTE, every=DAY, max_runs=3)
    await harness.book(agent=other, kind="next_run", scheduled_by="agent", at=NOON + 14 * HOUR)  # in quiet hours
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + 2 * DAY)
    expected = await foreseen(harness, agenda, NOON + WEEK)
    await live_a_week(harness)
    assert await happened(harness) == expected
    assert len(expected) > 25


async def test_a_time_that_moves_says_why(harness, agenda):
    quiet = replace(PRESETS["ambient"], quiet_from=time(22), quiet_to=time(7))
    agent = await harness.add_agent(bounds=quiet)
    wake = await harness.book(agent=agent, kind="next_run", scheduled_by="agent", at=NOON + 14 * HOUR)
    paused = await harness.book(at=NOON + HOUR)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + 5 * HOUR)
    found = {each.wake_id: each for each in (await agenda.between(harness.user.id, NOON, NOON + WEEK)).planned}
    assert found[wake.id].reason == "quiet_hours"
    assert found[wake.id].at > found[wake.id].nominal_at == NOON + 14 * HOUR
    assert (found[paused.id].reason, found[paused.id].at) == ("paused", NOON + 5 * HOUR)


async def test_what_ran_is_there_with_its_outcome(harness, agenda):
    wake = await harness.book(at=NOON + HOUR)
    await harness.live_until(NOON + 2 * HOUR)
    found = await agenda.between(harness.user.id, NOON, NOON + DAY)
    assert [(run.wake_id, run.status) for run in found.ran] == [(wake.id, "success")]
    assert found.planned == []


async def test_a_preview_shows_five_times_and_books_nothing(harness, agenda):
    request = RecallRequest(
        call_type="recurring", additional_context_message="(preview)", cron="0 9 * * *", timezone="Asia/Tokyo"
    )
    times = (await agenda.preview(request, harness.agent.id, harness.user.id)).times
    assert len(times) == 5
    assert {each.at - before.at for before, each in pairwise(times)} == {DAY}
    assert await harness.node.wakes.find(harness.user.id) == []


async def test_a_preview_moves_a_next_run_as_the_booking_does(harness, agenda):
    request = NextRunRequest(when="in 5 days", instructions="(preview)")
    found = await agenda.preview_next_run(request, harness.agent.id, harness.user.id)
    booked = await harness.node.services.next_runs.book(request, harness.agent.id, harness.user.id)
    assert [each.at for each in found.times] == [booked.wake.nominal_at]
    assert found.wake.booking == booked.wake.booking
    assert booked.wake.booking["moved_by"] == ["max_horizon"]


async def test_a_preview_of_a_change_saves_nothing(harness, agenda):
    wake = await harness.book(call_type="recurring", at=NOON + HOUR, every=HOUR)
    found = await agenda.preview_edit(wake.id, harness.user.id, {"when": "3h", "interval_seconds": 7200})
    assert [each.at for each in found.times] == [NOON + hours * HOUR for hours in (3, 5, 7, 9, 11)]
    assert (await harness.wake(wake)).nominal_at == NOON + HOUR


async def test_a_pause_without_an_end_holds_runs_and_says_when_they_would_be(harness, agenda):
    hourly = await harness.book(call_type="recurring", at=NOON + HOUR, every=HOUR)
    other = await harness.book(agent=await harness.add_agent(), at=NOON + HOUR)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    found = await agenda.between(harness.user.id, NOON, NOON + 4 * HOUR)
    assert [each.wake_id for each in found.planned] == [other.id]
    assert [(each.wake_id, each.at, each.reason) for each in found.held] == [
        (hourly.id, NOON + hours * HOUR, "paused") for hours in (1, 2, 3, 4)
    ]
    await harness.turn_at(NOON + 150 * MINUTE)  # two are due and held: one run for both as soon as it resumes
    found = await agenda.between(harness.user.id, NOON, NOON + 4 * HOUR)
    assert [(each.at, each.covers) for each in found.held] == [
        (NOON + 150 * MINUTE, 2),
        (NOON + 3 * HOUR, 1),
        (NOON + 4 * HOUR, 1),
    ]
    await harness.node.pauses.resume(harness.user.id, harness.agent.id)
    found = await agenda.between(harness.user.id, NOON, NOON + 4 * HOUR)
    assert (found.held, found.planned[0].covers) == ([], 2)


async def test_too_long_a_stretch_is_refused(harness, agenda):
    with pytest.raises(Invalid, match="92 days"):
        await agenda.between(harness.user.id, NOON, NOON + timedelta(days=365))
    with pytest.raises(Invalid):
        await agenda.between(harness.user.id, NOON, NOON - HOUR)


async def test_someone_elses_wakes_are_in_nobodys_agenda(harness, agenda):
    await harness.book(at=NOON + HOUR)
    assert (await agenda.between("somebody else", NOON, NOON + DAY)).planned == []
