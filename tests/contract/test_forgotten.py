"""A recurring recall that nobody cares for ends by itself, with a word about it."""

import json

import pytest

from wakeful.domain.doors.recall import RecallRequest
from wakeful.domain.events import StepSaved
from world import DAY, HOUR, NOON, World

TODO = "Read notes.txt with read_file."


@pytest.fixture
async def session(world):
    return await world.session()


async def daily(world, session, **changes):
    defaults = {"call_type": "recurring", "every": DAY, "at": NOON + DAY, "scheduled_by": "agent", "comment": "notes"}
    return await world.book(session=session, **(defaults | changes))


async def tidy(world, after) -> None:
    world.clock.set(NOON + after)
    await world.node.engine.upkeep.tidy()


async def told(world, session) -> list[tuple[str, str]]:
    frames = [json.loads(frame.text) for frame in await world.node.stream.after(session.id, 0)]
    return [(frame["action"], frame["status"]) for frame in frames if frame["type"] == "recall_update"]


async def read_the_brief(run, steps, stop):
    yield StepSaved(role="user", content=TODO, is_recall=True)


@pytest.mark.parametrize("by", ["agent", "user"])
async def test_after_thirty_days_with_nobody_there_it_ends_and_says_how_to_have_it_back(world, session, by):
    wake = await daily(world, session, scheduled_by=by)
    await tidy(world, 30 * DAY)
    assert (await world.wake(wake)).status == "pending"
    await tidy(world, 30 * DAY + HOUR)
    ended = await world.wake(wake)
    assert (ended.status, ended.reason) == ("cancelled", "forgotten")
    [notice] = await world.notices()
    assert (notice.code, notice.wake_id, notice.session_id) == ("forgotten", wake.id, session.id)
    assert "'notes'" in notice.body
    assert f"POST /sessions/{session.id}/recall" in notice.body
    assert (await told(world, session))[-1:] == [("cancelled", "cancelled")]
    assert (await world.why(wake))[-1].detail["reason"] == "forgotten"
    assert len(await world.notices()) == 1


async def test_a_message_of_the_user_in_its_session_keeps_it(world, session):
    wake = await daily(world, session)
    world.clock.set(NOON + 20 * DAY)
    await world.node.runs.ask(session.id, world.user.id, "Thank you")
    await tidy(world, 31 * DAY)
    assert (await world.wake(wake)).status == "pending"
    await tidy(world, 51 * DAY)
    assert (await world.wake(wake)).reason == "forgotten"


async def test_its_own_runs_and_messages_elsewhere_do_not_keep_it(world, session):
    wake = await daily(world, session)
    world.executor.by_wake[wake.id] = read_the_brief
    other = await world.session()
    for number in range(1, 31):
        await world.turn_at(NOON + number * DAY)
    await world.node.runs.ask(other.id, world.user.id, "Hello")
    await tidy(world, 30 * DAY + HOUR)
    assert (await world.wake(wake)).reason == "forgotten"
    [notice] = [each for each in await world.notices() if each.code == "forgotten"]
    assert "came back 30 times" in notice.body


@pytest.mark.parametrize("act", ["edit", "skip", "run_now", "mute"])
async def test_a_persons_hand_in_it_keeps_it(world, session, act):
    wake = await daily(world, session)
    recalls = world.node.services.recalls
    world.clock.set(NOON + 20 * DAY)
    match act:
        case "edit":
            await recalls.edit(session.id, world.user.id, {"internal_comment": "still wanted"})
        case "skip":
            await recalls.skip(session.id, world.user.id)
        case "run_now":
            await recalls.run_now(session.id, world.user.id)
        case "mute":
            await world.node.wakes.mute(wake.id, world.user.id, True)
    await tidy(world, 31 * DAY)
    assert (await world.wake(wake)).status == "pending"
    await tidy(world, 51 * DAY)
    assert (await world.wake(wake)).reason == "forgotten"


async def test_the_agents_own_skip_does_not_keep_it(world, session):
    wake = await daily(world, session)
    world.clock.set(NOON + 20 * DAY)
    await world.node.services.recalls.skip(session.id, world.user.id, by="agent")
    await tidy(world, 31 * DAY)
    assert (await world.wake(wake)).reason == "forgotten"


async def test_what_comes_once_or_is_no_recall_is_not_forgotten(world, session):
    once = await world.book(session=session, at=NOON + 90 * DAY, scheduled_by="agent")
    next_run = await world.book(kind="next_run", at=NOON + 90 * DAY)
    await tidy(world, 60 * DAY)
    assert [(await world.wake(each)).status for each in (once, next_run)] == ["pending", "pending"]
    assert await world.notices() == []


async def test_the_number_of_days_is_a_setting_and_nought_means_never(backend_settings):
    for days, status in ((0, "pending"), (7, "cancelled")):
        world = World(backend_settings | {"forget_recalls_after_days": days})
        async with world.node.opened():
            await world.settle_in()
            wake = await daily(world, await world.session())
            await tidy(world, 8 * DAY)
            assert (await world.wake(wake)).status == status


async def test_the_slot_is_free_to_be_booked_again(world, session):
    await daily(world, session)
    await tidy(world, 31 * DAY)
    request = RecallRequest(call_type="recurring", when="1d", interval_seconds=86_400, instructions=TODO)
    booked = await world.node.services.recalls.book(request, session.id, world.user.id)
    await tidy(world, 60 * DAY)
    assert (await world.wake(booked.wake)).status == "pending"
