"""Next runs: one slot for each agent, bounds for its bookings, and a notice when its loop ends."""

from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, time
from pathlib import Path

import httpx
import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND, doing
from wakeful.app.http import build_http
from wakeful.core.errors import Invalid
from wakeful.core.identity import Identity
from wakeful.core.types import FOREVER
from wakeful.database.service import DatabasePrompt
from wakeful.loop.briefing import Briefings
from wakeful.loop.prompt import system_prompt
from wakeful.store.agents import NoSuchAgent
from wakeful.timing.bounds import PRESETS, BookingRefused
from wakeful.timing.next_run_request import NextRunRequest, NoNextRun, SelfSchedulingOff
from wakeful.toolbox.registry import ToolContext, ToolDeps, Tools
from wakeful.wakes.next_runs import NextRuns
from wakeful.wakes.tools import next_run_tools

pytestmark = pytest.mark.both_stores

TODO = "Read notes.txt with read_file."


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and some runs execute for a while."""
    return backend_settings | {"lease_seconds": 3600}


def request(**changes) -> NextRunRequest:
    return NextRunRequest(**({"instructions": TODO, "in_seconds": 3600} | changes))


async def set_bounds(harness, mode="reactive", **changes):
    bounds = replace(PRESETS[mode], **changes)
    await harness.node.agents.change(harness.agent.id, harness.user, lambda _: {"bounds": bounds})


async def in_run(harness, act):
    """Do something as the agent, from inside a run that answers its user, and return that run."""
    session = await harness.session()
    harness.executor.by_session[session.id] = doing(act)
    run = await harness.node.runs.ask(session.id, harness.user.id, "Go on")
    await harness.work()
    ended = await harness.run(run.id)
    assert ended.status == "success", ended.error
    return ended


async def book_in_run(harness, **changes):
    """Book as the agent and return what came of it, or the refusal."""
    came = []

    async def act(run):
        try:
            came.append(await harness.node.services.next_runs.book_in_run(request(**changes), run, harness.agent))
        except (BookingRefused, SelfSchedulingOff) as refusal:
            came.append(refusal)

    await in_run(harness, act)
    return came[0]


async def call(harness, name, arguments):
    """Call a tool as the model does."""
    agent = replace(harness.agent, toolsets=("next_run",))
    answers = []

    async def act(run):
        tools = Tools(next_run_tools(ToolDeps(harness.node.services.next_runs)))
        context = ToolContext(run=run, agent=agent, workspace=Path("/nowhere"))
        answers.append(await tools.call(name, arguments, context))

    await in_run(harness, act)
    return answers[0]


async def loop_notices(harness):
    return [notice for notice in await harness.notices() if notice.code == "loop_ended"]


@pytest.fixture
def slot(harness) -> NextRuns:
    return harness.node.services.next_runs


async def pending(harness):
    return await harness.node.services.next_runs.pending(harness.agent.id, harness.user.id)


# ── Booking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_agent_books_its_next_run_from_inside_a_run(harness):
    booked = []

    async def act(run):
        booked.append(await harness.node.services.next_runs.book_in_run(request(), run, harness.agent))

    run = await in_run(harness, act)
    wake = await pending(harness)
    assert wake == booked[0].wake
    assert (wake.scheduled_by, wake.booked_by_run, wake.nominal_at) == ("agent", run.id, NOON + HOUR)
    assert (wake.on_miss, wake.priority, wake.session_id) == ("skip", "normal", None)
    assert not booked[0].clamped.clamped


async def test_the_answer_says_when_absolutely_and_relatively_and_what_is_left(harness):
    answer = await call(harness, "schedule_next_run", {"in_seconds": 10, "instructions": TODO})
    wake = await pending(harness)
    assert answer.success
    for part in ("2026-03-02 13:05:00+01:00 Europe/Berlin (in 5 min)", "(in 10 s)", "min_interval", wake.id):
        assert part in answer.text
    assert answer.metadata == {
        "next_run_id": wake.id,
        "scheduled_at": (NOON + 5 * MINUTE).isoformat(),
        "requested_at": "2026-03-02T12:00:10+00:00",
        "clamped": True,
        "clamp_reasons": ["min_interval"],
        "remaining_budget_today": 47,
    }


async def test_a_time_with_its_zone_is_that_instant(harness):
    answer = await call(
        harness, "schedule_next_run", {"scheduled_at": "2026-03-02T18:00:00+01:00", "instructions": TODO}
    )
    assert answer.metadata["clamped"] is False
    assert (await pending(harness)).nominal_at == NOON + 5 * HOUR


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"in_seconds": 60, "scheduled_at": "2026-03-03T09:00:00Z"}, ["in_seconds", "60", "exactly one"]),
        ({}, ["in_seconds", "scheduled_at", "exactly one"]),
        ({"scheduled_at": "2026-03-03T09:00:00"}, ["scheduled_at", "'2026-03-03T09:00:00'", "zone", "+01:00"]),
        ({"scheduled_at": "tomorrow"}, ["scheduled_at", "'tomorrow'", "ISO 8601"]),
        ({"scheduled_at": "2026-02-30T09:00:00Z"}, ["scheduled_at", "2026-02-30", "valid date"]),
        ({"scheduled_at": "2026-03-03T09:00:00+15:00"}, ["scheduled_at", "+15:00", "offset"]),
        ({"scheduled_at": "9999-12-31T23:59:59-14:00"}, ["scheduled_at", "9999-12-31"]),
        ({"in_seconds": 10**12}, ["in_seconds", "1000000000000", "at most"]),
        ({"in_seconds": 10**40}, ["in_seconds", "at most"]),
        ({"in_seconds": 1.5}, ["in_seconds", "1.5", "integer"]),
        ({"in_seconds": 60, "priority": "urgent"}, ["priority", "'urgent'", "'normal' or 'low'"]),
        ({"in_seconds": 60, "on_miss": "retry"}, ["on_miss", "'retry'", "'run_once'"]),
        ({"in_seconds": 60, "context_views": ["open_tasks"]}, ["view", "'open_tasks'", "context_views"]),
        ({"in_seconds": 60, "instructions": "  "}, ["instructions", "'  '", "1 to 32,000 characters"]),
        ({"in_seconds": 60, "instructions": "x" * 100_000}, ["instructions", "100,000", "32,000"]),
        ({"in_seconds": 60, "agent_id": "another"}, ["agent_id", "'another'"]),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
async def test_a_wrong_call_names_field_value_and_what_is_accepted_and_books_nothing(harness, arguments, named):
    answer = await call(harness, "schedule_next_run", {"instructions": TODO} | arguments)
    assert not answer.success
    assert [part for part in named if part not in answer.text] == []
    assert await pending(harness) is None


async def test_the_last_write_wins_and_the_one_before_is_superseded(harness):
    first = (await book_in_run(harness)).wake
    second = (await book_in_run(harness, in_seconds=7200)).wake
    assert await pending(harness) == second
    assert (await harness.wake(first)).status == "superseded"
    [said] = [each for each in await harness.why(first) if each.code == "superseded"]
    assert said.detail == {"by": second.id}


async def test_a_refused_booking_leaves_the_one_before_in_its_slot(harness):
    first = (await book_in_run(harness)).wake
    answer = await call(harness, "schedule_next_run", {"instructions": TODO, "scheduled_at": "nonsense"})
    assert not answer.success
    assert await pending(harness) == first


async def test_an_agent_cancels_its_next_run_and_is_told_if_there_is_none(harness):
    wake = (await book_in_run(harness)).wake
    cancelled = await call(harness, "cancel_next_run", {})
    assert cancelled.success
    assert wake.id in cancelled.text
    assert (await harness.wake(wake)).status == "cancelled"
    again = await call(harness, "cancel_next_run", {})
    assert again.success
    assert "nothing to cancel" in again.text


# ── Bounds ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_past_time_becomes_the_soonest_one(harness):
    booked = await book_in_run(harness, in_seconds=None, scheduled_at="2026-03-01T12:00:00Z")
    assert (booked.clamped.at, booked.clamped.reasons) == (NOON + 5 * MINUTE, ("past", "min_interval"))


async def test_quiet_hours_days_and_horizon_are_clamped_to_a_fixed_point(harness):
    """Asked for a Saturday noon; the horizon ends in that night, and only Monday to Wednesday is open."""
    await set_bounds(
        harness, max_horizon=4 * DAY + 11 * HOUR, quiet_from=time(22), quiet_to=time(7), days=frozenset({0, 1, 2})
    )
    booked = await book_in_run(harness, in_seconds=None, scheduled_at="2026-03-07T12:00:00Z")
    assert booked.clamped.at == datetime(2026, 3, 4, 20, 59, tzinfo=UTC)
    assert booked.clamped.reasons == ("max_horizon", "quiet_hours", "day_not_allowed")
    again = await book_in_run(harness, in_seconds=None, scheduled_at=booked.clamped.at.isoformat())
    assert (again.clamped.at, again.clamped.reasons) == (booked.clamped.at, ())


async def test_a_used_up_cap_refuses_and_the_earliest_time_it_names_is_accepted(harness):
    await set_bounds(harness, daily_cap=1)
    await book_in_run(harness, in_seconds=600)
    await harness.turn_at(NOON + 10 * MINUTE)
    refusal = await book_in_run(harness)
    assert isinstance(refusal, BookingRefused)
    assert refusal.reasons == ("daily_cap",)
    assert refusal.earliest == datetime(2026, 3, 2, 23, tzinfo=UTC)  # midnight in Berlin
    booked = await book_in_run(harness, in_seconds=None, scheduled_at=refusal.earliest.isoformat())
    assert booked.clamped.at == refusal.earliest


async def test_a_pause_refuses_what_falls_into_it_and_nothing_else(harness):
    await harness.node.pauses.pause(harness.user.id, None, NOON + 2 * HOUR)
    answer = await call(harness, "schedule_next_run", {"in_seconds": 3600, "instructions": TODO})
    assert not answer.success
    assert answer.metadata["reasons"] == ["paused"]
    assert answer.metadata["earliest"] == (NOON + 2 * HOUR).isoformat()
    assert "paused" in answer.text
    assert "2026-03-02T15:00:00+01:00" in answer.text
    assert await pending(harness) is None
    assert (await book_in_run(harness, in_seconds=7200)).wake.nominal_at == NOON + 2 * HOUR


async def test_under_manual_only_a_person_books(harness, slot):
    await set_bounds(harness, "manual")
    refusal = await book_in_run(harness)
    assert (refusal.reasons, refusal.earliest) == (("manual",), None)
    assert (await slot.book(request(), harness.agent.id, harness.user.id)).wake.scheduled_by == "user"


async def test_a_person_is_bound_only_by_the_present_and_the_horizon(harness, slot):
    await set_bounds(harness, daily_cap=0, quiet_from=time(12), quiet_to=time(20), days=frozenset({5}))
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, NOON + DAY)
    booked = await slot.book(request(in_seconds=1), harness.agent.id, harness.user.id)
    assert (booked.clamped.reasons, booked.wake.nominal_at) == ((), NOON + SECOND)
    past = await slot.book(request(in_seconds=-60), harness.agent.id, harness.user.id)
    assert (past.clamped.reasons, past.wake.nominal_at) == (("past",), NOON)
    far = await slot.book(request(in_seconds=10 * 86_400), harness.agent.id, harness.user.id)
    assert (far.clamped.reasons, far.wake.nominal_at) == (("max_horizon",), NOON + DAY)


async def test_a_persons_booking_uses_up_nothing_of_the_agents_cap(harness, slot):
    booked = await slot.book(request(in_seconds=60), harness.agent.id, harness.user.id)
    assert booked.clamped.remaining_today == 48
    await harness.turn_at(NOON + MINUTE)
    assert (await book_in_run(harness)).clamped.remaining_today == 47


async def test_someone_elses_agent_is_not_there(harness, slot):
    for act in (
        slot.pending(harness.agent.id, "stranger"),
        slot.cancel(harness.agent.id, "stranger"),
        slot.run_now(harness.agent.id, "stranger"),
        slot.book(request(), harness.agent.id, "stranger"),
    ):
        with pytest.raises(NoSuchAgent):
            await act


async def test_run_now_uses_up_the_slot_even_in_a_pause(harness, slot):
    await slot.book(request(), harness.agent.id, harness.user.id)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    run = await slot.run_now(harness.agent.id, harness.user.id)
    await harness.work()
    assert (await harness.run(run.id)).status == "success"
    with pytest.raises(NoNextRun):
        await slot.run_now(harness.agent.id, harness.user.id)


# ── The end of the loop ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_loop_that_books_no_more_ends_with_one_notice(harness):
    first = (await book_in_run(harness, in_seconds=600)).wake
    chain = [first]

    async def book_once_more(run):
        if len(chain) < 3:
            chain.append(
                (await harness.node.services.next_runs.book_in_run(request(in_seconds=600), run, harness.agent)).wake
            )

    harness.executor.default = doing(book_once_more)
    await harness.live_until(NOON + HOUR)
    assert [(await harness.wake(wake)).status for wake in chain] == ["fired"] * 3
    [notice] = await loop_notices(harness)
    assert (notice.wake_id, notice.agent_id) == (chain[-1].id, harness.agent.id)
    assert "loop_ended" in [each.code for each in await harness.why(chain[-1])]
    assert "loop_ended" not in [each.code for each in await harness.why(chain[0])]


async def test_a_failed_or_stopped_run_ends_the_loop_too(harness):
    async def fail(run):
        raise RuntimeError("no network")

    wake = (await book_in_run(harness, in_seconds=600)).wake
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn_at(NOON + 10 * MINUTE)
    assert [notice.wake_id for notice in await loop_notices(harness)] == [wake.id]
    held = (await book_in_run(harness, in_seconds=600)).wake
    gate = harness.executor.by_wake[held.id] = harness.gate()
    await harness.turn_at(NOON + 20 * MINUTE)
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None, stop=True)
    await harness.let_through(gate)
    assert {notice.wake_id for notice in await loop_notices(harness)} == {wake.id, held.id}


async def test_a_skipped_next_run_ends_the_loop(harness):
    wake = (await book_in_run(harness, in_seconds=600)).wake
    await harness.turn_at(NOON + DAY)
    assert (await harness.wake(wake)).status == "skipped"
    assert [notice.wake_id for notice in await loop_notices(harness)] == [wake.id]


async def test_a_next_run_that_found_no_slot_ends_the_loop(harness):
    gate, other = harness.gate(), await harness.add_agent()
    for _ in range(3):
        harness.executor.by_wake[(await harness.book(agent=other, at=NOON)).id] = gate
    await harness.turn()
    wake = await harness.book(kind="next_run", scheduled_by="agent", priority="low", at=NOON)
    await harness.turn()
    assert await loop_notices(harness) == []
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(wake)).reason == "no_slot"
    assert [notice.wake_id for notice in await loop_notices(harness)] == [wake.id]
    await harness.let_through(gate)


async def test_a_next_run_that_is_cut_off_for_good_ends_the_loop(harness):
    wake = (await book_in_run(harness, in_seconds=600)).wake
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn_at(NOON + 10 * MINUTE)
    for _ in range(harness.node.rules.max_attempts):
        assert await loop_notices(harness) == []
        await harness.crash()
        harness.clock.advance(2 * HOUR)
        await harness.turn()
    assert [run.status for run in await harness.runs_of(wake)] == ["interrupted"]
    assert [notice.wake_id for notice in await loop_notices(harness)] == [wake.id]


async def test_running_an_ended_loop_again_does_not_tell_twice(harness):
    wake = (await book_in_run(harness, in_seconds=600)).wake
    await harness.turn_at(NOON + 10 * MINUTE)
    [run] = await harness.runs_of(wake)
    await harness.node.runs.again(run.id, harness.user.id)
    await harness.work()
    assert len(await loop_notices(harness)) == 1


@pytest.mark.parametrize("changes", [{"scheduled_by": "user"}, {"kind": "recall", "scheduled_by": "agent"}])
async def test_what_is_no_loop_does_not_end_one(harness, changes):
    await harness.book(**({"kind": "next_run", "at": NOON + MINUTE} | changes))
    await harness.turn_at(NOON + MINUTE)
    assert await loop_notices(harness) == []


async def test_a_next_run_that_a_person_booked_meanwhile_keeps_the_loop_from_ending(harness, slot):
    wake = (await book_in_run(harness, in_seconds=600)).wake

    async def person_books(run):
        await slot.book(request(), harness.agent.id, harness.user.id)

    harness.executor.by_wake[wake.id] = doing(person_books)
    await harness.turn_at(NOON + 10 * MINUTE)
    assert await loop_notices(harness) == []  # it would say that no next run is scheduled


async def test_the_notice_of_an_ended_loop_is_resolved_by_the_next_booking(harness, slot):
    await book_in_run(harness, in_seconds=600)
    await harness.turn_at(NOON + 10 * MINUTE)
    [notice] = await loop_notices(harness)
    assert (notice.resolved_at, notice.read_at) == (None, None)
    await slot.book(request(), harness.agent.id, harness.user.id)
    [notice] = await loop_notices(harness)
    assert notice.resolved_at == notice.read_at == harness.clock.now()


async def test_while_another_run_of_the_loop_is_at_work_it_has_not_ended(harness):
    first = (await book_in_run(harness, in_seconds=600)).wake
    gate = harness.gate()

    async def book_and_wait(run, steps, stop):
        await harness.node.services.next_runs.book_in_run(request(in_seconds=300), run, harness.agent)
        async for event in gate(run, steps, stop):
            yield event

    harness.executor.by_wake[first.id] = book_and_wait
    await harness.turn_at(NOON + 10 * MINUTE)
    await harness.turn_at(NOON + 15 * MINUTE)
    assert await loop_notices(harness) == []
    await harness.let_through(gate)
    assert [notice.wake_id for notice in await loop_notices(harness)] == [first.id]


# ── The instructions of a next run ──────────────────────────────────────────────────────────────────────────────────


async def test_the_preamble_says_who_booked_it_and_how_the_last_one_ended(harness):
    told = []

    async def look(run):
        words = DatabasePrompt(harness.node.services.data.files, harness.clock)
        briefing = await Briefings(harness.node.store, harness.clock, words.show_views, words.describe).read(run)
        told.append(system_prompt(briefing, run, harness.clock.now()))
        if len(told) == 1:
            await harness.node.services.next_runs.book_in_run(request(in_seconds=600), run, harness.agent)
            raise RuntimeError("secret words of a server")

    await book_in_run(harness, in_seconds=600)
    harness.executor.default = doing(look)
    await harness.live_until(NOON + HOUR)
    first, second = told
    assert "you yourself had booked for 2026-03-02 12:10:00 UTC" in first
    assert "The run before" not in first
    assert "The run before this one ended at 2026-03-02 12:10:00 UTC: failed (error)." in second
    assert "secret words" not in second


# ── Self-scheduling off and on ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("by", ["agent", "user"])
async def test_switching_it_off_clears_the_slot_whoever_booked_it(harness, by):
    wake = await harness.book(kind="next_run", scheduled_by=by)
    await harness.node.agents.change(harness.agent.id, harness.user, lambda _: {"self_scheduling": False})
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason) == ("cancelled", "self_scheduling_off")
    assert await loop_notices(harness) == []


async def test_switching_it_off_ends_what_the_agent_booked_and_leaves_what_people_did(harness):
    own = [await harness.book(kind=kind, scheduled_by="agent") for kind in ("recall", "message", "session")]
    others = [
        await harness.book(kind="recall"),
        await harness.book(agent=await harness.add_agent(), scheduled_by="agent"),
    ]
    await harness.node.agents.change(harness.agent.id, harness.user, lambda _: {"self_scheduling": False})
    assert {(await harness.wake(wake)).reason for wake in own} == {"self_scheduling_off"}
    assert [(await harness.wake(wake)).status for wake in others] == ["pending", "pending"]


async def test_an_agent_that_is_switched_off_in_mid_run_books_nothing_more(harness):
    await harness.node.agents.change(harness.agent.id, harness.user, lambda _: {"self_scheduling": False})
    assert isinstance(await book_in_run(harness), SelfSchedulingOff)
    assert await pending(harness) is None


async def test_other_changes_leave_bookings_alone(harness):
    wake = await harness.book(kind="next_run", scheduled_by="agent")
    await harness.node.agents.change(harness.agent.id, harness.user, lambda _: {"name": "Marvin"})
    assert (await harness.wake(wake)).status == "pending"


@pytest.mark.parametrize(("mode", "after"), [("manual", "ambient"), ("project", "project")])
async def test_switching_it_on_turns_manual_into_ambient(harness, mode, after):
    agent = await harness.add_agent(self_scheduling=False, bounds=PRESETS[mode])
    changed = await harness.node.agents.change(agent.id, harness.user, lambda _: {"self_scheduling": True})
    assert changed.bounds == PRESETS[after]
    assert await harness.node.agents.get(agent.id, harness.user.id) == changed


# ── Pauses ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("now", "preset", "until"),
    [
        (NOON, "1h", NOON + HOUR),
        (NOON, "4h", NOON + 4 * HOUR),
        (NOON, "indefinitely", FOREVER),
        (NOON, "tomorrow", datetime(2026, 3, 2, 23, tzinfo=UTC)),
        pytest.param(
            datetime(2026, 3, 29, 12, tzinfo=UTC), "tomorrow", datetime(2026, 3, 29, 22, tzinfo=UTC), id="spring"
        ),
        pytest.param(
            datetime(2026, 10, 24, 23, tzinfo=UTC), "tomorrow", datetime(2026, 10, 25, 23, tzinfo=UTC), id="25 hours"
        ),
    ],
)
async def test_a_preset_says_until_when_in_the_agents_zone(harness, now, preset, until):
    harness.clock.set(now)
    for agent_id in (harness.agent.id, None):
        pause = (await harness.node.pauses.pause(harness.user.id, agent_id, None, "busy", preset=preset)).pause
        assert (pause.until, pause.reason) == (until, "busy")


async def test_tomorrow_begins_after_the_gap_where_midnight_does_not_exist(harness):
    """In Beirut the clocks went from 00:00 to 01:00 on Sunday, March 29."""
    agent = await harness.add_agent(timezone="Asia/Beirut")
    harness.clock.set(datetime(2026, 3, 28, 12, tzinfo=UTC))
    pause = (await harness.node.pauses.pause(harness.user.id, agent.id, None, preset="tomorrow")).pause
    assert pause.until == datetime(2026, 3, 28, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("until", "preset", "field"), [(NOON + HOUR, "1h", "preset"), (NOON, None, "until"), (NOON - HOUR, None, "until")]
)
async def test_a_pause_that_makes_no_sense_is_refused(harness, until, preset, field):
    with pytest.raises(Invalid) as refused:
        await harness.node.pauses.pause(harness.user.id, harness.agent.id, until, preset=preset)
    assert refused.value.field == field
    assert await harness.node.pauses.active(harness.user.id, harness.agent.id) == []


async def test_pause_and_stop_stops_what_is_under_way_and_nothing_that_waits(harness):
    gate = harness.gate()
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = gate
    await harness.turn()
    later = await harness.book(at=NOON + MINUTE)
    await harness.node.pauses.pause(harness.user.id, None, None, stop=True)
    assert [run.stop_requested_at for run in await harness.runs_of(wake)] == [NOON]
    await harness.let_through(gate)
    await harness.turn_at(NOON + MINUTE)
    held = await harness.wake(later)
    assert (held.status, held.held_by) == ("pending", "paused")


async def test_a_plain_pause_leaves_live_runs_alone(harness):
    gate = harness.gate()
    wake = await harness.book(at=NOON)
    harness.executor.by_wake[wake.id] = gate
    await harness.turn()
    await harness.node.pauses.pause(harness.user.id, harness.agent.id, None)
    assert [run.stop_requested_at for run in await harness.runs_of(wake)] == [None]
    await harness.let_through(gate)


# ── Over HTTP ───────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def client_of(harness, user, scope="schedule"):
    caller = Identity(user=user, scope="admin", token_id="")
    made = await harness.node.services.accounts.make_token(caller, name="tests", scope=scope)
    transport = httpx.ASGITransport(build_http(harness.node), client=("127.0.0.1", 50_000))
    headers = {"authorization": f"Bearer {made.secret}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", headers=headers) as client:
        yield client


@pytest.fixture
async def http(harness):
    async with client_of(harness, harness.user) as client:
        yield client


async def test_a_person_books_looks_at_and_cancels_the_next_run(harness, http):
    path = f"/agents/{harness.agent.id}/next-run"
    assert (await http.get(path)).json() == {"next_run": None}
    answer = await http.put(path, json={"in_seconds": -5, "instructions": TODO, "priority": "low"})
    booked = answer.json()
    assert answer.status_code == 200
    assert (booked["clamped"], booked["clamp_reasons"]) == (True, ["past"])
    assert booked["requested_at"] == "2026-03-02T11:59:55Z"
    assert "Europe/Berlin" in booked["told"]
    assert booked["next_run"]["scheduled_at"] == "2026-03-02T12:00:00Z"
    assert (booked["next_run"]["scheduled_by"], booked["next_run"]["on_miss"]) == ("user", "skip")
    assert (await http.get(path)).json() == {"next_run": booked["next_run"]}
    assert (await http.delete(path)).json() == {"ok": True}
    assert (await http.delete(path)).json() == {"ok": True}  # an empty slot is what was asked for


async def test_a_person_runs_the_next_run_now(harness, http):
    path = f"/agents/{harness.agent.id}/next-run"
    await http.put(path, json={"in_seconds": 3600, "instructions": TODO})
    answer = await http.post(f"{path}/run-now")
    assert (answer.status_code, answer.json()["trigger"], answer.json()["kind"]) == (202, "run_now", "next_run")
    assert (await http.post(f"{path}/run-now")).status_code == 202  # it still waits for its slot, and comes first
    await harness.work()
    assert (await http.post(f"{path}/run-now")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "in_seconds"),
        ({"in_seconds": 1, "scheduled_at": "2026-03-03T09:00:00Z"}, "in_seconds"),
        ({"scheduled_at": "2026-03-03T09:00:00"}, "scheduled_at"),
        ({"in_seconds": 1, "context_views": ["x"]}, "context_views"),
        ({"in_seconds": 1, "priority": "high"}, "priority"),
        ({"in_seconds": 1, "instructions": " "}, "instructions"),
    ],
)
async def test_a_wrong_booking_over_http_names_its_field(harness, http, body, field):
    answer = await http.put(f"/agents/{harness.agent.id}/next-run", json={"instructions": TODO} | body)
    assert answer.is_client_error
    assert answer.json()["error"]["field"] == field
    assert await pending(harness) is None


async def test_a_person_pauses_and_resumes_one_agent_and_everything(harness, http):
    own, everything = f"/agents/{harness.agent.id}/pause", "/pause"
    paused = (await http.put(own, json={"preset": "4h", "reason": "holiday"})).json()["pause"]
    assert (paused["until"], paused["reason"], paused["agent_id"]) == (
        "2026-03-02T16:00:00Z",
        "holiday",
        harness.agent.id,
    )
    all_paused = (await http.put(everything, json={"preset": "indefinitely"})).json()["pause"]
    assert (all_paused["until"], all_paused["agent_id"]) == (None, None)
    assert (await http.get(own)).json() == {"pause": paused, "everything": all_paused}
    assert (await http.get(everything)).json() == {"pause": all_paused, "agents": [paused]}
    assert (await http.delete(own)).json() == {"ok": True}
    assert (await http.delete(own)).json() == {"ok": False}
    assert (await http.get(own)).json() == {"pause": None, "everything": all_paused}
    assert (await http.delete(everything)).json() == {"ok": True}
    assert (await http.get(everything)).json() == {"pause": None, "agents": []}


async def test_a_pause_until_an_instant_is_given_with_its_zone(harness, http):
    path = f"/agents/{harness.agent.id}/pause"
    until = {"until": "2026-03-02T18:00:00+01:00"}
    assert (await http.put(path, json=until)).json()["pause"]["until"] == "2026-03-02T17:00:00Z"
    for wrong in ({"until": "2026-03-02T18:00:00"}, {"preset": "2h"}, until | {"preset": "1h"}):
        assert (await http.put(path, json=wrong)).is_client_error


async def test_pausing_and_booking_take_the_scope_and_the_agents_own_user(harness, http):
    stranger = replace(harness.user, id="stranger", name="Eve", role="user")
    await harness.node.agents.add_user(stranger)
    paths = [f"/agents/{harness.agent.id}/next-run", f"/agents/{harness.agent.id}/pause"]
    body = {"/next-run": {"in_seconds": 60, "instructions": TODO}}
    async with client_of(harness, stranger) as eve, client_of(harness, harness.user, "chat") as chatter:
        for path in paths:
            asked = body.get(path[path.rindex("/") :], {})
            assert (await eve.get(path)).status_code == 404
            assert (await eve.put(path, json=asked)).status_code == 404
            assert (await eve.delete(path)).status_code == 404
            assert (await chatter.put(path, json=asked)).status_code == 403
            assert (await chatter.delete(path)).status_code == 403
            assert (await chatter.get(path)).status_code == 200
