"""The clock was ahead and is put right: recurring wakes come as their rules say, and no wrong time lasts."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from wakeful.domain.bounds.bounds import PRESETS
from world import DAY, HOUR, MINUTE, NOON, SECOND, World

IN_2098 = datetime(2098, 6, 1, 12, 0, 30, tzinfo=UTC) - NOON


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_hour": 2}


async def put_right(world):
    await world.node.engine.upkeep.tidy()


async def told(world):
    return [notice for notice in await world.notices() if notice.code == "replanned"]


async def fail(run, steps, stop):
    raise RuntimeError("It did not work.")
    yield


RULES = {
    "every 10 minutes": ({"every": 10 * MINUTE, "at": NOON + MINUTE}, NOON + 11 * MINUTE),
    "each morning": ({"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, NOON + 20 * HOUR + DAY),
}


@pytest.mark.parametrize(("rule", "latest"), RULES.values(), ids=RULES)
async def test_a_start_in_2098_leaves_no_recurring_wake_silent(world, rule, latest):
    wake = await world.book(call_type="recurring", comment="Look", **rule)
    world.clock.step(IN_2098)
    await world.turn()
    planned = (await world.wake(wake)).nominal_at
    assert planned.year == 2098
    world.clock.step(-IN_2098 + SECOND)
    await put_right(world)
    after = await world.wake(wake)
    assert world.clock.now() < after.nominal_at <= latest  # the first instant was made up for in 2098
    [notice] = await told(world)
    assert notice.title == "A recurring wake was planned again"
    assert f"'Look' at {after.nominal_at:%Y-%m-%d %H:%M} UTC" in notice.body
    said = [each for each in await world.why(wake) if each.code == "replanned"]
    assert [each.detail["was"] for each in said] == [planned.isoformat()]
    await world.turn_at(after.nominal_at)
    assert len(await world.runs_of(wake)) == 2


async def test_everyone_is_told_once_about_all_of_theirs(world):
    for _ in range(7):
        await world.book(call_type="recurring", every=HOUR, at=NOON)
    world.clock.step(DAY)
    await world.turn()
    world.clock.step(-DAY)
    for _ in range(3):
        await put_right(world)
    [notice] = await told(world)
    assert notice.title == "7 recurring wakes were planned again"
    assert notice.body.count(" at ") == 6  # five of them, and "at least"
    assert ", and 2 more." in notice.body


# ── An hour back ────────────────────────────────────────────────────────────────────────────────────────────────────


async def live_until(world, end):
    while world.clock.now() < end:
        world.clock.advance(10 * MINUTE)
        await world.turn()


async def test_an_hour_back_does_not_silence_an_interval(world):
    every = 20 * MINUTE
    wake = await world.book(call_type="recurring", every=every, at=NOON + every)
    await live_until(world, NOON + HOUR + 10 * MINUTE)
    world.clock.step(-HOUR)
    await put_right(world)
    after = await world.wake(wake)
    assert world.clock.now() < after.nominal_at <= world.clock.now() + every
    assert after.nominal_at.replace(microsecond=0) == NOON + every  # on the grid that people know
    before = len(await world.runs_of(wake))
    await live_until(world, NOON + HOUR + 10 * MINUTE)
    assert len(await world.runs_of(wake)) - before == HOUR // every
    world.clock.step(-HOUR)  # and once more
    await put_right(world)
    await live_until(world, NOON + HOUR + 10 * MINUTE)
    assert len(await world.runs_of(wake)) - before == 2 * (HOUR // every)


async def test_a_wall_clock_time_that_comes_again_does_not_fire_again(world):
    wake = await world.book(call_type="recurring", cron="*/10 * * * *", timezone="UTC")
    await live_until(world, NOON + HOUR + 10 * MINUTE)
    world.clock.step(-HOUR)
    await put_right(world)
    assert (await world.wake(wake)).nominal_at == NOON + 80 * MINUTE
    assert await told(world) == []
    await live_until(world, NOON + 2 * HOUR)
    nominal = [run.nominal_at for run in await world.runs_of(wake)]
    assert nominal == [NOON + number * 10 * MINUTE for number in range(1, 13)]


@pytest.mark.parametrize("touch", ["fails", "mute", "edit"])
async def test_what_is_written_by_the_right_clock_meanwhile_hides_nothing(world, touch):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON)
    gate = world.gate()

    async def fail_later(run, steps, stop):
        async for event in gate(run, steps, stop):
            yield event
        raise RuntimeError("It did not work.")

    world.executor.default = fail_later
    world.clock.step(IN_2098)
    await world.turn()
    world.clock.step(-IN_2098)
    if touch == "fails":
        await world.let_through(gate)
    elif touch == "mute":
        await world.node.wakes.mute(wake.id, world.user.id, True)
    else:
        await world.node.wakes.edit(wake.id, world.user.id, {"comment": "Look"})
    await put_right(world)
    assert (await world.wake(wake)).nominal_at <= NOON + HOUR + SECOND


# ── What held a wake ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_deferral_by_the_wrong_clock_is_let_go_and_lateness_judged_again(world):
    session = await world.session()
    wake = await world.book(session=session, at=NOON + HOUR)
    async with world.talking(session):
        world.clock.step(IN_2098)
        await world.turn()
        assert (await world.wake(wake)).held_by == "deferred"
    world.clock.step(-IN_2098)
    await put_right(world)
    after = await world.wake(wake)
    assert (after.nominal_at, after.attempt_at, after.is_missed) == (NOON + HOUR, NOON + HOUR, False)
    await world.turn_at(NOON + HOUR)
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


@pytest.mark.parametrize("holder", ["pause", "backoff", "error"])
async def test_no_hold_by_the_wrong_clock_lasts(world, holder):
    wake = await world.book(call_type="recurring", every=HOUR, at=NOON)
    world.clock.step(IN_2098)
    if holder == "pause":
        await world.node.pauses.pause(world.user.id, None, world.clock.now() + 2 * HOUR)
        await world.turn()
    elif holder == "error":
        await world.node.engine.scheduler._firing.set_aside("It could not be read.")
    else:
        world.executor.default = fail
        await world.turn()
        for _ in range(5):
            await world.turn_at((await world.wake(wake)).attempt_at)
        world.executor.default = None
    assert (await world.wake(wake)).attempt_at.year == 2098
    world.clock.step(NOON - world.clock.now())
    await put_right(world)
    await world.turn_at(NOON + 2 * HOUR)
    assert "success" in [run.status for run in await world.runs_of(wake)]


# ── What was counted by the wrong clock ─────────────────────────────────────────────────────────────────────────────


async def test_runs_of_2098_use_up_no_cap_and_no_brake_of_today(world):
    agent = await world.add_agent(bounds=replace(PRESETS["reactive"], daily_cap=2))
    world.clock.step(IN_2098)
    for _ in range(2):
        await world.book(agent=agent, kind="next_run", scheduled_by="agent", at=world.clock.now())
        await world.turn_at(world.clock.now() + SECOND)
    world.clock.step(-IN_2098)
    wake = await world.book(agent=agent, kind="next_run", scheduled_by="agent", at=world.clock.now())
    await world.turn()
    assert [run.status for run in await world.runs_of(wake)] == ["success"]


async def test_a_month_without_the_server_does_not_count_as_forgetting(backend_settings):
    world = World(backend_settings)
    async with world.node.opened():
        await world.settle_in()
        wake = await world.book(call_type="recurring", every=DAY, at=NOON + DAY, scheduled_by="agent")
    world.clock.set(NOON + 31 * DAY)
    world.node = world.another_node()
    async with world.node.opened():
        await put_right(world)
        assert (await world.wake(wake)).status == "pending"
        world.clock.advance(13 * HOUR)
        await put_right(world)
        assert (await world.wake(wake)).reason == "forgotten"


async def test_a_clock_in_2098_forgets_no_recall(world):
    wake = await world.book(call_type="recurring", every=DAY, at=NOON + DAY, scheduled_by="agent")
    world.clock.advance(DAY)
    world.clock.step(IN_2098)
    await put_right(world)
    assert (await world.wake(wake)).status == "pending"
