"""The clock was ahead and is corrected: recurring wakes follow their rules again, and no wrong time stays."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND, Harness, run_tidy_jobs
from wakeful.notices.service import write_times
from wakeful.timing.bounds import PRESETS

pytestmark = pytest.mark.both_stores

IN_2098 = datetime(2098, 6, 1, 12, 0, 30, tzinfo=UTC) - NOON


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_hour": 2}


async def put_right(harness):
    await run_tidy_jobs(harness.node)


async def told(harness):
    return [notice for notice in await harness.notices() if notice.code == "replanned"]


async def fail(run, steps, stop):
    raise RuntimeError("It did not work.")
    yield


RULES = {
    "every 10 minutes": ({"every": 10 * MINUTE, "at": NOON + MINUTE}, NOON + 11 * MINUTE),
    "each morning": ({"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, NOON + 20 * HOUR + DAY),
}


@pytest.mark.parametrize(("rule", "latest"), RULES.values(), ids=RULES)
async def test_a_start_in_2098_leaves_no_recurring_wake_silent(harness, rule, latest):
    wake = await harness.book(call_type="recurring", comment="Look", **rule)
    harness.clock.step(IN_2098)
    await harness.turn()
    planned = (await harness.wake(wake)).nominal_at
    assert planned.year == 2098
    harness.clock.step(-IN_2098 + SECOND)
    await put_right(harness)
    after = await harness.wake(wake)
    assert harness.clock.now() < after.nominal_at <= latest  # the first instant was made up for in 2098
    [notice] = await told(harness)
    assert notice.title == "A recurring run was rescheduled"
    assert f"'Look' at {after.nominal_at:%Y-%m-%d %H:%M:%S} (UTC)" in write_times(notice, None).body
    said = [each for each in await harness.why(wake) if each.code == "replanned"]
    assert [each.detail["was"] for each in said] == [planned.isoformat()]
    await harness.turn_at(after.nominal_at)
    assert len(await harness.runs_of(wake)) == 2


async def test_everyone_is_told_once_about_all_of_theirs(harness):
    for _ in range(7):
        await harness.book(call_type="recurring", every=HOUR, at=NOON)
    harness.clock.step(DAY)
    await harness.turn()
    harness.clock.step(-DAY)
    for _ in range(3):
        await put_right(harness)
    [notice] = await told(harness)
    assert notice.title == "7 recurring runs were rescheduled"
    assert notice.body.count(" at ") == 6  # five of them, and "at least"
    assert ", and 2 more." in notice.body


# ── An hour back ────────────────────────────────────────────────────────────────────────────────────────────────────


async def live_until(harness, end):
    while harness.clock.now() < end:
        harness.clock.advance(10 * MINUTE)
        await harness.turn()


async def test_an_hour_back_does_not_silence_an_interval(harness):
    every = 20 * MINUTE
    wake = await harness.book(call_type="recurring", every=every, at=NOON + every)
    await live_until(harness, NOON + HOUR + 10 * MINUTE)
    harness.clock.step(-HOUR)
    await put_right(harness)
    after = await harness.wake(wake)
    assert harness.clock.now() < after.nominal_at <= harness.clock.now() + every
    assert after.nominal_at.replace(microsecond=0) == NOON + every  # on the grid that people know
    before = len(await harness.runs_of(wake))
    await live_until(harness, NOON + HOUR + 10 * MINUTE)
    assert len(await harness.runs_of(wake)) - before == HOUR // every
    harness.clock.step(-HOUR)  # and once more
    await put_right(harness)
    await live_until(harness, NOON + HOUR + 10 * MINUTE)
    assert len(await harness.runs_of(wake)) - before == 2 * (HOUR // every)


async def test_a_wall_clock_time_that_comes_again_does_not_fire_again(harness):
    wake = await harness.book(call_type="recurring", cron="*/10 * * * *", timezone="UTC")
    await live_until(harness, NOON + HOUR + 10 * MINUTE)
    harness.clock.step(-HOUR)
    await put_right(harness)
    assert (await harness.wake(wake)).nominal_at == NOON + 80 * MINUTE
    assert await told(harness) == []
    await live_until(harness, NOON + 2 * HOUR)
    nominal = [run.nominal_at for run in await harness.runs_of(wake)]
    assert nominal == [NOON + number * 10 * MINUTE for number in range(1, 13)]


@pytest.mark.parametrize("touch", ["fails", "mute", "edit"])
async def test_what_is_written_by_the_right_clock_meanwhile_hides_nothing(harness, touch):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    gate = harness.gate()

    async def fail_later(run, steps, stop):
        async for event in gate(run, steps, stop):
            yield event
        raise RuntimeError("It did not work.")

    harness.executor.default = fail_later
    harness.clock.step(IN_2098)
    await harness.turn()
    harness.clock.step(-IN_2098)
    if touch == "fails":
        await harness.let_through(gate)
    elif touch == "mute":
        await harness.node.wakes.mute(wake.id, harness.user.id, True)
    else:
        await harness.change_wake(wake.id, {"comment": "Look"})
    await put_right(harness)
    assert (await harness.wake(wake)).nominal_at <= NOON + HOUR + SECOND


# ── What held a wake ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_deferral_by_the_wrong_clock_is_let_go_and_lateness_judged_again(harness):
    session = await harness.session()
    wake = await harness.book(session=session, at=NOON + HOUR)
    async with harness.talking(session):
        harness.clock.step(IN_2098)
        await harness.turn()
        assert (await harness.wake(wake)).held_by == "deferred"
    harness.clock.step(-IN_2098)
    await put_right(harness)
    after = await harness.wake(wake)
    assert (after.nominal_at, after.attempt_at, after.is_missed) == (NOON + HOUR, NOON + HOUR, False)
    await harness.turn_at(NOON + HOUR)
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


@pytest.mark.parametrize("holder", ["pause", "backoff", "error"])
async def test_no_hold_by_the_wrong_clock_lasts(harness, holder):
    wake = await harness.book(call_type="recurring", every=HOUR, at=NOON)
    harness.clock.step(IN_2098)
    if holder == "pause":
        await harness.node.pauses.pause(harness.user.id, None, harness.clock.now() + 2 * HOUR)
        await harness.turn()
    elif holder == "error":
        await harness.node.engine.firing.set_aside("It could not be read.")
    else:
        harness.executor.default = fail
        await harness.turn()
        for _ in range(5):
            await harness.turn_at((await harness.wake(wake)).attempt_at)
        harness.executor.default = None
    assert (await harness.wake(wake)).attempt_at.year == 2098
    harness.clock.step(NOON - harness.clock.now())
    await put_right(harness)
    await harness.turn_at(NOON + 2 * HOUR)
    assert "success" in [run.status for run in await harness.runs_of(wake)]


# ── What was counted by the wrong clock ─────────────────────────────────────────────────────────────────────────────


async def test_runs_of_2098_use_up_no_cap_and_no_brake_of_today(harness):
    agent = await harness.add_agent(bounds=replace(PRESETS["reactive"], daily_cap=2))
    harness.clock.step(IN_2098)
    for _ in range(2):
        await harness.book(agent=agent, kind="next_run", scheduled_by="agent", at=harness.clock.now())
        await harness.turn_at(harness.clock.now() + SECOND)
    harness.clock.step(-IN_2098)
    wake = await harness.book(agent=agent, kind="next_run", scheduled_by="agent", at=harness.clock.now())
    await harness.turn()
    assert [run.status for run in await harness.runs_of(wake)] == ["success"]


async def test_a_month_without_the_server_does_not_count_as_forgetting(backend_settings):
    harness = Harness(backend_settings)
    async with harness.node.opened():
        await harness.settle_in()
        wake = await harness.book(call_type="recurring", every=DAY, at=NOON + DAY, scheduled_by="agent")
    harness.clock.set(NOON + 31 * DAY)
    harness.node = harness.another_node()
    async with harness.node.opened():
        await put_right(harness)
        assert (await harness.wake(wake)).status == "pending"
        harness.clock.advance(13 * HOUR)
        await put_right(harness)
        assert (await harness.wake(wake)).reason == "forgotten"


async def test_a_clock_in_2098_forgets_no_recall(harness):
    wake = await harness.book(call_type="recurring", every=DAY, at=NOON + DAY, scheduled_by="agent")
    harness.clock.advance(DAY)
    harness.clock.step(IN_2098)
    await put_right(harness)
    assert (await harness.wake(wake)).status == "pending"
