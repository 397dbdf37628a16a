"""The most frequent complaints about scheduled agents, each tested through the public API with a manual clock."""

import json
from datetime import datetime

import pytest

from harness import DAY, HOUR, MINUTE, NOON, SECOND
from live_server import Patient, eventually, of_kind, running_server, text_of
from openai_server import Exchange, call, calls, improvise, say
from wakeful.core.clock import ManualClock

TODO = "Read notes.txt with read_file."
ENDED = ("success", "failed", "stopped", "skipped", "interrupted")


@pytest.fixture
def clock():
    return ManualClock(NOON)


@pytest.fixture
async def server(backend_settings, clock):
    # A lease that outlasts every jump of the clock: the jumps are for the wakes.
    more = {"always": improvise, "clock": clock, "lease_seconds": 3600, "runs_per_hour": 30}
    async with running_server(backend_settings, patient=Patient(first=DAY.total_seconds()), **more) as server:
        await server.change_agent(run_limit_seconds=int(DAY.total_seconds()))
        yield server


async def recall(server, session, **asked):
    body = {"call_type": "once", "when": "1h", "additional_context_message": TODO} | asked
    return (await server.call("POST", f"/sessions/{session}/recall", json=body))["recall"]


async def runs_of(server, wake_id):
    return (await server.call("GET", "/runs", params={"wake_id": wake_id, "limit": 100}))["runs"]


async def settled(server, wake_id, count):
    """Wait until `count` runs of a wake have ended, and return them, the oldest first."""

    async def look():
        runs = await runs_of(server, wake_id)
        return runs if len(runs) == count and all(run["status"] in ENDED for run in runs) else None

    return sorted(await eventually(look), key=lambda run: run["nominal_at"])


async def wake(server, wake_id):
    return await server.call("GET", f"/wakes/{wake_id}")


async def agent_id(server):
    return (await server.call("GET", "/agents"))["agents"][0]["id"]


async def notices(server, code=None):
    found = (await server.call("GET", "/notifications"))["notifications"]
    return [each for each in found if code in (None, each["code"])]


async def use(client, tool, **arguments):
    """Let the agent call a tool and return what that answered."""
    frames = await client.ask(f"call {tool} {json.dumps(arguments)}")
    [answer] = of_kind(frames, "tool_call")
    return answer


def at(text):
    return datetime.fromisoformat(text)


# ── 1, 23: it never happened, and nothing said so ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("on_miss", "rows"),
    [
        ("skip", [("skipped", 24)]),
        ("run_once", [("success", 24)]),
        ("run_catchup", [*[("success", 1)] * 9, ("success", 15)]),
    ],
)
async def test_after_a_day_asleep_every_planned_time_is_accounted_for(server, session, clock, on_miss, rows):
    made = await recall(server, session, call_type="recurring", interval_seconds=3600, on_miss=on_miss)
    clock.set(NOON + DAY + 30 * MINUTE)
    runs = await settled(server, made["id"], len(rows))
    assert sorted((run["status"], run["covers"]) for run in runs) == sorted(rows)
    story = (await server.call("GET", f"/wakes/{made['id']}/why"))["decisions"]
    assert "missed" in [each["code"] for each in story]
    assert at((await wake(server, made["id"]))["nominal_at"]) == NOON + DAY + HOUR  # on the grid as before


# ── 2, 22: "success" that was none; what did it do? ─────────────────────────────────────────────────────────────────


async def test_a_run_that_did_nothing_can_be_told_from_one_that_worked(server, session):
    async with server.watch(session) as client:
        idle = (await client.ask("hello"))[-1]["run_id"]
        busy = (await client.ask('call write_file {"path": "a.txt", "content": "x"}'))[-1]["run_id"]
    shown = [await server.run(run_id) for run_id in (idle, busy)]
    assert [run["status"] for run in shown] == ["success", "success"]
    assert [run["usage"]["tool_calls"] for run in shown] == [0, 1]
    events = (await server.call("GET", f"/runs/{busy}/events"))["events"]
    assert [event["tool"] for event in of_kind(events, "tool_call")] == ["write_file"]


# ── 7: double fire ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_clock_that_goes_back_fires_nothing_twice(server, session, clock):
    made = await recall(server, session, call_type="recurring", interval_seconds=3600)
    clock.set(NOON + HOUR)
    await settled(server, made["id"], 1)
    clock.set(NOON + 30 * MINUTE)
    clock.set(NOON + HOUR)
    clock.set(NOON + 2 * HOUR)
    runs = await settled(server, made["id"], 2)
    assert [at(run["nominal_at"]) for run in runs] == [NOON + HOUR, NOON + 2 * HOUR]


