"""Schedules: bookings of agents and people in a session, where they run, and the frames about them."""

import pytest

from asgi_client import opened_rest
from harness import DAY, HOUR, MINUTE, NOON, SECOND, Harness, doing
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.errors import NotFound, StoreUnavailable
from wakeful.core.events import StepSaved
from wakeful.models.scripted import scripted
from wakeful.models.streaming import LocalCall, Say
from wakeful.timing.lifecycle import MAX_LIVE_SCHEDULES, TooManySchedules
from wakeful.timing.schedule_request import DelayOutOfBounds, NoSuchSchedule, NotCancellable, ScheduleRequest
from wakeful.toolbox.registry import ToolContext, ToolDeps, Tools
from wakeful.wakes.tools import scheduler_tools

pytestmark = pytest.mark.both_stores

MODEL = "openai:gpt-4o"


def message(**changes) -> ScheduleRequest:
    return ScheduleRequest(**{"kind": "message", "message": "Look at the build.", "delay_ms": 60_000} | changes)


def fresh(**changes) -> ScheduleRequest:
    return message(**{"kind": "session", "session_config": {}} | changes)


@pytest.fixture
def schedules(harness):
    return harness.node.services.schedules


@pytest.fixture
async def session(harness):
    return await harness.session()


class Booker:
    """An agent in the middle of a run, with the scheduler in its hands."""

    def __init__(self, harness, run, agent, only=None):
        self.run = run
        self._tools = Tools(scheduler_tools(ToolDeps(harness.node.services.schedules)))
        self._context = ToolContext(run=run, agent=agent, workspace=harness.node.settings.data_dir, only=only)

    async def __call__(self, op="create", **arguments):
        return await self._tools.call("scheduler", {"op": op} | arguments, self._context)

    async def book(self, **arguments):
        asked = {"kind": "message", "message": "Look at the build.", "delay_ms": 60_000} | arguments
        booked = await self(**asked)
        assert booked.success, booked.text
        return booked.metadata["schedule_id"]


@pytest.fixture
async def agent(harness):
    return await harness.add_agent(toolsets=("scheduler", "files"))


@pytest.fixture
async def booker(harness, agent):
    session = await harness.session(agent)
    return Booker(harness, await harness.node.runs.ask(session.id, harness.user.id, "Do as you like"), agent)


async def live(harness, session_id):
    return await harness.node.services.schedules.pending(session_id, harness.user.id)


# ── The tool ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_agent_books_and_is_told_when_and_under_which_id(harness, booker):
    booked = await booker(kind="message", message="Look at the build.", delay_ms=600_000, label="check-build")
    assert booked.success
    for words in ("at 2026-03-02 13:10:00+01:00 Europe/Berlin", "in 10 min", booked.metadata["schedule_id"]):
        assert words in booked.text
    [schedule] = await live(harness, booker.run.session_id)
    assert schedule.id == booked.metadata["schedule_id"]
    assert schedule.id.startswith("sch-")
    assert (schedule.label, schedule.status, schedule.fire_at) == ("check-build", "pending", NOON + 10 * MINUTE)


async def test_who_booked_is_stamped_by_the_host(harness, booker):
    schedule_id = await booker.book()
    wake = await harness.node.wakes.get(schedule_id.removeprefix("sch-"), harness.user.id)
    assert (wake.scheduled_by, wake.booked_by_run, wake.session_id) == ("agent", booker.run.id, booker.run.session_id)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"op": "explode"}, "op"),
        ({"kind": None}, "`kind`"),
        ({"kind": "recurring"}, "kind"),
        ({"message": None}, "`message`"),
        ({"message": " "}, "`message`"),
        ({"message": "x" * 100_000}, "got 100,000"),
        ({"delay_ms": None}, "Exactly one of `delay_ms` and `at`"),
        ({"at": "2026-03-02T13:00:00Z"}, "Exactly one of `delay_ms` and `at`"),
        ({"delay_ms": 999}, "must be 1,000 to 86,400,000 ms (24 h) ahead, got 999 ms"),
        ({"delay_ms": 90_000_000}, "must be 1,000 to 86,400,000 ms (24 h) ahead, got 90,000,000 ms"),
        ({"delay_ms": None, "at": "2026-03-02T13:00:00"}, "'2026-03-02T13:00:00'"),
        ({"delay_ms": None, "at": "2026-03-02T12:00:00.5Z"}, "500 ms ahead"),
        ({"session_config": {}}, "`session_config`"),
        ({"kind": "session"}, "`session_config`"),
        ({"kind": "session", "session_config": {"colour": "red"}}, "no key 'colour'"),
        ({"kind": "session", "session_config": {"tool_ids": ["run_command"]}}, "'run_command'"),
        ({"kind": "session", "session_config": {"model": "openai:o9"}}, "'openai:o9'"),
        ({"schedule_id": "sch-1"}, "`schedule_id`"),
        ({"when": "tomorrow"}, "when"),
        ({"op": "list"}, "`delay_ms`"),
        ({"op": "cancel"}, "`delay_ms`"),
    ],
)
async def test_a_wrong_call_is_refused_in_one_sentence_and_books_nothing(harness, booker, arguments, said):
    asked = {"op": "create", "kind": "message", "message": "Look.", "delay_ms": 60_000} | arguments
    refused = await booker(**{name: value for name, value in asked.items() if value is not None})
    assert not refused.success
    assert said in refused.text
    assert await live(harness, booker.run.session_id) == []


