"""The rows of the three seeds' tables and the rules of the contract, over REST, with a manual clock."""

import asyncio
import re
from datetime import datetime

import pytest

from asgi_client import opened_rest
from harness import DAY, HOUR, MINUTE, NOON, SECOND, doing, run_tidy_jobs

TODO = "Read notes.txt with read_file."


@pytest.fixture
async def rest(backend_settings):
    async with opened_rest(backend_settings, toolsets=("recall", "scheduler", "next_run", "files")) as rest:
        yield rest


@pytest.fixture
async def session(rest):
    return (await rest.call("POST", "/sessions", json={"title": "Titled", "agent_id": rest.harness.agent.id}))["id"]


def at(text):
    return datetime.fromisoformat(text)


async def fail(run):
    raise RuntimeError("no network")


async def runs_of(rest, wake_id):
    found = (await rest.call("GET", "/runs", params={"wake_id": wake_id}))["runs"]
    return [(run["status"], run["reason"]) for run in reversed(found)]


async def hourly_until(rest, end, step=HOUR):
    """Let the time pass in steps; the scheduler looks at each."""
    while rest.harness.clock.now() < end:
        await rest.harness.turn_at(rest.harness.clock.now() + step)


async def notices(rest):
    return [each["code"] for each in (await rest.call("GET", "/notifications"))["notifications"]]


# ── Navi: the recall of a session ───────────────────────────────────────────────────────────────────────────────────

COLUMNS = {
    "id", "session_id", "call_type", "trigger_at", "interval_seconds", "internal_comment", "additional_context_message",
    "status", "created_at", "updated_at", "reason", "nominal_at", "attempt_at", "scheduled_by",
}  # fmt: skip
ZONED = {"timezone": "Europe/Berlin"}
WHENS = [  # what is asked at 12:00 UTC on a Monday, and when it comes; the agent lives in Berlin
    ({"when": "30m"}, "2026-03-02T12:30:00Z"),
    ({"when": "2h 15m"}, "2026-03-02T14:15:00Z"),
    ({"when": "in 3 hours"}, "2026-03-02T15:00:00Z"),
    ({"when": "tomorrow at 09:00"}, "2026-03-03T08:00:00Z"),
    ({"when": "tomorrow at 09:00", "timezone_offset": "+05:30"}, "2026-03-03T03:30:00Z"),
    ({"when": "tomorrow at 09:00", "timezone_offset": "+05:30", "timezone": "Asia/Tokyo"}, "2026-03-03T00:00:00Z"),
    ({"when": "2026-03-02T15:00:00-05:00"}, "2026-03-02T20:00:00Z"),
    ({"when": "2026-03-02T20:00:00"}, "2026-03-02T19:00:00Z"),
    ({"when": "friday 14:30"}, "2026-03-06T13:30:00Z"),
    ({"call_type": "recurring", "when": "1h", "interval_seconds": 600}, "2026-03-02T13:00:00Z"),
    ({"call_type": "recurring", "cron": "0 9 * * *"} | ZONED, "2026-03-03T08:00:00Z"),
    ({"call_type": "recurring", "when": "2 days", "cron": "0 9 * * *"} | ZONED, "2026-03-05T08:00:00Z"),
    ({"call_type": "immediate"}, "2026-03-02T12:00:00Z"),
]


async def test_a_recall_comes_when_it_is_said_to_in_every_form(rest, session):
    path = f"/sessions/{session}/recall"
    for asked, instant in WHENS:
        body = {"call_type": "once", "additional_context_message": TODO, "internal_comment": "notes"} | asked
        booked = (await rest.call("POST", path, json=body))["recall"]
        assert booked.keys() >= COLUMNS
        assert (at(booked["trigger_at"]), booked["status"]) == (at(instant), "pending"), asked
        assert (booked["session_id"], booked["internal_comment"]) == (session, "notes")
        assert await rest.call("GET", path) == {"recall": booked}
        assert await rest.call("DELETE", path) == {"ok": True}
        assert await rest.call("GET", path) == {"recall": None}