# ── 8, 13: promised to come back; cannot do time arithmetic ─────────────────────────────────────────────────────────


async def test_every_booking_answers_with_the_exact_time_its_zone_and_how_long_that_is(server, session):
    await server.change_agent(timezone="Europe/Berlin", schedule={"mode": "reactive"})
    async with server.watch(session) as client:
        answers = [
            await use(client, "schedule_recall", call_type="once", when="in 2 hours", additional_context_message=TODO),
            await use(client, "scheduler", op="create", kind="message", delay_ms=7_200_000, message=TODO),
            await use(client, "schedule_next_run", in_seconds=7200, instructions=TODO),
        ]
    for answer in answers:
        assert answer["success"], answer["result"]
        assert "2026-03-02 15:00:00" in answer["result"]  # 14:00 UTC
        assert "Europe/Berlin" in answer["result"]
        assert "in 2 h" in answer["result"]


async def test_an_agent_that_books_nothing_more_is_said_to_have_ended_once(server, session, clock):
    async with server.watch(session) as client, server.watch_events() as page:
        assert (await use(client, "schedule_next_run", in_seconds=3600, instructions=TODO))["success"]
        clock.set(NOON + HOUR)
        told = (await page.until("notification"))[-1]
    assert told["code"] == "loop_ended"
    clock.set(NOON + 2 * HOUR)
    assert [each["code"] for each in await notices(server)] == ["loop_ended"]


# ── 9: zones and DST ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_daily_time_in_the_spring_gap_comes_right_after_it_and_then_as_always(server, session, clock):
    clock.set(datetime.fromisoformat("2026-03-28T12:00:00+00:00"))
    made = await recall(server, session, call_type="recurring", when=None, cron="30 2 * * *", timezone="Europe/Berlin")
    expected = ["2026-03-29T01:00:00+00:00", "2026-03-30T00:30:00+00:00", "2026-03-31T00:30:00+00:00"]
    for number, instant in enumerate(expected, start=1):
        assert at((await wake(server, made["id"]))["nominal_at"]) == at(instant)
        clock.set(at(instant))
        await settled(server, made["id"], number)


# ── 10: amnesia ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_who_answers_a_recall_is_understood(server, session, clock):
    made = await recall(server, session, additional_context_message="Look at the tea in tea.txt")
    clock.set(NOON + HOUR)
    await settled(server, made["id"], 1)
    async with server.watch(session) as client:
        await client.ask("And?")
    said = [message["content"] for message in server.provider.last["messages"]]
    assert any("tea.txt" in str(each) for each in said)
    assert [message["is_recall"] for message in await server.messages(session)] == [True, False, False, False]


# ── 11: one chat grows without bound ────────────────────────────────────────────────────────────────────────────────


async def test_each_next_run_has_a_session_of_its_own(server, clock):
    path = f"/agents/{await agent_id(server)}/next-run"
    seen = set()
    for number in range(1, 4):
        booked = (await server.call("PUT", path, json={"in_seconds": 3600, "instructions": TODO}))["next_run"]
        clock.set(NOON + number * HOUR)
        [run] = await settled(server, booked["id"], 1)
        seen.add(run["session_id"])
        assert len(server.provider.last["messages"]) == 2  # who it is, and what to do: nothing of the runs before
    assert len(seen) == 3


# ── 15: a cancelled wake comes back ─────────────────────────────────────────────────────────────────────────────────


async def test_cancelled_inside_its_own_run_it_stays_cancelled(server, session, clock):
    words = 'call manage_recall {"action": "cancel"}'
    made = await recall(server, session, call_type="recurring", interval_seconds=3600, additional_context_message=words)
    clock.set(NOON + HOUR)
    await settled(server, made["id"], 1)
    clock.set(NOON + 5 * HOUR)
    assert (await wake(server, made["id"]))["status"] == "cancelled"
    assert (await server.call("GET", f"/sessions/{session}/recall"))["recall"] is None
    assert len(await runs_of(server, made["id"])) == 1


# ── 16: runaway ─────────────────────────────────────────────────────────────────────────────────────────────────────