async def test_list_shows_what_waits_here_the_soonest_first(harness, booker, agent):
    later = await booker.book(delay_ms=7_200_000)
    sooner = await booker.book(label="soon")
    elsewhere = Booker(
        harness, await harness.node.runs.ask((await harness.session(agent)).id, harness.user.id, "Hello"), agent
    )
    await elsewhere.book()
    cancelled = await booker.book()
    await booker("cancel", schedule_id=cancelled)
    listed = await booker("list")
    first, second = listed.text.splitlines()
    assert first == f"{sooner} message (soon): pending, 2026-03-02 13:01:00+01:00 Europe/Berlin (in 1 min)."
    assert second.startswith(later)
    assert [each["schedule_id"] for each in listed.metadata["schedules"]] == [sooner, later]


async def test_list_of_nothing_says_so(booker):
    assert (await booker("list")).text == "Nothing is scheduled in this session."


@pytest.mark.parametrize("form", ["with sch-", "bare"])
async def test_cancel_takes_both_forms_of_an_id(harness, booker, form):
    schedule_id = await booker.book()
    given = schedule_id if form == "with sch-" else schedule_id.removeprefix("sch-")
    cancelled = await booker("cancel", schedule_id=given)
    assert cancelled.success
    for words in (schedule_id, "2026-03-02 13:01:00+01:00 Europe/Berlin", "in 1 min"):
        assert words in cancelled.text
    assert await live(harness, booker.run.session_id) == []


async def test_cancel_does_not_reach_other_sessions_nor_other_kinds(harness, booker, schedules, session):
    other = (await schedules.book(message(), session.id, harness.user.id)).schedule
    recall = await harness.book(session=await harness.session())
    for schedule_id in (other.id, recall.id, "sch-nothing", "sch-", "\x00"):
        refused = await booker("cancel", schedule_id=schedule_id)
        assert not refused.success
        assert repr(schedule_id) in refused.text
    assert (await harness.wake(recall)).status == "pending"
    assert (await schedules.get(other.id, harness.user.id)).status == "pending"


async def test_cancel_without_an_id_is_refused(booker):
    assert "`schedule_id` is missing" in (await booker("cancel")).text


async def test_what_has_no_effect_is_said(booker):
    config = {"cache_breakpoints": ["system"], "session_name": "Review"}
    booked = await booker(kind="session", message="Review it.", delay_ms=1_000, session_config=config)
    assert "The model 'demo' ignores: cache_breakpoints." in booked.text
    assert booked.metadata["session_config_summary"]["session_name"] == "Review"


async def test_a_run_with_few_tools_cannot_book_a_session_with_more(harness, agent, booker):
    narrow = Booker(harness, booker.run, agent, only=["scheduler", "read_file"])
    refused = await narrow(kind="session", message="Go.", delay_ms=1_000, session_config={"tool_ids": ["write_file"]})
    assert "'write_file'" in refused.text
    booked = await narrow.book(kind="session", session_config={})
    wake = await harness.node.wakes.get(booked.removeprefix("sch-"), harness.user.id)
    assert sorted(wake.tools) == ["read_file", "scheduler"]


