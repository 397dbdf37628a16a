"""A run that an agent booked never has more tools than the run that booked it, shown by the provider's requests."""

import json

import pytest

from live_server import eventually
from openai_server import call, calls, say

TODO = "Read notes.txt with read_file."
DOORS = {
    "recall": ("schedule_recall", {"call_type": "once", "when": "1h", "additional_context_message": TODO}),
    "message": ("scheduler", {"op": "create", "kind": "message", "delay_ms": 3_600_000, "message": TODO}),
    "session": (
        "scheduler",
        {"op": "create", "kind": "session", "delay_ms": 3_600_000, "message": TODO, "session_config": {}},
    ),
    "next_run": ("schedule_next_run", {"in_seconds": 3_600, "instructions": TODO}),
}
BOOKING = ["recall", "scheduler", "next_run"]


@pytest.fixture
async def server(shared_server):
    async with shared_server.as_new_owner() as server:
        await server.change_agent(toolsets=[*BOOKING, "files"])
        yield server


def booking(kind, **changes):
    name, arguments = DOORS[kind]
    return calls(*call(name, json.dumps(arguments | changes)))


def sent_tools(server):
    return {tool["function"]["name"] for tool in server.provider.last["tools"]}


async def pending(server, kind):
    found = (await server.call("GET", "/wakes", params={"status": "pending"}))["wakes"]
    [wake] = [each for each in found if each["kind"] == kind]
    return wake


async def book_in_chat(server, kind, **changes):
    """Let the agent book something while its user talks with it, and return the wake."""
    server.provider.then(booking(kind, **changes), say("Booked."))
    async with server.watch(await server.session()) as client:
        await client.ask("Come back later")
    return await pending(server, kind)


async def wake_up(server, wake, *answers):
    """Run a wake now, with these answers of the model, to its end."""
    server.provider.then(*(answers or (say("Done."),)))
    run = await server.call("POST", f"/wakes/{wake['id']}/run-now")

    async def is_over():
        return (await server.run(run["id"]))["finished_at"]

    await eventually(is_over)
    ended = await server.run(run["id"])
    assert ended["status"] == "success", ended
    return ended


@pytest.mark.parametrize("kind", DOORS)
async def test_what_is_granted_after_the_booking_is_neither_shown_nor_callable(server, kind):
    wake = await book_in_chat(server, kind)
    had = sent_tools(server)
    await server.change_agent(toolsets=[*BOOKING, "files", "web", "notify"])
    run = await wake_up(server, wake, calls(*call("fetch_url", '{"url": "http://127.0.0.1:1/"}')), say("Hm."))
    assert sent_tools(server) == had
    told = [each for each in await server.messages(run["session_id"]) if each["role"] == "tool"][-1]
    assert "There is no tool 'fetch_url'" in told["content"]


@pytest.mark.parametrize("kind", DOORS)
async def test_what_was_taken_away_since_is_not_given_back(server, kind):
    wake = await book_in_chat(server, kind)
    await server.change_agent(toolsets=["files"])
    await wake_up(server, wake)
    assert sent_tools(server) == {"read_file", "write_file", "list_files", "search_files"}


@pytest.mark.parametrize("kind", DOORS)
async def test_a_chain_of_wakes_never_widens(server, kind):
    first = await book_in_chat(server, kind)
    had = sent_tools(server)
    await server.change_agent(toolsets=[*BOOKING, "files", "web"])
    await wake_up(server, first, booking(kind), say("Booked again."))
    second = await pending(server, kind)
    assert (second["id"] != first["id"], set(second["tools"])) == (True, had)
    await wake_up(server, second)
    assert sent_tools(server) == had


async def test_a_wake_says_which_run_it_is_held_to_and_so_does_why(server):
    wake = await book_in_chat(server, "recall")
    assert set(wake["tools"]) == sent_tools(server)
    [booked] = [
        each for each in (await server.call("GET", f"/wakes/{wake['id']}/why"))["decisions"] if each["code"] == "booked"
    ]
    assert booked["detail"].items() >= {"by": "agent", "run_id": wake["booked_by_run"], "tools": wake["tools"]}.items()


async def test_a_session_configuration_narrows_further(server):
    config = {"tool_ids": ["read_file", "scheduler"]}
    wake = await book_in_chat(server, "session", session_config=config)
    await wake_up(server, wake, booking("session"), say("Booked again."))
    assert sent_tools(server) == {"read_file", "scheduler"}
    again = await pending(server, "session")
    assert set(again["tools"]) == {"read_file", "scheduler"}
    await wake_up(server, again)
    assert sent_tools(server) == {"read_file", "scheduler"}


async def test_what_a_person_books_or_says_has_the_tools_of_the_day(server):
    agent = await server.change_agent(toolsets=["files"])
    session = await server.session()
    bodies = {
        f"/sessions/{session}/recall": {"call_type": "once", "when": "1h", "additional_context_message": TODO},
        f"/sessions/{session}/schedules": {"kind": "message", "delay_ms": 3_600_000, "message": TODO},
    }
    for path, body in bodies.items():
        await server.call("POST", path, json=body)
    await server.call("PUT", f"/agents/{agent['id']}/next-run", json={"in_seconds": 3_600, "instructions": TODO})
    await server.change_agent(toolsets=["files", "web"])
    for wake in (await server.call("GET", "/wakes"))["wakes"]:
        assert wake["tools"] is None
        await wake_up(server, wake)
        assert "fetch_url" in sent_tools(server)


async def test_a_user_who_talks_in_a_session_that_an_agent_booked_has_the_tools_of_the_day(server):
    wake = await book_in_chat(server, "session", session_config={"session_name": "Titled"})
    await server.change_agent(toolsets=["files", "web"])
    run = await wake_up(server, wake)
    assert "fetch_url" not in sent_tools(server)
    server.provider.then(say("Hello."))
    async with server.watch(run["session_id"]) as client:
        await client.ask("Hello?")
    assert "fetch_url" in sent_tools(server)