DOORS = {
    "recall": ("schedule_recall", {"call_type": "immediate", "additional_context_message": TODO}),
    "scheduler": ("scheduler", {"op": "create", "kind": "message", "delay_ms": 1000, "message": TODO}),
    "session": (
        "scheduler",
        {"op": "create", "kind": "session", "delay_ms": 1000, "message": TODO, "session_config": {}},
    ),
    "next_run": ("schedule_next_run", {"in_seconds": 1, "instructions": TODO}),
}


@pytest.mark.parametrize("door", DOORS)
async def test_a_model_that_books_itself_every_second_is_braked_with_one_notice(backend_settings, clock, door):
    tool, arguments = DOORS[door]

    async def book_again(exchange: Exchange) -> None:
        is_asked = exchange.request.body["messages"][-1]["role"] == "user"
        answer = calls(*call(tool, json.dumps(arguments))) if is_asked else say("Booked.")
        await answer(exchange)

    more = {"always": book_again, "clock": clock, "lease_seconds": 3600, "runs_per_hour": 4}
    async with running_server(backend_settings, **more) as server:
        await server.change_agent(schedule={"mode": "reactive", "min_interval_seconds": 0, "daily_cap": 1000})
        session = await server.session()
        async with server.watch(session) as client:
            await client.ask("Go on for ever")

        async def is_braked():
            clock.advance(2 * SECOND)
            return await notices(server, "brake")

        async def is_over():
            clock.advance(2 * SECOND)  # a run that ends after the brake holds the next one for a second
            return await idle(server)

        await eventually(is_braked, 30)
        clock.advance(MINUTE)
        await eventually(is_over)
        started = [run for run in (await server.call("GET", "/runs"))["runs"] if run["scheduled_by"] == "agent"]
        assert len(started) == 4
        assert len(await notices(server, "brake")) == 1


async def idle(server):
    return not [run for run in (await server.call("GET", "/runs"))["runs"] if run["status"] not in ENDED]


async def test_clamped_to_a_fixed_point_by_quiet_hours_days_and_horizon_together(server, session, clock):
    """Friday evening: the night, then the weekend, then the night before Monday; then the horizon is in the way."""
    clock.set(datetime.fromisoformat("2026-03-06T19:00:00+00:00"))
    bounds = {"mode": "reactive", "quiet_from": "20:00", "quiet_to": "08:00", "days": [0, 1, 2, 3, 4]}
    await server.change_agent(timezone="UTC", schedule=bounds | {"max_horizon_seconds": 7 * 86_400})
    async with server.watch(session) as client:
        moved = await use(client, "schedule_next_run", in_seconds=7200, instructions=TODO)
        assert moved["success"], moved["result"]
        assert at(moved["metadata"]["scheduled_at"]) == at("2026-03-09T08:00:00+00:00")
        assert {"quiet_hours", "day_not_allowed"} <= set(moved["metadata"]["clamp_reasons"])
        assert moved["metadata"]["remaining_budget_today"] >= 0
        await server.change_agent(schedule={"max_horizon_seconds": 86_400})
        back = await use(client, "schedule_next_run", in_seconds=7200, instructions=TODO)
        assert back["success"], back["result"]
        assert at(back["metadata"]["scheduled_at"]) == at("2026-03-06T19:59:00+00:00")
        assert "max_horizon" in back["metadata"]["clamp_reasons"]


MOVED = [  # seconds asked for in mode Reactive, when it comes instead, and why
    (-60, 5 * MINUTE, ["past", "min_interval"]),
    (1, 5 * MINUTE, ["min_interval"]),
    (600, 10 * MINUTE, []),
    (10 * 86_400, DAY, ["max_horizon"]),
]


async def test_each_bound_moves_or_refuses_a_models_booking_and_says_so(server, session, clock):
    path = f"/agents/{await agent_id(server)}"
    await server.change_agent(timezone="UTC", schedule={"mode": "reactive"})
    async with server.watch(session) as client:
        for seconds, later, reasons in MOVED:
            told = (await use(client, "schedule_next_run", in_seconds=seconds, instructions=TODO))["metadata"]
            assert (told["clamped"], told["clamp_reasons"]) == (bool(reasons), reasons)
            assert (at(told["requested_at"]), at(told["scheduled_at"])) == (NOON + seconds * SECOND, NOON + later)
            assert told["remaining_budget_today"] == (48 if later == DAY else 47)
        assert (await use(client, "cancel_next_run"))["success"]

        async def refused(**bounds):
            await server.change_agent(schedule=bounds)
            answer = await use(client, "schedule_next_run", in_seconds=600, instructions=TODO)
            assert not answer["success"]
            return answer["metadata"]["reasons"], answer["result"]

        await server.call("PUT", f"{path}/pause", json={"until": (NOON + HOUR).isoformat()})
        reasons, words = await refused()
        assert (reasons, "earliest acceptable time is 2026-03-02T13:00:00+00:00" in words) == (["paused"], True)
        await server.call("DELETE", f"{path}/pause")
        for bounds, reason in (({"mode": "manual"}, "manual"), ({"mode": "reactive", "daily_cap": 0}, "daily_cap")):
            reasons, words = await refused(**bounds)
            assert (reasons, "your user can change these bounds" in words) == ([reason], True)
    assert (await server.call("GET", f"{path}/next-run"))["next_run"] is None