async def test_the_51st_is_refused_until_one_is_cancelled(harness, booker):
    booked = [await booker.book(delay_ms=1_000 * (number + 1)) for number in range(MAX_LIVE_SCHEDULES)]
    refused = await booker(kind="message", message="One more.", delay_ms=1_000)
    assert (refused.success, refused.metadata["code"]) == (False, "too_many_schedules")
    assert "50" in refused.text
    assert len(await live(harness, booker.run.session_id)) == MAX_LIVE_SCHEDULES
    await booker("cancel", schedule_id=booked[7])
    await booker.book()


# ── Where it lands ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_lands_in_its_session_at_its_time_and_not_before(harness, schedules, session):
    schedule = (await schedules.book(message(), session.id, harness.user.id)).schedule
    await harness.turn_at(NOON + MINUTE - SECOND)
    assert harness.executor.ran == []
    await harness.turn_at(NOON + MINUTE)
    assert [ran.run.session_id for ran in harness.executor.ran] == [session.id]
    shown = await schedules.get(schedule.id, harness.user.id)
    assert (shown.status, shown.run_status, shown.created_session_id) == ("delivered", "success", None)


@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "2026-03-02T12:00:00Z", "2026-03-02T12:00:00.0009Z"])
async def test_a_time_that_is_past_comes_at_once(harness, schedules, session, at):
    booked = await schedules.book(message(delay_ms=None, at=at), session.id, harness.user.id)
    assert booked.told.endswith("(now)")
    await harness.turn()
    assert (await schedules.get(booked.schedule.id, harness.user.id)).status == "delivered"


async def test_messages_wait_for_an_idle_session_and_come_one_at_a_time_in_their_order(harness, schedules, session):
    async def book(delay_ms):
        harness.clock.advance(SECOND / 1_000)  # booked one after the other
        at = (NOON + delay_ms * SECOND / 1_000).isoformat()
        return (await schedules.book(message(delay_ms=None, at=at), session.id, harness.user.id)).schedule.id

    third, first, second = await book(9_000), await book(5_000), await book(5_000)
    async with harness.talking(session):
        await harness.turn_at(NOON + 10 * SECOND)
        waiting = await schedules.listed(session.id, harness.user.id)
        assert {schedule.status for schedule in waiting} == {"queued"}
        assert {schedule.run_status for schedule in waiting} == {"queued"}
    gate = harness.executor.default = harness.gate()
    harness.clock.advance(SECOND)  # which the user, who wrote a moment ago, has after each run's end
    await harness.work()
    told = {each.id: each.status for each in await schedules.listed(session.id, harness.user.id)}
    assert told == {first: "delivered", second: "queued", third: "queued"}
    await harness.let_through(gate)
    await harness.live_until(NOON + MINUTE)
    order = [f"sch-{ran.run.wake_id}" for ran in harness.executor.ran if ran.run.wake_id]
    assert order == [first, second, third]


async def test_a_fresh_session_does_not_wait_for_its_origin(harness, schedules, session):
    config = {"session_name": "Morning review"}
    schedule = (
        await schedules.book(fresh(label="morning", session_config=config), session.id, harness.user.id)
    ).schedule
    async with harness.talking(session):
        await harness.turn_at(NOON + MINUTE)
        shown = await schedules.get(schedule.id, harness.user.id)
    assert (shown.status, shown.run_status) == ("delivered", "success")
    made = await harness.node.sessions.get(shown.created_session_id, harness.user.id)
    assert (made.title, made.agent_id, made.user_id) == ("Morning review", harness.agent.id, harness.user.id)
    origin = (made.origin_session_id, f"sch-{made.origin_wake_id}", made.origin_label)
    assert origin == (session.id, schedule.id, "morning")


async def test_a_pending_one_that_is_cancelled_never_comes(harness, schedules, session):
    schedule = (await schedules.book(message(), session.id, harness.user.id)).schedule
    assert (await schedules.cancel(schedule.id, harness.user.id)).status == "cancelled"
    await harness.live_until(NOON + HOUR)
    assert harness.executor.ran == []
    assert (await schedules.get(schedule.id, harness.user.id)).status == "cancelled"


async def test_a_queued_one_can_still_be_cancelled(harness, schedules, session):
    schedule = (await schedules.book(message(delay_ms=10_000), session.id, harness.user.id)).schedule
    async with harness.talking(session):
        await harness.turn_at(NOON + 10 * SECOND)
        await schedules.cancel(schedule.id, harness.user.id)
    await harness.work()
    shown = await schedules.get(schedule.id, harness.user.id)
    assert (shown.status, shown.run_status) == ("cancelled", "skipped")
    assert [ran.run.wake_id for ran in harness.executor.ran] == [None]


