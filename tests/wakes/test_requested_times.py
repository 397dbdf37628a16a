"""`why` shows the requested time, the rule that moved it and the booked time, through every API."""

import json
from datetime import datetime

import pytest

from harness import DAY, HOUR, MINUTE, NOON
from live_server import eventually, running_server
from openai_server import call, calls, say
from wakeful.core.clock import ManualClock

TODO = "Read notes.txt with read_file."
BERLIN = "Europe/Berlin"


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, clock=ManualClock(NOON), lease_seconds=3600) as server:
        yield server


@pytest.fixture
async def session(server):
    return await server.session()


@pytest.fixture
async def agent(server):
    return (await server.call("GET", "/agents"))["agents"][0]["id"]


async def links(server, wake_id, code):
    chain = (await server.call("GET", f"/wakes/{wake_id}/why"))["decisions"]
    assert chain[0]["code"] == "booked"
    return [each["detail"] for each in chain if each["code"] == code]


async def booked(server, wake_id):
    [detail] = await links(server, wake_id, "booked")
    return detail["requested"], detail["moved_by"], datetime.fromisoformat(detail["final"])


async def only_wake(server):
    [wake] = (await server.call("GET", "/wakes"))["wakes"]
    return wake["id"]


async def run_out(server, wake_id):
    """Wait for the end of a wake that comes at once."""

    async def is_over():
        return (await server.call("GET", f"/wakes/{wake_id}"))["status"] == "fired"

    await eventually(is_over)


async def recall(server, session, **asked):
    body = {"call_type": "once", "additional_context_message": TODO} | asked
    return (await server.call("POST", f"/sessions/{session}/recall", json=body))["recall"]["id"]


@pytest.mark.parametrize(
    ("asked", "wish"),
    [
        pytest.param({"when": "in twenty minutes"}, ("in twenty minutes", [], NOON + 20 * MINUTE), id="words"),
        pytest.param(
            {"when": "Tomorrow 9am", "timezone": BERLIN}, ("Tomorrow 9am", [], NOON + 20 * HOUR), id="a wall clock"
        ),
        pytest.param(
            {"when": "2026-03-29T02:30", "timezone": BERLIN},
            ("2026-03-29T02:30", ["clock_change"], NOON.replace(day=29, hour=1)),
            id="a time that does not exist",
        ),
        pytest.param(
            {"call_type": "recurring", "when": "1h", "cron": "0 15 * * *", "timezone": "UTC"},
            ("1h", ["cron"], NOON + 3 * HOUR),
            id="not before, by a rule",
        ),
        pytest.param(
            {"call_type": "recurring", "cron": "0 15 * * *", "timezone": "UTC"},
            ("0 15 * * *", [], NOON + 3 * HOUR),
            id="a rule alone",
        ),
    ],
)
async def test_a_recall(server, session, asked, wish):
    assert await booked(server, await recall(server, session, **asked)) == wish


async def test_a_recall_at_once(server, session):
    server.provider.then(say("Done."))
    wake_id = await recall(server, session, call_type="immediate")
    assert await booked(server, wake_id) == ("immediate", [], NOON)
    await run_out(server, wake_id)


async def test_a_recall_of_an_agent(server, session):
    asked = {"call_type": "once", "when": "30m.", "additional_context_message": TODO}
    server.provider.then(calls(*call("schedule_recall", json.dumps(asked))), say("Booked."))
    async with server.watch(session) as client:
        await client.ask("Go")
    assert await booked(server, await only_wake(server)) == ("30m.", [], NOON + 30 * MINUTE)


@pytest.mark.parametrize(
    ("asked", "wish"),
    [
        ({"delay_ms": 5_000}, ("in 5000 ms", [], NOON + MINUTE / 12)),
        ({"at": "2026-03-02T14:00+01:00"}, ("2026-03-02T14:00+01:00", [], NOON + HOUR)),
        ({"when": "this evening", "timezone": BERLIN}, ("this evening", [], NOON + 5 * HOUR)),
    ],
)
async def test_a_schedule(server, session, asked, wish):
    body = {"kind": "message", "message": TODO} | asked
    made = await server.call("POST", f"/sessions/{session}/schedules", json=body)
    assert await booked(server, made["schedule"]["id"].removeprefix("sch-")) == wish


