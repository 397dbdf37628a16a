"""Whose time zone a wall-clock time is in: the parameter's, the agent's, the user's, or an error."""

from datetime import datetime

import pytest

from harness import HOUR, NOON
from live_server import running_server
from openai_server import say
from wakeful.core.clock import ManualClock

TODO = "Read notes.txt with read_file."
REPEATED = {"call_type": "recurring", "when": "1h", "interval_seconds": 60}
TOMORROW_9 = NOON.replace(day=3, hour=9)  # in UTC


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, clock=ManualClock(NOON), lease_seconds=3600) as server:
        yield server


@pytest.fixture
async def agent(server):
    return (await server.call("GET", "/agents"))["agents"][0]


async def ask(server, **asked):
    """Book a recall in a session of its own and return the answer."""
    body = {"call_type": "once", "when": "tomorrow at 9", "additional_context_message": TODO} | asked
    session = await server.session()
    return await server.rest.post(f"/sessions/{session}/recall", json=body)


async def time_of(server, **asked):
    answer = await ask(server, **asked)
    assert answer.status_code == 201, answer.text
    return datetime.fromisoformat(answer.json()["recall"]["trigger_at"])


async def set_zone(server, zone):
    me = (await server.call("GET", "/me"))["user"]
    return await server.call("PATCH", f"/users/{me['id']}", json={"timezone": zone})


async def test_a_new_server_knows_nobodys_zone(server, agent):
    assert (await server.call("GET", "/me"))["user"]["timezone"] is None
    assert (agent["timezone"], agent["zone"], agent["is_zone_known"]) == (None, "UTC", False)


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({}, "when_needs_zone", "when"),
        ({"when": "2026-03-03T09:00"}, "when_needs_zone", "when"),
        ({"call_type": "recurring", "when": None, "cron": "0 9 * * *"}, "cron_needs_zone", "timezone"),
        (
            {"call_type": "recurring", "when": "1h", "interval_seconds": 60, "until": "friday"},
            "when_needs_zone",
            "until",
        ),
    ],
)
async def test_a_wall_clock_without_any_zone_is_an_error(server, asked, code, field):
    answer = await ask(server, **asked)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["field"]) == (400, code, field)
    assert "no time zone is known" in error["message"]


@pytest.mark.parametrize("when", ["30m", "2026-03-03T09:00Z", "tomorrow at 9 UTC"])
async def test_what_needs_no_zone_is_booked_without_one(server, when):
    assert (await ask(server, when=when)).status_code == 201


async def test_the_parameter_comes_first_then_the_agent_then_the_user(server, agent):
    await set_zone(server, "Asia/Tokyo")
    assert await time_of(server) == TOMORROW_9 - 9 * HOUR
    await server.call("PATCH", f"/agents/{agent['id']}", json={"timezone": "Europe/Berlin"})
    assert await time_of(server) == TOMORROW_9 - HOUR
    assert await time_of(server, timezone="America/New_York") == TOMORROW_9 + 5 * HOUR
    assert await time_of(server, when="tomorrow at 9 UTC", timezone="America/New_York") == TOMORROW_9
    await server.call("PATCH", f"/agents/{agent['id']}", json={"timezone": None})
    assert await time_of(server) == TOMORROW_9 - 9 * HOUR


async def test_an_agent_made_without_a_zone_takes_its_users(server):
    await set_zone(server, "Asia/Tokyo")
    made = await server.call("POST", "/agents", json={"name": "Night owl"})
    assert (made["timezone"], made["zone"], made["is_zone_known"]) == (None, "Asia/Tokyo", True)
    await set_zone(server, "Europe/Berlin")
    assert (await server.call("GET", f"/agents/{made['id']}"))["zone"] == "Europe/Berlin"


async def test_an_edit_of_a_wake_without_a_zone_uses_the_one_that_is_known_by_then(server):
    wake_id = (await ask(server, when="30m")).json()["recall"]["id"]
    refused = await server.rest.patch(f"/wakes/{wake_id}", json={"when": "tomorrow at 9"})
    assert refused.json()["error"]["code"] == "when_needs_zone"
    await set_zone(server, "Asia/Tokyo")
    changed = await server.call("PATCH", f"/wakes/{wake_id}", json={"when": "tomorrow at 9"})
    assert datetime.fromisoformat(changed["nominal_at"]) == TOMORROW_9 - 9 * HOUR
    assert changed["timezone"] == "Asia/Tokyo"


async def test_a_zone_that_does_not_exist_is_refused(server):
    me = (await server.call("GET", "/me"))["user"]["id"]
    answer = await server.rest.patch(f"/users/{me}", json={"timezone": "Europe/Berln"})
    error = answer.json()["error"]
    assert (answer.status_code, error["field"], error["hint"]) == (400, "timezone", "Europe/Berlin")


async def test_the_model_is_told_that_the_time_is_in_utc_because_no_zone_is_known(server):
    server.provider.then(say("Hi."), say("Hi."))
    session = await server.session()
    async with server.watch(session) as client:
        await client.ask("Hello")
        assert "time zone is not known" in server.provider.last["messages"][0]["content"]
        await set_zone(server, "Asia/Tokyo")
        await client.ask("Hello")
        assert "21:00:00 (Asia/Tokyo, UTC+0900)" in server.provider.last["messages"][0]["content"]


async def test_today_begins_in_the_users_zone_as_soon_as_that_is_known(server, agent):
    await set_zone(server, "Asia/Tokyo")
    found = await server.call("GET", f"/agents/{agent['id']}/usage")
    assert datetime.fromisoformat(found["today"]["since"]) == NOON.replace(day=1, hour=15)