@pytest.mark.parametrize("when", ["running", "ended"])
async def test_a_delivered_one_cannot_be_cancelled(harness, schedules, session, when):
    schedule = (await schedules.book(message(), session.id, harness.user.id)).schedule
    gate = harness.executor.default = harness.gate()
    await harness.turn_at(NOON + MINUTE)
    if when == "ended":
        await harness.let_through(gate)
    with pytest.raises(NotCancellable, match="is delivered, so it cannot be cancelled"):
        await schedules.cancel(schedule.id, harness.user.id)
    await harness.let_through(gate)
    assert (await schedules.get(schedule.id, harness.user.id)).run_status == "success"


async def test_a_cancelled_one_cannot_be_cancelled_again(harness, schedules, session):
    schedule = (await schedules.book(message(), session.id, harness.user.id)).schedule
    await schedules.cancel(schedule.id, harness.user.id)
    with pytest.raises(NotCancellable, match="is cancelled"):
        await schedules.cancel(schedule.id, harness.user.id)


# ── When it fails ───────────────────────────────────────────────────────────────────────────────────────────────────


async def fail(run):
    raise RuntimeError("no network")


async def test_a_store_that_is_away_fails_no_session(harness, schedules, session, monkeypatch):
    schedule = (await schedules.book(fresh(), session.id, harness.user.id)).schedule
    write = harness.node.store.write
    troubles = iter(("the batch",))

    async def come_back_late(work, **more):
        if next(troubles, None):
            raise StoreUnavailable("The database does not answer.")
        return await write(work, **more)

    monkeypatch.setattr(harness.node.store, "write", come_back_late)
    with pytest.raises(StoreUnavailable):
        await harness.turn_at(NOON + MINUTE)
    assert (await schedules.get(schedule.id, harness.user.id)).status == "pending"
    await harness.turn()
    assert (await schedules.get(schedule.id, harness.user.id)).status == "delivered"


async def test_a_message_that_cannot_be_put_into_the_queue_is_told_and_tried_again(harness, schedules, session):
    schedule = (await schedules.book(message(), session.id, harness.user.id)).schedule
    await harness.sql("ALTER TABLE runs RENAME COLUMN covers TO mislaid;")
    await harness.node.engine.scheduler.fire_batch()
    harness.clock.set(NOON + MINUTE)
    await harness.node.engine.scheduler.fire_batch()
    await harness.sql("ALTER TABLE runs RENAME COLUMN mislaid TO covers;")
    shown = await schedules.get(schedule.id, harness.user.id)
    assert (shown.status, shown.delivery_phase) == ("pending", "prompt_submit")
    await harness.live_until(NOON + 10 * MINUTE)
    shown = await schedules.get(schedule.id, harness.user.id)
    assert (shown.status, shown.delivery_phase, shown.error_summary) == ("delivered", None, None)