async def test_a_recurring_recall_is_skipped_changed_run_and_ended(rest, session):
    path = f"/sessions/{session}/recall"
    hourly = {"call_type": "recurring", "when": "1h", "interval_seconds": 3600, "additional_context_message": TODO}
    status, refused = await rest.ask("POST", f"{path}/skip")
    assert (status, refused["error"]["code"]) == (400, "not_recurring")
    wake_id = (await rest.call("POST", path, json=hourly | {"max_runs": 2}))["recall"]["id"]
    assert await rest.call("POST", f"{path}/skip") == {"ok": True}
    assert at((await rest.call("GET", path))["recall"]["trigger_at"]) == NOON + 2 * HOUR
    changed = (await rest.call("PATCH", path, json={"when": "90m", "internal_comment": "later"}))["recall"]
    assert (at(changed["trigger_at"]), changed["internal_comment"]) == (NOON + 90 * MINUTE, "later")
    assert (await rest.call("POST", f"{path}/run-now"))["trigger"] == "run_now"
    await rest.harness.work()
    rest.harness.executor.default = doing(fail)
    await rest.harness.turn_at(NOON + 90 * MINUTE)
    still = (await rest.call("GET", path))["recall"]
    assert (still["status"], at(still["trigger_at"])) == ("pending", NOON + 150 * MINUTE)  # a failure does not end it
    rest.harness.executor.default = None
    await rest.harness.turn_at(NOON + 150 * MINUTE)
    wake = await rest.call("GET", f"/wakes/{wake_id}")
    assert (wake["status"], wake["reason"]) == ("fired", "max_runs")
    assert sorted(await runs_of(rest, wake_id), key=str) == [
        ("failed", "error"), ("skipped", "skipped_by_request"), ("success", None), ("success", None),
    ]  # fmt: skip
    until = hourly | {"until": "2h"}
    wake_id = (await rest.call("POST", path, json=until))["recall"]["id"]
    await hourly_until(rest, rest.harness.clock.now() + 5 * HOUR)
    wake = await rest.call("GET", f"/wakes/{wake_id}")
    assert (wake["status"], wake["reason"], len(await runs_of(rest, wake_id))) == ("fired", "until", 2)