async def test_the_slot_is_taken_from_the_booking_before(server):
    path = f"/agents/{await agent_id(server)}/next-run"
    first, second = [
        (await server.call("PUT", path, json={"in_seconds": seconds, "instructions": TODO}))["next_run"]
        for seconds in (3600, 7200)
    ]
    assert (await wake(server, first["id"]))["status"] == "superseded"
    assert (await server.call("GET", path))["next_run"]["id"] == second["id"]


# ── 17: background work and the chat ────────────────────────────────────────────────────────────────────────────────


async def test_background_work_in_every_slot_blocks_no_chat(server, clock):
    for _ in range(4):  # one more than there are slots
        await recall(server, await server.session(), additional_context_message="hang")
    clock.set(NOON + HOUR)

    async def are_at_work():
        return len((await server.call("GET", "/runs", params={"status": "running"}))["runs"]) == 3

    await eventually(are_at_work)
    async with server.watch(await server.session()) as client:
        assert text_of(await client.ask("hello")) == "You said: hello"


async def test_a_recall_gives_way_to_the_user_by_a_minute_but_not_for_ever(server, session, clock):
    made = await recall(server, session, when="30m", additional_context_message="hello")
    due = NOON + 30 * MINUTE
    async with server.watch(session) as client:
        await client.say("hang")
        await client.until("stream_start")
        for number in range(10):
            clock.set(due + number * MINUTE)
            update = (await client.until("recall_update"))[-1]  # after what it says of waiting for the model
            assert (update["action"], at(update["trigger_at"])) == ("deferred", due)
            assert at((await wake(server, made["id"]))["attempt_at"]) == due + (number + 1) * MINUTE
        clock.set(due + 10 * MINUTE)
        await eventually(lambda: is_queued(server, made["id"]))  # it waits at the door now
        await server.stop(session)
        await client.until("stream_stopped")
        clock.advance(SECOND)  # in which a message of the person's would go first
        frames = await client.until("stream_end")
    assert of_kind(frames, "recall_update")[0]["action"] == "fired"


async def is_queued(server, wake_id):
    return (await wake(server, wake_id))["status"] == "queued"


async def test_scheduled_messages_wait_for_an_idle_session_and_come_in_their_order(server, session, clock):
    path = f"/sessions/{session}/schedules"
    async with server.watch(session) as client:
        await client.say("hang")
        await client.until("stream_start")
        for delay, words in ((3000, "third"), (1000, "first"), (2000, "second")):
            await server.call("POST", path, json={"kind": "message", "delay_ms": delay, "message": words})
        clock.set(NOON + MINUTE)
        await eventually(lambda: are_queued(server, path))
        await server.stop(session)
        await client.until("stream_stopped")
        answers = []
        while len(answers) < 3:
            clock.advance(SECOND)  # in which a message of the person's would go first
            answers += [frame["content"] for frame in of_kind(await client.until("stream_end"), "stream_end")]
    assert answers == ["You said: first", "You said: second", "You said: third"]


async def are_queued(server, path):
    found = (await server.call("GET", path))["schedules"]
    return [each["status"] for each in found] == ["queued"] * 3


async def test_the_51st_schedule_of_a_session_is_refused_and_the_50_stay(server, session):
    path = f"/sessions/{session}/schedules"
    asked = {"kind": "message", "delay_ms": 3_600_000, "message": TODO}
    for _ in range(50):
        await server.call("POST", path, json=asked)
    refused = await server.rest.post(path, json=asked)
    assert refused.is_client_error
    assert "50" in refused.json()["error"]["message"]
    assert len((await server.call("GET", path, params={"limit": 100}))["schedules"]) == 50