# ── What a restart leaves ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_restart_forgets_what_was_to_last_no_longer_and_keeps_the_rest(tmp_path):
    harness = Harness({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"})
    async with harness.node.opened():
        await harness.settle_in()
        session = await harness.session()
        book = harness.node.services.schedules.book
        brief = (await book(message(ephemeral=True), session.id, harness.user.id)).schedule
        kept = (await book(message(), session.id, harness.user.id)).schedule
    harness.clock.advance(SECOND)
    node = harness.another_node()
    async with node.running():
        forgotten = await node.services.schedules.get(brief.id, harness.user.id)
        assert (forgotten.status, forgotten.error_summary.kind) == ("cancelled", "restarted")
        assert (await node.services.schedules.get(kept.id, harness.user.id)).status == "pending"


# ── Whose it is ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_someone_elses_schedules_are_not_there(harness, schedules, session):
    schedule = (await schedules.book(message(), session.id, harness.user.id)).schedule
    for attempt in (
        schedules.get(schedule.id, "eve"),
        schedules.cancel(schedule.id, "eve"),
        schedules.listed(session.id, "eve"),
        schedules.book(message(), session.id, "eve"),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert [each.status for each in await schedules.listed(session.id, harness.user.id)] == ["pending"]


async def test_a_recall_is_no_schedule(harness, schedules):
    recall = await harness.book()
    with pytest.raises(NoSuchSchedule):
        await schedules.get(recall.id, harness.user.id)
    assert await schedules.listed(recall.session_id, harness.user.id) == []


async def test_a_person_is_held_to_the_same_bounds(harness, schedules, session):
    with pytest.raises(DelayOutOfBounds):
        await schedules.book(message(delay_ms=25 * 3_600_000), session.id, harness.user.id)
    for _ in range(MAX_LIVE_SCHEDULES):
        await schedules.book(message(), session.id, harness.user.id)
    with pytest.raises(TooManySchedules):
        await schedules.book(message(), session.id, harness.user.id)


# ── The whole way, with the real loop ───────────────────────────────────────────────────────────────────────────────


class Desk:
    """A node with its own loop, a session in it, and a scripted model."""

    def __init__(self, harness, node, agent, session):
        self.harness, self.node, self.agent, self.session = harness, node, agent, session

    async def deliver(self, request, *turns):
        """Book as a person, let it come, and return the schedule and what the model was asked."""
        booked = await self.node.services.schedules.book(request, self.session.id, self.harness.user.id)
        with scripted(*turns) as model:
            self.node.engine.runner.executor.models.use(MODEL, model)
            self.harness.clock.set(NOON + MINUTE)
            await self.node.engine.scheduler.turn()
            await self.node.engine.runner.turn()
            await self.node.engine.runner.idle()
        return await self.node.services.schedules.get(booked.schedule.id, self.harness.user.id), model.asked

    async def messages(self, session_id):
        return await self.node.sessions.messages(session_id, self.harness.user.id)


@pytest.fixture
async def desk(backend_settings):
    harness = Harness(backend_settings | {"model": MODEL, "model_api_key": "a-key"})
    node = build(Settings.model_validate(harness.settings), clock=harness.clock)
    async with node.opened():
        await node.agents.add_user(harness.user)
        agent = await node.agents.add(
            harness.make_agent(toolsets=("scheduler", "files"), system_prompt="Be kind.", thinking_level="low")
        )
        yield Desk(harness, node, agent, await node.sessions.open(agent.id, harness.user.id))


async def test_a_scheduled_message_is_marked_in_the_transcript(desk):
    schedule, _ = await desk.deliver(message(label="check-build"), [Say("Done.")])
    prompt, answer = await desk.messages(desk.session.id)
    assert (prompt.role, prompt.content, prompt.is_recall) == ("user", "Look at the build.", False)
    assert (prompt.source, f"sch-{prompt.wake_id}", prompt.label) == ("scheduled", schedule.id, "check-build")
    assert answer.content == "Done."


async def test_a_fresh_session_begins_as_it_was_configured(desk):
    config = {
        "system_prompt": "Be brief.",
        "developer_prompt": "Look at risks.",
        "developer_prompt_source": "CI",
        "thinking_level": "high",
        "model": MODEL,
        "tool_ids": ["read_file"],
        "preloaded_messages": [{"role": "user", "content": "PR 7 first."}, {"role": "assistant", "content": "Yes."}],
    }
    schedule, [asked] = await desk.deliver(fresh(session_config=config), [Say("Done.")])
    system, *said = [part.content for message in asked.messages for part in message.parts]
    assert system.startswith('Be kind.\n\nBe brief.\n\nDeveloper prompt, from "CI":\nLook at risks.\n\n')
    assert said == ["PR 7 first.", "Yes.", "Look at the build."]
    assert [tool.name for tool in asked.parameters.function_tools] == ["read_file"]
    assert asked.settings["thinking"] == "high"
    kept = await desk.messages(schedule.created_session_id)
    told = [(each.role, each.content, each.source) for each in kept]
    assert told == [
        ("user", "PR 7 first.", "preloaded"),
        ("assistant", "Yes.", "preloaded"),
        ("user", "Look at the build.", "scheduled"),
        ("assistant", "Done.", None),
    ]
    assert await desk.messages(desk.session.id) == []


async def test_a_tool_that_a_fresh_session_was_not_given_cannot_be_called(desk):
    config = {"tool_ids": ["read_file"]}
    turns = ([LocalCall("write_file", {"path": "a.txt", "content": "x"})], [Say("I cannot.")])
    schedule, _ = await desk.deliver(fresh(session_config=config), *turns)
    _, _, refused, _ = await desk.messages(schedule.created_session_id)
    assert refused.data["success"] is False
    assert "Your tools: read_file." in refused.content


async def test_what_is_said_later_in_a_fresh_session_is_held_to_its_configuration(desk):
    schedule, _ = await desk.deliver(
        fresh(session_config={"tool_ids": [], "system_prompt": "Be brief."}), [Say("Yes.")]
    )
    with scripted([Say("Hello.")]) as model:
        desk.node.engine.runner.executor.models.use(MODEL, model)
        await desk.node.runs.ask(schedule.created_session_id, desk.harness.user.id, "Are you there?")
        await desk.node.engine.runner.turn()
        await desk.node.engine.runner.idle()
    [asked] = model.asked
    assert asked.parameters.function_tools == []
    assert asked.messages[0].parts[0].content.startswith("Be kind.\n\nBe brief.")


async def test_an_attempt_that_was_cut_off_between_preloaded_messages_goes_on_with_the_rest(desk):
    preloaded = [{"role": "user", "content": "One."}, {"role": "assistant", "content": "Two."}]
    request = fresh(session_config={"preloaded_messages": preloaded})
    await desk.node.services.schedules.book(request, desk.session.id, desk.harness.user.id)
    desk.harness.clock.set(NOON + MINUTE)
    await desk.node.engine.scheduler.turn()
    [claimed] = await desk.node.engine.runner.claims.claim(1)
    first = StepSaved(role="user", content="One.", source="preloaded")
    await desk.node.engine.runner.claims.save(claimed.run, first, [], "first")
    desk.harness.node = desk.node
    await desk.harness.crash()
    desk.harness.clock.advance(MINUTE)
    await desk.node.engine.scheduler.turn()  # takes back what nobody renewed
    with scripted([Say("Done.")]) as model:
        desk.node.engine.runner.executor.models.use(MODEL, model)
        await desk.node.engine.runner.turn()
        await desk.node.engine.runner.idle()
    kept = await desk.messages(claimed.run.session_id)
    assert [each.content for each in kept] == ["One.", "Two.", "Look at the build.", "Done."]


# ── REST ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def rest(backend_settings):
    async with opened_rest(backend_settings, toolsets=("scheduler", "files")) as rest:
        yield rest


@pytest.fixture
async def path(rest):
    return f"/sessions/{(await rest.harness.session()).id}/schedules"


ASKED = {"kind": "message", "message": "Look at the build.", "delay_ms": 60_000, "label": "check-build"}


async def test_a_person_books_shows_and_cancels(rest, path):
    status, booked = await rest.ask("POST", path, json=ASKED)
    schedule = booked["schedule"]
    assert (status, schedule["status"], schedule["kind"]) == (201, "pending", "message")
    assert schedule["fire_at"] == "2026-03-02T12:01:00Z"
    assert booked["told"] == "2026-03-02 13:01:00+01:00 Europe/Berlin (in 1 min)"
    assert await rest.call("GET", f"/schedules/{schedule['id']}") == schedule
    assert await rest.call("GET", f"/schedules/{schedule['id'].removeprefix('sch-')}") == schedule
    assert await rest.call("DELETE", f"/schedules/{schedule['id']}") == {"ok": True}
    assert (await rest.call("GET", f"/schedules/{schedule['id']}"))["status"] == "cancelled"
    status, refused = await rest.ask("DELETE", f"/schedules/{schedule['id']}")
    assert (status, refused["error"]["code"]) == (409, "schedule_not_cancellable")


async def test_a_persons_booking_is_theirs(rest, path):
    schedule = (await rest.call("POST", path, json=ASKED))["schedule"]
    wake = await rest.call("GET", f"/wakes/{schedule['id'].removeprefix('sch-')}")
    assert (wake["scheduled_by"], wake["booked_by_run"]) == ("user", None)


async def test_the_list_has_ended_ones_too_and_can_be_narrowed(rest, path):
    done = (await rest.call("POST", path, json=ASKED))["schedule"]
    await rest.harness.turn_at(NOON + MINUTE)
    waiting = (await rest.call("POST", path, json=ASKED))["schedule"]
    listed = (await rest.call("GET", path))["schedules"]
    assert [(each["id"], each["status"]) for each in listed] == [(waiting["id"], "pending"), (done["id"], "delivered")]
    asked = {"status": "delivered", "fields": "id,run_status"}
    narrowed = (await rest.call("GET", path, params=asked))["schedules"]
    assert narrowed == [{"id": done["id"], "run_status": "success"}]


async def test_fields_are_chosen_by_name_null_ones_included(rest, path):
    schedule = (await rest.call("POST", path, json=ASKED))["schedule"]
    chosen = await rest.call("GET", f"/schedules/{schedule['id']}", params={"fields": "status, created_session_id"})
    assert chosen == {"status": "pending", "created_session_id": None}


@pytest.mark.parametrize("where", ["one", "list"])
async def test_an_unknown_field_is_refused_and_the_known_ones_named(rest, path, where):
    schedule = (await rest.call("POST", path, json=ASKED))["schedule"]
    place = path if where == "list" else f"/schedules/{schedule['id']}"
    status, refused = await rest.ask("GET", place, params={"fields": "status,colour"})
    assert (status, refused["error"]["field"]) == (400, "fields")
    assert "'colour'" in refused["error"]["message"]
    assert "delivery_phase" in refused["error"]["message"]


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"delay_ms": 999}, 400, "delay_ms"),
        ({"at": "2026-03-02T13:00:00Z"}, 400, "delay_ms"),
        ({"delay_ms": None, "at": "tomorrow"}, 400, "at"),
        ({"kind": "session"}, 400, "session_config"),
        ({"kind": "session", "session_config": {"colour": 1}}, 400, "session_config.colour"),
        ({"kind": "never"}, 422, "kind"),
        ({"whenever": "now"}, 422, "whenever"),
        ({"delay_ms": 10**30}, 422, "delay_ms"),
        ({"message": "a\x00b"}, 422, "message"),
    ],
)
async def test_a_wrong_body_names_its_field_and_books_nothing(rest, path, changes, status, field):
    told, refused = await rest.ask("POST", path, json=ASKED | changes)
    assert (told, refused["error"]["field"]) == (status, field)
    assert (await rest.call("GET", path))["schedules"] == []


