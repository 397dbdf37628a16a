"""The server records the door of each booking and run, and shows it over REST, in the history and in commands."""

import json

import pytest

from live_server import eventually
from openai_server import call, calls, say

TODO = "Read notes.txt with read_file."


@pytest.fixture
async def agent_id(server):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    return agent["id"]


def came_in(shown):
    return {name: shown[name] for name in ("door", "token_name", "through")}


REST = {"door": "rest", "token_name": "t", "through": "through REST (token “t”)"}


async def test_bookings_over_rest_name_the_token(server, session, agent_id):
    recall = await server.call(
        "POST",
        f"/sessions/{session}/recall",
        json={"call_type": "once", "when": "1h", "additional_context_message": TODO},
    )
    schedule = await server.call(
        "POST", f"/sessions/{session}/schedules", json={"kind": "message", "delay_ms": 3_600_000, "message": TODO}
    )
    next_run = await server.call(
        "PUT", f"/agents/{agent_id}/next-run", json={"in_seconds": 3_600, "instructions": TODO}
    )
    assert came_in(recall["recall"]) == came_in(next_run["next_run"]) == REST
    me = await server.call("GET", "/me")
    for wake_id in (
        recall["recall"]["id"],
        schedule["schedule"]["id"].removeprefix("sch-"),
        next_run["next_run"]["id"],
    ):
        wake = await server.call("GET", f"/wakes/{wake_id}")
        assert came_in(wake) == REST
        assert wake["token_id"] == me["token_id"]
        [first, *_] = (await server.call("GET", f"/wakes/{wake_id}/why"))["decisions"]
        assert ", through REST (token “t”)." in first["text"]


async def test_runs_over_rest_and_sockets_name_the_token(server, session):
    server.provider.then(say("Hello"), say("Hello again"))
    async with server.watch(session) as client:
        await client.ask("Hi")
    sent = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Hi again"})

    async def is_over():
        return (await server.run(sent["run_id"]))["finished_at"]

    await eventually(is_over)
    assert [came_in(run) for run in await server.runs_of(session)] == [REST, REST]


async def test_the_commands_are_told_apart_by_their_user_agent(server, session):
    async with server.client(server.token) as client:
        client.headers["User-Agent"] = "wakeful-cli"
        booked = await client.post(
            f"/sessions/{session}/recall",
            json={"call_type": "once", "when": "1h", "additional_context_message": TODO},
        )
    shown = booked.json()["recall"]
    assert came_in(shown) == {"door": "cli", "token_name": "t", "through": "through the command line"}


async def test_an_agents_own_bookings_name_no_token(server, session):
    await server.change_agent(toolsets=["next_run"], self_scheduling=True)
    asked = json.dumps({"in_seconds": 3600, "instructions": TODO})
    server.provider.then(calls(*call("schedule_next_run", asked)), say("Booked."))
    async with server.watch(session) as client:
        await client.ask("Book it")
    [wake] = (await server.call("GET", "/wakes"))["wakes"]
    assert came_in(wake) == {"door": "tool", "token_name": None, "through": None}
