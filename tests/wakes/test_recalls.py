"""Recalls: bookings of agents and people in a session, and the frames on its socket."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from harness import HOUR, MINUTE, NOON, doing
from wakeful.core import ids
from wakeful.core.errors import Invalid, NotFound
from wakeful.core.types import User
from wakeful.store.sessions import NoSuchSession
from wakeful.timing.brief import BriefRefused
from wakeful.timing.lifecycle import SlotTaken
from wakeful.timing.recall_request import NotRecurring, OutOfReach, RecallRequest
from wakeful.toolbox.registry import ToolContext, ToolDeps, Tools
from wakeful.wakes.tools import recall_tools

pytestmark = pytest.mark.both_stores

TODO = "Read notes.txt with read_file and write what changed to report.md."


def once(**changes) -> RecallRequest:
    return RecallRequest(**{"call_type": "once", "when": "in 1 hour", "additional_context_message": TODO} | changes)


async def updates(harness, session) -> list[dict]:
    frames = [json.loads(frame.text) for frame in await harness.node.stream.after(session.id, 0)]
    return [frame for frame in frames if frame["type"] == "recall_update"]


async def actions(harness, session) -> list[str]:
    return [frame["action"] for frame in await updates(harness, session)]


@pytest.fixture
def recalls(harness):
    return harness.node.services.recalls


@pytest.fixture
async def session(harness):
    return await harness.session()


async def test_a_persons_recall_waits_in_its_session_and_those_who_watch_are_told(harness, recalls, session):
    booked = await recalls.book(once(), session.id, harness.user.id)
    assert await recalls.pending(session.id, harness.user.id) == booked.wake
    assert booked.wake.nominal_at == NOON + HOUR
    assert "in 1 h" in booked.told
    [told] = await updates(harness, session)
    assert (told["action"], told["status"], told["recall_id"]) == ("scheduled", "pending", booked.wake.id)


async def test_a_second_recall_is_refused_and_the_first_one_named(harness, recalls, session):
    first = (await recalls.book(once(), session.id, harness.user.id)).wake
    with pytest.raises(SlotTaken, match=first.id):
        await recalls.book(once(when="in 2 hours"), session.id, harness.user.id)
    assert await recalls.pending(session.id, harness.user.id) == first


async def test_an_agent_books_from_inside_its_run(harness, recalls, session):
    booked = []

    async def act(run):
        booked.append(await recalls.book_in_run(once(), run, harness.agent))

    harness.executor.by_session[session.id] = doing(act)
    run = await harness.node.runs.ask(session.id, harness.user.id, "Come back in an hour")
    await harness.work()
    [wake] = [each.wake for each in booked]
    assert (wake.scheduled_by, wake.booked_by_run, wake.session_id) == ("agent", run.id, session.id)


async def test_an_agent_cannot_leave_itself_a_mere_reminder(harness, recalls, session):
    refused = []

    async def act(run):
        with pytest.raises(BriefRefused) as error:
            await recalls.book_in_run(
                once(additional_context_message="Tell the user that an hour has passed."), run, harness.agent
            )
        refused.append(error.value)

    harness.executor.by_session[session.id] = doing(act)
    await harness.node.runs.ask(session.id, harness.user.id, "Remind me")
    await harness.work()
    assert refused[0].field == "additional_context_message"
    assert await recalls.pending(session.id, harness.user.id) is None


async def test_a_person_may_leave_a_reminder_and_is_warned(harness, recalls, session):
    booked = await recalls.book(
        once(additional_context_message="Tell me that an hour has passed."), session.id, harness.user.id
    )
    assert "the agent may not know what to do" in booked.warning
    assert " you" not in booked.warning  # it is for a person, not for the agent
    assert booked.wake.instructions == "Tell me that an hour has passed."


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"when": None}, "when"),
        ({"call_type": "immediate"}, "when"),
        ({"interval_seconds": 60}, "interval_seconds"),
        ({"call_type": "recurring"}, "interval_seconds"),
        ({"call_type": "recurring", "interval_seconds": 1}, "interval_seconds"),
        ({"additional_context_message": "  "}, "additional_context_message"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone_offset": "+15:00"}, "timezone_offset"),
        ({"call_type": "recurring", "cron": "0 9 * * *", "timezone_offset": "+02:00"}, "timezone"),
        ({"call_type": "recurring", "interval_seconds": 60, "max_runs": 0}, "max_runs"),
    ],
)
async def test_a_wrong_request_names_its_field_and_books_nothing(harness, recalls, session, changes, field):
    with pytest.raises(Invalid) as refused:
        await recalls.book(once(**changes), session.id, harness.user.id)
    assert refused.value.field == field
    assert await recalls.pending(session.id, harness.user.id) is None


async def test_a_time_of_day_is_meant_in_the_zone_that_is_given(harness, recalls, session):
    booked = await recalls.book(once(when="tomorrow at 09:00", timezone="Asia/Tokyo"), session.id, harness.user.id)
    assert booked.wake.nominal_at.astimezone().utctimetuple()[3:5] == (0, 0)
    assert booked.wake.timezone == "Asia/Tokyo"


async def test_an_offset_is_enough_for_a_time_of_day(harness, recalls, session):
    booked = await recalls.book(once(when="tomorrow at 09:00", timezone_offset="+02:00"), session.id, harness.user.id)
    assert booked.wake.nominal_at.utctimetuple()[3:5] == (7, 0)


async def test_cancel_keeps_the_row_and_frees_the_slot(harness, recalls, session):
    first = (await recalls.book(once(), session.id, harness.user.id)).wake
    harness.clock.advance(MINUTE)
    await recalls.cancel(session.id, harness.user.id)
    second = (await recalls.book(once(), session.id, harness.user.id)).wake
    listed = await recalls.listed(session.id, harness.user.id)
    assert [(wake.id, wake.status) for wake in listed] == [(second.id, "pending"), (first.id, "cancelled")]
    assert await actions(harness, session) == ["scheduled", "cancelled", "scheduled"]


async def test_cancel_without_a_recall_changes_nothing_but_the_session_must_exist(harness, recalls, session):
    assert await recalls.cancel(session.id, harness.user.id) is None
    with pytest.raises(NotFound):
        await recalls.cancel("no-such-session", harness.user.id)


async def test_skip_goes_to_the_next_time_on_the_grid(harness, recalls, session):
    every_hour = once(call_type="recurring", interval_seconds=3600)
    await recalls.book(every_hour, session.id, harness.user.id)
    skipped = await recalls.skip(session.id, harness.user.id)
    assert skipped.nominal_at == NOON + 2 * HOUR
    assert await actions(harness, session) == ["scheduled", "skipped"]


async def test_only_a_recurring_recall_can_be_skipped(harness, recalls, session):
    with pytest.raises(NotRecurring):
        await recalls.skip(session.id, harness.user.id)
    await recalls.book(once(), session.id, harness.user.id)
    with pytest.raises(NotRecurring):
        await recalls.skip(session.id, harness.user.id)


async def test_an_edited_recall_has_its_new_time_and_text(harness, recalls, session):
    await recalls.book(once(), session.id, harness.user.id)
    changes = {"when": "in 3 hours", "additional_context_message": "Read b.txt with read_file."}
    edited = await recalls.edit(session.id, harness.user.id, changes)
    assert (edited.nominal_at, edited.instructions) == (NOON + 3 * HOUR, "Read b.txt with read_file.")
    assert await actions(harness, session) == ["scheduled", "rescheduled"]


async def test_a_recall_that_waits_for_the_user_says_so(harness, recalls, session):
    await recalls.book(once(when="in 1 minute"), session.id, harness.user.id)
    async with harness.talking(session):
        await harness.turn_at(NOON + MINUTE)
        told = (await updates(harness, session))[-1]
        assert (told["action"], told["status"]) == ("deferred", "pending")
        pending = await recalls.pending(session.id, harness.user.id)
        assert pending.nominal_at == NOON + MINUTE
        assert pending.attempt_at == NOON + MINUTE + timedelta(seconds=60)


async def test_a_recall_is_run_at_once_when_a_person_says_so(harness, recalls, session):
    await recalls.book(once(), session.id, harness.user.id)
    run = await recalls.run_now(session.id, harness.user.id)
    await harness.work()
    assert (await harness.run(run.id)).status == "success"
    assert await recalls.pending(session.id, harness.user.id) is None


async def test_someone_elses_session_is_not_there(harness, recalls, session):
    await recalls.book(once(), session.id, harness.user.id)
    for act in (recalls.pending, recalls.cancel, recalls.listed, recalls.run_now):
        with pytest.raises(NoSuchSession):
            await act(session.id, "stranger")
    with pytest.raises(NoSuchSession):
        await recalls.book(once(), session.id, "stranger")


@pytest.mark.parametrize("role", ["owner", "user"])
async def test_a_tool_reaches_other_peoples_sessions_only_for_an_owner(harness, recalls, session, role):
    other = User(id=ids.new_id(), name="Bo", role=role, created_at=NOON)
    await harness.node.agents.add_user(other)
    run = replace(await harness.node.runs.ask(session.id, harness.user.id, "Hello?"), user_id=other.id)
    if role == "owner":
        assert await recalls.reach(session.id, run) == harness.user.id
    else:
        with pytest.raises(OutOfReach):
            await recalls.reach(session.id, run)


# ── What the model is answered ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def call_tool(harness, recalls, session):
    """Call a tool as the agent does in the middle of a run, and return the answer."""
    agent = replace(harness.agent, toolsets=("recall", "files"))
    run = await harness.node.runs.ask(session.id, harness.user.id, "Do as you like")
    tools = Tools(recall_tools(ToolDeps(recalls)))
    context = ToolContext(run=run, agent=agent, workspace=harness.node.settings.data_dir)

    async def call_tool(name, **arguments):
        answer = await tools.call(name, arguments, context)
        assert answer.success, answer.text
        return answer.text

    return call_tool


ONE = {"additional_context_message": TODO, "call_type": "once", "when": "1h"}


async def test_every_answer_says_when_absolutely_and_relatively_and_the_id(harness, recalls, session, call_tool):
    hourly = ONE | {"call_type": "recurring", "interval_seconds": 3600, "internal_comment": "hourly"}
    booked = await call_tool("schedule_recall", **hourly)
    wake = await recalls.pending(session.id, harness.user.id)
    assert booked == (
        "Booked: you will wake at 2026-03-02 14:00:00+01:00 Europe/Berlin (in 1 h), then every 3600 s. "
        f"Recall id: {wake.id}."
    )
    skipped = await call_tool("manage_recall", action="skip")
    assert skipped == (
        f"Skipped. The next time is 2026-03-02 15:00:00+01:00 Europe/Berlin (in 2 h). Recall id: {wake.id}."
    )
    cancelled = await call_tool("manage_recall", action="cancel")
    assert cancelled == (
        f"Cancelled the recall of 2026-03-02 15:00:00+01:00 Europe/Berlin (in 2 h). Recall id: {wake.id}."
    )
    harness.clock.advance(3 * HOUR)
    listed = await call_tool("manage_recall", action="list")
    assert listed == (
        f"2026-03-02 15:00:00+01:00 Europe/Berlin (1 h ago) recurring (hourly): cancelled. Id: {wake.id}."
    )


async def test_an_immediate_one_says_when_too(harness, recalls, session, call_tool):
    booked = await call_tool("schedule_recall", call_type="immediate", additional_context_message=TODO)
    assert "right after this run, at 2026-03-02 13:00:00+01:00 Europe/Berlin (now)." in booked


async def test_skipping_the_last_time_says_that_it_has_ended(call_tool):
    await call_tool("schedule_recall", **ONE | {"call_type": "recurring", "interval_seconds": 3600, "until": "90m"})
    assert "That was the last time, so it has ended." in await call_tool("manage_recall", action="skip")


async def test_a_list_shows_pending_fired_and_cancelled_ones_the_newest_first(harness, recalls, session, call_tool):
    for number in range(3):
        harness.clock.advance(MINUTE)
        await call_tool("schedule_recall", **ONE | {"internal_comment": f"number {number}"})
        if number == 0:
            await call_tool("manage_recall", action="cancel")
        if number == 1:
            await harness.work()
            await harness.turn_at(NOON + 2 * HOUR)
    lines = (await call_tool("manage_recall", action="list")).splitlines()
    assert [line.partition("number ")[2].split(".")[0] for line in lines] == [
        "2): pending",
        "1): fired",
        "0): cancelled",
    ]


async def test_schedules_do_not_push_recalls_out_of_the_list(harness, recalls, session, call_tool):
    await call_tool("schedule_recall", **ONE)
    for _ in range(60):
        harness.clock.advance(MINUTE / 60)
        await harness.book(session=session, kind="message", scheduled_by="user", at=NOON + HOUR)
        for wake in await harness.node.store.read(lambda tx: tx.wakes.of_session(session.id, 50)):
            if wake.kind == "message" and wake.is_live:
                await harness.node.wakes.cancel(wake.id, harness.user.id)
    assert len((await call_tool("manage_recall", action="list")).splitlines()) == 1