async def test_a_session_says_which_schedule_began_it(rest, path):
    asked = ASKED | {"kind": "session", "session_config": {"session_name": "Morning", "tool_ids": ["read_file"]}}
    booked = await rest.call("POST", path, json=asked)
    assert "warning" not in booked
    schedule = booked["schedule"]
    assert schedule["session_config_summary"]["tool_count"] == 1
    await rest.harness.turn_at(NOON + MINUTE)
    made = (await rest.call("GET", f"/schedules/{schedule['id']}"))["created_session_id"]
    session = await rest.call("GET", f"/sessions/{made}")
    assert session["title"] == "Morning"
    assert session["scheduled_origin_session_id"] == path.split("/")[2]
    assert session["scheduled_from_schedule_id"] == schedule["id"]
    assert session["scheduled_from_label"] == "check-build"


async def test_a_scheduled_message_names_its_schedule(rest, path):
    async def submit(run, steps, stop):
        yield StepSaved(role="user", content="Look.", source="scheduled", label="check-build")

    schedule = (await rest.call("POST", path, json=ASKED))["schedule"]
    rest.harness.executor.default = submit
    await rest.harness.turn_at(NOON + MINUTE)
    [prompt] = (await rest.call("GET", path.removesuffix("/schedules")))["messages"]
    assert (prompt["source"], prompt["schedule_id"], prompt["label"]) == ("scheduled", schedule["id"], "check-build")


