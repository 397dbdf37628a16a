"""A recurring recall without any attention ends by itself, with a notice."""

import json

import pytest

from harness import DAY, HOUR, NOON, Harness, run_tidy_jobs
from wakeful.core.events import StepSaved
from wakeful.core.outside import ActingRun
from wakeful.timing.recall_request import RecallRequest

pytestmark = pytest.mark.both_stores

TODO = "Read notes.txt with read_file."


@pytest.fixture
async def session(harness):
    return await harness.session()


async def daily(harness, session, **changes):
    defaults = {"call_type": "recurring", "every": DAY, "at": NOON + DAY, "scheduled_by": "agent", "comment": "notes"}
    return await harness.book(session=session, **(defaults | changes))


async def tidy(harness, after) -> None:
    harness.clock.set(NOON + after)
    await run_tidy_jobs(harness.node)


async def told(harness, session) -> list[tuple[str, str]]:
    frames = [json.loads(frame.text) for frame in await harness.node.stream.after(session.id, 0)]
    return [(frame["action"], frame["status"]) for frame in frames if frame["type"] == "recall_update"]


async def read_the_brief(run, steps, stop):
    yield StepSaved(role="user", content=TODO, is_recall=True)


@pytest.mark.parametrize("by", ["agent", "user"])
async def test_after_thirty_days_with_nobody_there_it_ends_and_says_how_to_have_it_back(harness, session, by):
    wake = await daily(harness, session, scheduled_by=by)
    await tidy(harness, 30 * DAY)
    assert (await harness.wake(wake)).status == "pending"
    await tidy(harness, 30 * DAY + HOUR)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason) == ("cancelled", "forgotten")
    [notice] = await harness.notices()
    assert (notice.code, notice.wake_id, notice.session_id) == ("forgotten", wake.id, session.id)
    assert "“notes” ran" in notice.body
    assert "open the session and ask the agent, or schedule it there" in notice.body
    assert (await told(harness, session))[-1:] == [("cancelled", "cancelled")]
    assert (await harness.why(wake))[-1].detail["reason"] == "forgotten"
    assert len(await harness.notices()) == 1


async def test_a_message_of_the_user_in_its_session_keeps_it(harness, session):
    wake = await daily(harness, session)
    harness.clock.set(NOON + 20 * DAY)
    await harness.node.runs.ask(session.id, harness.user.id, "Thank you")
    await tidy(harness, 31 * DAY)
    assert (await harness.wake(wake)).status == "pending"
    await tidy(harness, 51 * DAY)
    assert (await harness.wake(wake)).reason == "forgotten"


async def test_its_own_runs_and_messages_elsewhere_do_not_keep_it(harness, session):
    wake = await daily(harness, session)
    harness.executor.by_wake[wake.id] = read_the_brief
    other = await harness.session()
    for number in range(1, 31):
        await harness.turn_at(NOON + number * DAY)
    await harness.node.runs.ask(other.id, harness.user.id, "Hello")
    await tidy(harness, 30 * DAY + HOUR)
    assert (await harness.wake(wake)).reason == "forgotten"
    [notice] = [each for each in await harness.notices() if each.code == "forgotten"]
    assert "ran 30 times" in notice.body


@pytest.mark.parametrize("act", ["edit", "skip", "run_now", "mute"])
async def test_a_persons_hand_in_it_keeps_it(harness, session, act):
    wake = await daily(harness, session)
    recalls = harness.node.services.recalls
    harness.clock.set(NOON + 20 * DAY)
    match act:
        case "edit":
            await recalls.edit(session.id, harness.user.id, {"internal_comment": "still wanted"})
        case "skip":
            await recalls.skip(session.id, harness.user.id)
        case "run_now":
            await recalls.run_now(session.id, harness.user.id)
        case "mute":
            await harness.node.wakes.mute(wake.id, harness.user.id, True)
    await tidy(harness, 31 * DAY)
    assert (await harness.wake(wake)).status == "pending"
    await tidy(harness, 51 * DAY)
    assert (await harness.wake(wake)).reason == "forgotten"


async def test_the_agents_own_skip_does_not_keep_it(harness, session):
    wake = await daily(harness, session)
    harness.clock.set(NOON + 20 * DAY)
    elsewhere = await harness.session()
    run = await harness.node.runs.ask(elsewhere.id, harness.user.id, "Leave out the next one.")
    await harness.node.services.recalls.skip(session.id, harness.user.id, by=ActingRun(run=run))
    await tidy(harness, 31 * DAY)
    assert (await harness.wake(wake)).reason == "forgotten"


async def test_what_comes_once_or_is_no_recall_is_not_forgotten(harness, session):
    once = await harness.book(session=session, at=NOON + 90 * DAY, scheduled_by="agent")
    next_run = await harness.book(kind="next_run", at=NOON + 90 * DAY)
    await tidy(harness, 60 * DAY)
    assert [(await harness.wake(each)).status for each in (once, next_run)] == ["pending", "pending"]
    assert await harness.notices() == []


async def test_the_number_of_days_is_a_setting_and_nought_means_never(backend_settings):
    for days, status in ((0, "pending"), (7, "cancelled")):
        harness = Harness(backend_settings | {"forget_recalls_after_days": days})
        async with harness.node.opened():
            await harness.settle_in()
            wake = await daily(harness, await harness.session())
            await tidy(harness, 8 * DAY)
            assert (await harness.wake(wake)).status == status


async def test_the_slot_is_free_to_be_booked_again(harness, session):
    await daily(harness, session)
    await tidy(harness, 31 * DAY)
    request = RecallRequest(call_type="recurring", when="1d", interval_seconds=86_400, additional_context_message=TODO)
    booked = await harness.node.services.recalls.book(request, session.id, harness.user.id)
    await tidy(harness, 60 * DAY)
    assert (await harness.wake(booked.wake)).status == "pending"