@pytest.mark.parametrize(
    ("asked", "wish"),
    [
        ({"in_seconds": 3600}, ("in 3600 s", [], NOON + HOUR)),
        ({"scheduled_at": "2026-04-01T00:00Z"}, ("2026-04-01T00:00Z", ["max_horizon"], NOON + DAY)),
        ({"when": "in half an hour"}, ("in half an hour", [], NOON + 30 * MINUTE)),
    ],
)
async def test_a_next_run(server, agent, asked, wish):
    made = await server.call("PUT", f"/agents/{agent}/next-run", json={"instructions": TODO} | asked)
    assert await booked(server, made["next_run"]["id"]) == wish


async def test_a_time_that_was_past_comes_at_once_and_why_says_so(server, session, agent):
    server.provider.then(say("Done."), say("Done."))
    asked = {"kind": "message", "message": TODO, "at": "2020-01-01T00:00Z"}
    made = await server.call("POST", f"/sessions/{session}/schedules", json=asked)
    schedule = made["schedule"]["id"].removeprefix("sch-")
    asked = {"instructions": TODO, "scheduled_at": "2020-01-01T00:00Z"}
    next_run = (await server.call("PUT", f"/agents/{agent}/next-run", json=asked))["next_run"]["id"]
    for wake_id in (schedule, next_run):
        await run_out(server, wake_id)
        assert await booked(server, wake_id) == ("2020-01-01T00:00Z", ["past"], NOON)


async def test_a_next_run_of_an_agent_that_its_bounds_moved(server, session, agent):
    quiet = {"quiet_from": "12:00", "quiet_to": "18:00"}
    await server.call("PATCH", f"/agents/{agent}", json={"timezone": "UTC", "schedule": quiet})
    asked = {"in_seconds": 60, "instructions": TODO}
    server.provider.then(calls(*call("schedule_next_run", json.dumps(asked))), say("Booked."))
    async with server.watch(session) as client:
        await client.ask("Go")
    assert await booked(server, await only_wake(server)) == (
        "in 60 s",
        ["min_interval", "quiet_hours"],
        NOON + 6 * HOUR,
    )


@pytest.mark.parametrize("door", ["wakes", "recall"])
async def test_an_edit_keeps_its_own_wish_beside_the_first(server, session, door):
    wake_id = await recall(server, session, when="1h")
    path = f"/wakes/{wake_id}" if door == "wakes" else f"/sessions/{session}/recall"
    await server.call("PATCH", path, json={"when": "tomorrow at 9 UTC"})
    assert (await booked(server, wake_id))[0] == "1h"
    [edited] = await links(server, wake_id, "edited")
    assert (edited["requested"], edited["moved_by"], edited["zone"]) == ("tomorrow at 9 UTC", [], "UTC")
    assert datetime.fromisoformat(edited["final"]) == NOON + 21 * HOUR


async def test_the_first_link_stays_when_the_wake_has_moved_on(server, session):
    wake_id = await recall(server, session, call_type="recurring", when="1h", interval_seconds=3600)
    await server.call("POST", f"/wakes/{wake_id}/skip")
    assert await booked(server, wake_id) == ("1h", [], NOON + HOUR)


async def test_words_and_another_time_at_once_are_refused(server, session, agent):
    for method, path, body in (
        ("POST", f"/sessions/{session}/schedules", {"kind": "message", "message": TODO, "delay_ms": 5_000}),
        ("PUT", f"/agents/{agent}/next-run", {"instructions": TODO, "in_seconds": 60}),
    ):
        answer = await server.rest.request(method, path, json=body | {"when": "1h"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_time")