@pytest.mark.parametrize(("scope", "status"), [("read", 403), ("chat", 403), ("schedule", 201)])
async def test_booking_takes_the_scope_schedule(rest, path, scope, status):
    token = (await rest.call("POST", "/tokens", json={"name": "t", "scope": scope}))["secret"]
    headers = {"authorization": f"Bearer {token}"}
    assert (await rest.ask("POST", path, json=ASKED, headers=headers))[0] == status
    assert (await rest.ask("GET", path, headers=headers))[0] == 200


async def test_another_user_finds_nothing(rest, path):
    schedule = (await rest.call("POST", path, json=ASKED))["schedule"]
    user = await rest.call("POST", "/users", json={"name": "Eve"})
    made = await rest.call("POST", "/tokens", json={"name": "t", "scope": "admin", "user_id": user["id"]})
    headers = {"authorization": f"Bearer {made['secret']}"}
    for method, place in (
        ("GET", path),
        ("GET", f"/schedules/{schedule['id']}"),
        ("DELETE", f"/schedules/{schedule['id']}"),
    ):
        assert (await rest.ask(method, place, headers=headers))[0] == 404
    assert (await rest.ask("POST", path, json=ASKED, headers=headers))[0] == 404


FRESH = {"kind": "session", "message": "Look at the build.", "delay_ms": 60_000, "label": "look", "session_config": {}}
HOW_IT_WENT = "status,delivery_phase,run_status,error_summary,created_session_id,origin_session_id"