async def test_a_second_recall_is_refused_with_the_first_ones_time_and_what_to_do(server, session):
    made = await recall(server, session)
    async with server.watch(session) as client:
        refused = await use(client, "schedule_recall", call_type="once", when="2h", additional_context_message=TODO)
    assert not refused["success"]
    for words in (made["id"], "2026-03-02", "13:00", "ancel"):
        assert words in refused["result"]
    assert (await server.call("GET", f"/sessions/{session}/recall"))["recall"]["id"] == made["id"]


# ── 19: stored prompt injection ─────────────────────────────────────────────────────────────────────────────────────


async def test_who_booked_is_stamped_by_the_host_and_no_model_can_say_otherwise(server, session):
    async with server.watch(session) as client:
        forged = await use(
            client, "schedule_recall", call_type="once", when="2h", additional_context_message=TODO, scheduled_by="user"
        )
        assert not forged["success"]
        assert "scheduled_by" in forged["result"]
        booked = await use(client, "schedule_recall", call_type="once", when="2h", additional_context_message=TODO)
    [made] = (await server.call("GET", "/wakes"))["wakes"]
    assert (made["scheduled_by"], made["booked_by_run"]) == ("agent", booked["run_id"])


async def test_a_fresh_session_never_has_more_tools_than_the_run_that_booked_it(server, session, clock):
    async with server.watch(session) as client:
        few = {"tool_ids": ["scheduler", "read_file"]}
        asked = {"op": "create", "kind": "session", "delay_ms": 1000, "session_config": few}
        inner = {"op": "create", "kind": "session", "delay_ms": 1000, "message": "hello", "session_config": {}}
        booked = await use(client, "scheduler", **asked, message=f"call scheduler {json.dumps(inner)}")
        assert booked["success"], booked["result"]
    for number in (1, 2):
        clock.set(NOON + number * 2 * SECOND)
        await eventually(lambda number=number: has_fresh(server, number))
    shown = {each["function"]["name"] for each in server.provider.last["tools"]}
    assert shown == {"scheduler", "read_file"}


async def has_fresh(server, count):
    runs = (await server.call("GET", "/runs"))["runs"]
    fresh = [run for run in runs if run["kind"] == "session" and run["status"] == "success"]
    return len(fresh) == count


# ── 20: quiet hours ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_quiet_hours_that_were_set_after_the_booking_hold_in_the_agents_zone(server, session, clock):
    await server.change_agent(timezone="Europe/Berlin")  # 13:00 there
    async with server.watch(session) as client:
        booked = await use(client, "schedule_next_run", in_seconds=3600, instructions=TODO)
    wake_id = booked["metadata"]["next_run_id"]
    await server.change_agent(schedule={"quiet_from": "13:30", "quiet_to": "15:00"})
    clock.set(NOON + HOUR)

    async def is_held():
        return (await wake(server, wake_id))["held_by"]

    assert await eventually(is_held) == "quiet_hours"
    assert await runs_of(server, wake_id) == []
    clock.set(NOON + 2 * HOUR)  # 15:00 in Berlin
    [run] = await settled(server, wake_id, 1)
    assert run["status"] == "success"


# ── A pause ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pause_longer_than_the_grace_eats_no_wake(server, session, clock):
    made = await recall(server, session)
    until = (NOON + 6 * HOUR).isoformat()
    await server.call("PUT", f"/agents/{await agent_id(server)}/pause", json={"until": until, "reason": "holiday"})
    clock.set(NOON + HOUR)
    clock.set(NOON + 6 * HOUR)
    [run] = await settled(server, made["id"], 1)
    assert (run["status"], run["covers"]) == ("success", 1)


# ── 21: noise ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_same_words_are_told_once(server, session):
    async with server.watch(session) as client:
        first, second = [await use(client, "notify", title="Red", body="It is red.") for _ in range(2)]
    assert first["metadata"]["channels"]["inbox"] == "saved"
    assert second["metadata"]["channels"] == {"inbox": "duplicate"}
    assert len(await notices(server)) == 1


# ── 25: one bad row ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_one_broken_wake_touches_no_other(server, clock):
    broken, sound = [
        await recall(
            server, await server.session(), call_type="recurring", when=None, cron="0 13 * * *", timezone="UTC"
        )
        for _ in range(2)
    ]
    await server.sql(f"UPDATE wakes SET cron = 'nonsense' WHERE id = '{broken['id']}'")
    clock.set(NOON + HOUR)
    await settled(server, sound["id"], 1)
    [told] = await eventually(lambda: notices(server, "unfirable"))
    assert told["wake_id"] == broken["id"]