async def test_a_recall_that_fails_is_told_as_such_and_frees_its_place(rest, session):
    rest.harness.executor.default = doing(fail)
    body = {"call_type": "once", "when": "1h", "additional_context_message": TODO}
    wake_id = (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]
    await rest.harness.turn_at(NOON + HOUR)
    wake = await rest.call("GET", f"/wakes/{wake_id}")
    assert (wake["status"], "no network" in wake["error"]) == ("failed", True)
    assert await rest.call("GET", f"/sessions/{session}/recall") == {"recall": None}
    assert (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["status"] == "pending"


async def test_a_recall_that_everyone_forgot_ends_with_a_notice(rest, session):
    body = {"call_type": "recurring", "cron": "0 9 * * *", "additional_context_message": TODO} | ZONED
    wake_id = (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]
    for days, status in ((29, "pending"), (31, "cancelled")):
        rest.harness.clock.set(NOON + days * DAY)
        await run_tidy_jobs(rest.harness.node)
        assert (await rest.call("GET", f"/wakes/{wake_id}"))["status"] == status
    assert (await rest.call("GET", f"/wakes/{wake_id}"))["reason"] == "forgotten"
    assert await notices(rest) == ["forgotten"]


# ── Psi: schedules ──────────────────────────────────────────────────────────────────────────────────────────────────

DELAYS = [  # what is asked at 12:00:00, and after how long it comes; None: it is refused
    ({"delay_ms": 999}, None),
    ({"delay_ms": 1_000}, SECOND),
    ({"delay_ms": 86_400_000}, DAY),
    ({"delay_ms": 86_400_001}, None),
    ({"at": "2020-01-01T00:00:00Z"}, 0 * SECOND),
    ({"at": "2026-03-02T12:00:00Z"}, 0 * SECOND),
    ({"at": "2026-03-02T12:00:00.0009Z"}, 0 * SECOND),
    ({"at": "2026-03-02T12:00:00.001Z"}, None),
    ({"at": "2026-03-02T12:00:00.999Z"}, None),
    ({"at": "2026-03-02T13:00:01+01:00"}, SECOND),
    ({"at": "2026-03-03T12:00:00Z"}, DAY),
    ({"at": "2026-03-03T12:00:00.001Z"}, None),
]


@pytest.mark.parametrize("kind", ["message", "session"])
async def test_a_schedule_takes_a_second_to_a_day_both_included(rest, session, kind):
    path = f"/sessions/{session}/schedules"
    config = {"session_config": {}} if kind == "session" else {}
    for asked, delay in DELAYS:
        status, answer = await rest.ask("POST", path, json={"kind": kind, "message": "Go."} | config | asked)
        if delay is None:
            assert (status, answer["error"]["code"]) == (400, "delay_out_of_bounds"), asked
            continue
        schedule = answer["schedule"]
        assert (status, schedule["kind"], schedule["status"]) == (201, kind, "pending"), answer
        assert at(schedule["fire_at"]) == NOON + delay, asked
        assert (schedule["session_config_summary"] is None) == (kind == "message")
        assert await rest.call("DELETE", f"/schedules/{schedule['id']}") == {"ok": True}


# ── Osaurus: the next run ───────────────────────────────────────────────────────────────────────────────────────────

MODES = {  # longest horizon, shortest interval, runs a day, quiet hours
    "ambient": (7 * DAY, HOUR, 6, ("22:00", "07:00")),
    "reactive": (DAY, 5 * MINUTE, 48, (None, None)),
    "project": (30 * DAY, HOUR, 4, ("22:00", "07:00")),
    "manual": (7 * DAY, 15 * MINUTE, 0, (None, None)),
}


async def test_choosing_a_mode_rewrites_every_bound_and_an_edited_one_shows(rest):
    path = f"/agents/{rest.harness.agent.id}"
    for mode, (horizon, interval, cap, quiet) in MODES.items():
        edited = await rest.call("PATCH", path, json={"schedule": {"daily_cap": 9, "days": [1]}})
        assert edited["schedule"]["is_customised"]
        chosen = (await rest.call("PATCH", path, json={"schedule": {"mode": mode}}))["schedule"]
        assert chosen == {
            "mode": mode, "is_customised": False, "max_horizon_seconds": horizon.total_seconds(),
            "min_interval_seconds": interval.total_seconds(), "daily_cap": cap, "quiet_from": quiet[0],
            "quiet_to": quiet[1], "days": [0, 1, 2, 3, 4, 5, 6],
        }  # fmt: skip
    await rest.call("PATCH", path, json={"self_scheduling": False})
    assert (await rest.call("PATCH", path, json={"self_scheduling": True}))["schedule"]["mode"] == "ambient"


async def test_two_changes_of_one_agents_limits_at_once_are_both_kept(rest):
    agent = f"/agents/{rest.harness.agent.id}"
    for number in range(1, 11):
        asked = [
            {"schedule": {"daily_cap": number}},
            {"schedule": {"min_interval_seconds": 60 * number}},
            {"budgets": {"run_tokens": 1_000 * number}},
            {"budgets": {"day_tokens": 2_000 * number}},
        ]
        await asyncio.gather(*(rest.call("PATCH", agent, json=each) for each in asked))
        now = await rest.call("GET", agent)
        assert (now["schedule"]["daily_cap"], now["schedule"]["min_interval_seconds"]) == (number, 60 * number)
        assert (now["budgets"]["run_tokens"], now["budgets"]["day_tokens"]) == (1_000 * number, 2_000 * number)


async def test_low_priority_is_skipped_while_the_user_talks_and_the_loop_says_that_it_ended(rest, session):
    low = await rest.harness.book(kind="next_run", at=NOON + MINUTE, priority="low", scheduled_by="agent")
    await rest.call("POST", f"/sessions/{session}/messages", json={"content": "Hello?"})
    await rest.harness.turn_at(NOON + MINUTE)
    assert await runs_of(rest, low.id) == [("skipped", "user_active")]
    assert (await rest.call("GET", f"/wakes/{low.id}"))["status"] == "skipped"
    assert await notices(rest) == ["loop_ended"]


async def test_a_cap_that_is_reached_holds_until_the_agents_midnight(rest):
    await rest.call("PATCH", f"/agents/{rest.harness.agent.id}", json={"schedule": {"daily_cap": 1}})
    for hours, status in ((1, "fired"), (2, "pending")):
        wake = await rest.harness.book(kind="next_run", at=NOON + hours * HOUR, scheduled_by="agent")
        await rest.harness.turn_at(NOON + hours * HOUR)
        shown = await rest.call("GET", f"/wakes/{wake.id}")
        assert (shown["status"], shown["held_by"]) == (status, None if status == "fired" else "daily_cap")
    assert at(shown["attempt_at"]) == at("2026-03-03T00:00:00+01:00")
    await rest.harness.turn_at(at(shown["attempt_at"]))
    assert await runs_of(rest, wake.id) == [("success", None)]


@pytest.mark.parametrize(
    ("on_miss", "status", "runs"),
    [
        (None, "skipped", [("skipped", "missed")]),
        ("skip", "skipped", [("skipped", "missed")]),
        ("run_once", "fired", [("success", "missed")]),
        ("run_catchup", "fired", [("success", "missed")]),
    ],
)
async def test_a_next_run_that_a_sleep_made_late_does_what_was_asked(rest, on_miss, status, runs):
    path = f"/agents/{rest.harness.agent.id}/next-run"
    body = {"in_seconds": 3600, "instructions": TODO} | ({} if on_miss is None else {"on_miss": on_miss})
    wake_id = (await rest.call("PUT", path, json=body))["next_run"]["id"]
    await rest.harness.turn_at(NOON + DAY)
    assert await runs_of(rest, wake_id) == runs
    assert (await rest.call("GET", f"/wakes/{wake_id}"))["status"] == status
    assert await rest.call("GET", path) == {"next_run": None}


# ── What will run, and why ──────────────────────────────────────────────────────────────────────────────────────────


async def test_the_agenda_the_preview_and_why_say_what_really_happens(rest, session):
    agent = rest.harness.agent.id
    rule = {"cron": "30 6 * * *", "timezone": "UTC"}
    times = (await rest.call("GET", "/wakes/preview", params=rule | {"agent_id": agent}))["times"]
    assert [at(each["at"]) for each in times] == [NOON + (18.5 + 24 * day) * HOUR for day in range(5)]
    body = {"call_type": "recurring", "additional_context_message": TODO} | rule
    wake_id = (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]
    await rest.call("PUT", "/pause", json={"until": (NOON + 20 * HOUR).isoformat(), "reason": "holiday"})
    week = {"from": NOON.isoformat(), "to": (NOON + 3 * DAY).isoformat()}
    planned = (await rest.call("GET", "/agenda", params=week))["planned"]
    first, *rest_of_it = [(at(each["nominal_at"]), at(each["at"]), each["reason"]) for each in planned]
    assert first == (NOON + 18.5 * HOUR, NOON + 20 * HOUR, "paused")
    assert [moved for _, _, moved in rest_of_it] == [None, None]
    await hourly_until(rest, NOON + 3 * DAY, HOUR / 2)
    ran = (await rest.call("GET", "/agenda", params=week))["ran"]
    assert [at(run["nominal_at"]) for run in ran] == [nominal for nominal, _, _ in (first, *rest_of_it)]
    assert [at(run["started_at"]) for run in ran] == [due for _, due, _ in (first, *rest_of_it)]
    story = (await rest.call("GET", f"/wakes/{wake_id}/why"))["decisions"]
    codes = [each["code"] for each in story]
    assert codes[:2] == ["booked", "paused"]
    assert (codes.count("started"), codes.count("success")) == (3, 3)
    status, refused = await rest.ask("GET", "/agenda", params=week | {"to": (NOON + 900 * DAY).isoformat()})
    assert (status, bool(re.search(r"at most \d+ days", refused["error"]["message"]))) == (400, True)


async def test_a_loop_that_stands_still_and_a_promise_that_nobody_keeps_are_reported(rest, session):
    body = {"call_type": "once", "when": "1m", "additional_context_message": TODO}
    wake_id = (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]
    await rest.harness.turn()
    assert await rest.ask("GET", "/readyz") == (200, {"ok": True, "problems": []})
    rest.harness.clock.set(NOON + 10 * MINUTE)
    await rest.harness.node.engine.look_after()  # as it does each minute
    status, told = await rest.ask("GET", "/readyz")
    *stalled, overdue = told["problems"]
    assert stalled == [f"the {loop} has not turned for 600 s" for loop in ("scheduler", "runner")]
    assert (status, wake_id in overdue) == (503, True)
    await rest.harness.turn()
    await rest.harness.node.engine.look_after()
    assert (await rest.ask("GET", "/readyz"))[0] == 200


# ── What goes wrong ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_keeps_failing_comes_back_less_often_and_says_so_once(rest, session):
    rest.harness.executor.default = doing(fail)
    body = {"call_type": "recurring", "when": "1h", "interval_seconds": 3600, "additional_context_message": TODO}
    wake_id = (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]
    await hourly_until(rest, NOON + 7 * HOUR)
    wake = await rest.call("GET", f"/wakes/{wake_id}")
    assert (wake["status"], wake["held_by"]) == ("pending", "backoff")
    assert len(await runs_of(rest, wake_id)) == 6  # five, an hour apart; the sixth came two hours later
    assert at(wake["attempt_at"]) == NOON + 11 * HOUR
    assert await notices(rest) == ["backoff"]


async def test_a_daily_time_that_comes_twice_in_autumn_comes_once(rest, session):
    rest.harness.clock.set(at("2026-10-24T12:00:00+00:00"))
    body = {"call_type": "recurring", "cron": "30 2 * * *", "additional_context_message": TODO} | ZONED
    wake_id = (await rest.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]
    await hourly_until(rest, at("2026-10-26T12:00:00+00:00"), HOUR / 2)
    ran = (await rest.call("GET", "/runs", params={"wake_id": wake_id}))["runs"]
    assert sorted(at(run["nominal_at"]) for run in ran) == [
        at("2026-10-25T00:30:00+00:00"), at("2026-10-26T01:30:00+00:00"),
    ]  # fmt: skip


async def test_one_agents_many_runs_do_not_keep_another_agent_waiting(rest, session):
    other = await rest.call("POST", "/agents", json={"name": "Another"})
    theirs = (await rest.call("POST", "/sessions", json={"title": "Theirs", "agent_id": other["id"]}))["id"]
    asked = {"kind": "session", "message": "Go.", "at": "2020-01-01T00:00:00Z", "session_config": {}}
    for place in (*[session] * 6, theirs):
        await rest.call("POST", f"/sessions/{place}/schedules", json=asked)
    gate = rest.harness.executor.default = rest.harness.gate()
    await rest.harness.turn()
    at_work = (await rest.call("GET", "/runs", params={"status": "running"}))["runs"]
    assert sorted(run["agent_id"] == other["id"] for run in at_work) == [False, False, True]
    await rest.harness.let_through(gate)