class Delivery:
    """Return one schedule as REST shows it."""

    def __init__(self, rest, path, schedule_id):
        self._rest, self._path, self.id = rest, path, schedule_id

    async def shown(self):
        one = await self._rest.call("GET", f"/schedules/{self.id}", params={"fields": HOW_IT_WENT})
        listed = await self._rest.call("GET", self._path, params={"fields": HOW_IT_WENT, "status": one["status"]})
        assert listed == {"schedules": [one]}
        return one


async def delivery_of(rest, path, **changes):
    return Delivery(rest, path, (await rest.call("POST", path, json=FRESH | changes))["schedule"]["id"])


async def test_a_failure_before_the_prompt_was_saved_keeps_its_phase_and_the_session(rest, path):
    delivery = await delivery_of(rest, path)
    rest.harness.executor.default = doing(fail)
    await rest.harness.turn_at(NOON + MINUTE)
    shown = await delivery.shown()
    assert (shown["status"], shown["delivery_phase"], shown["run_status"]) == ("failed", "prompt_submit", "failed")
    assert "no network" in shown["error_summary"]["message"]
    assert shown["error_summary"]["class"]
    assert shown["error_summary"]["data"]["delivery_phase"] == "prompt_submit"
    made = await rest.call("GET", f"/sessions/{shown['created_session_id']}")
    assert made["scheduled_origin_session_id"] == shown["origin_session_id"] == path.split("/")[2]
    assert (made["scheduled_from_schedule_id"], made["scheduled_from_label"]) == (delivery.id, "look")
    assert made["messages"] == []
    status, refused = await rest.ask("DELETE", f"/schedules/{delivery.id}")
    assert (status, "is failed" in refused["error"]["message"]) == (409, True)


async def test_once_the_prompt_is_saved_it_is_delivered_and_the_run_says_how_it_went_on(rest, path):
    async def submit_and_fail(run, steps, stop):
        yield StepSaved(role="user", content="Look at the build.", source="scheduled")
        raise RuntimeError("no network")

    delivery = await delivery_of(rest, path)
    rest.harness.executor.default = submit_and_fail
    await rest.harness.turn_at(NOON + MINUTE)
    shown = await delivery.shown()
    assert (shown["status"], shown["delivery_phase"], shown["run_status"]) == ("delivered", None, "failed")
    assert "no network" in shown["error_summary"]["message"]


async def test_a_session_that_cannot_be_made_has_failed_in_that_phase_and_is_not_tried_again(rest, path):
    delivery = await delivery_of(rest, path)
    await rest.harness.sql("ALTER TABLE sessions RENAME COLUMN origin_label TO mislaid;")
    await rest.harness.turn_at(NOON + MINUTE)
    await rest.harness.sql("ALTER TABLE sessions RENAME COLUMN mislaid TO origin_label;")
    shown = await delivery.shown()
    assert (shown["status"], shown["delivery_phase"]) == ("failed", "create_session")
    assert (shown["created_session_id"], shown["run_status"]) == (None, None)
    assert "origin_label" in shown["error_summary"]["message"]
    assert shown["error_summary"]["class"].endswith("Error")
    assert shown["error_summary"]["data"]["delivery_phase"] == "create_session"
    [notice] = (await rest.call("GET", "/notifications"))["notifications"]
    assert (notice["code"], notice["wake_id"]) == ("unfirable", delivery.id.removeprefix("sch-"))
    assert "schedule it again" in notice["body"]
    await rest.harness.live_until(NOON + HOUR)
    assert (await delivery.shown(), rest.harness.executor.ran) == (shown, [])
    status, refused = await rest.ask("DELETE", f"/schedules/{delivery.id}")
    assert (status, "is failed" in refused["error"]["message"]) == (409, True)


async def test_a_day_ahead_is_the_most(rest, path):
    at = (NOON + DAY).isoformat()
    assert (await rest.ask("POST", path, json={"kind": "message", "message": "x", "at": at}))[0] == 201
