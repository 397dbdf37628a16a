"""Self-scheduling switched off: ended wakes have a reason, and bookings of a run in progress are refused."""

import json
from dataclasses import replace

import pytest

from live_server import Tap, eventually, of_kind
from openai_server import call, calls, say
from terminal import pipe
from wakeful.core import ids

TODO = "Read notes.txt with read_file."
TRIES = [
    ("schedule_recall", {"call_type": "once", "when": "2h", "additional_context_message": TODO}),
    ("manage_recall", {"action": "list"}),
    ("manage_recall", {"action": "cancel"}),
    ("scheduler", {"op": "create", "kind": "message", "delay_ms": 5000, "message": TODO}),
    ("scheduler", {"op": "list"}),
    ("schedule_next_run", {"in_seconds": 3600, "instructions": TODO}),
    ("cancel_next_run", {}),
    ("notify", {"title": "Red", "body": "It is red."}),
]


async def agent_books(server, client, tool, arguments):
    server.provider.then(calls(*call(tool, json.dumps(arguments))), say("Booked."))
    frames = await client.ask("Book it")
    [answer] = of_kind(frames, "tool_call")
    assert answer["success"], answer["result"]


async def test_each_recall_and_schedule_it_ends_is_told(server, session):
    async with server.watch(session) as client, server.watch_events() as page:
        await agent_books(server, client, *TRIES[0])
        await agent_books(server, client, *TRIES[3][:1], TRIES[3][1] | {"delay_ms": 3_600_000})
        await agent_books(server, client, *TRIES[5])
        live = {each["id"]: each["kind"] for each in (await server.call("GET", "/wakes"))["wakes"]}
        assert sorted(live.values()) == ["message", "next_run", "recall"]
        await server.change_agent(self_scheduling=False)
        update = await client.expect("recall_update")
        assert (live[update["recall_id"]], update["action"], update["status"]) == ("recall", "cancelled", "cancelled")
        ended = {}
        while set(ended) != set(live):
            frame = await page.next()
            if frame["type"] == "recall_update" and frame["action"] == "cancelled":
                ended[frame["recall_id"]] = "recall"
            if frame["type"] == "schedule_update" and frame["status"] == "cancelled":
                ended[frame["wake_id"]] = frame["kind"]
        assert ended == live
    wakes = (await server.call("GET", "/wakes"))["wakes"]
    assert {(each["status"], each["reason"]) for each in wakes} == {("cancelled", "self_scheduling_off")}


async def test_what_goes_with_a_deleted_agent_is_told_too(server, session):
    asked = {"call_type": "once", "when": "2h", "additional_context_message": TODO}
    booked = (await server.call("POST", f"/sessions/{session}/recall", json=asked))["recall"]
    async with server.watch(session) as client, server.watch_events() as page:
        [agent] = (await server.call("GET", "/agents"))["agents"]
        await server.call("DELETE", f"/agents/{agent['id']}")
        for watching in (client, page):
            while (update := await watching.next())["type"] != "recall_update":
                pass
            assert (update["recall_id"], update["action"], update["status"]) == (booked["id"], "cancelled", "cancelled")
    decisions = (await server.call("GET", f"/wakes/{booked['id']}/why"))["decisions"]
    assert ("cancelled", {"reason": "agent_gone"}) in [(each["code"], each["detail"]) for each in decisions]


async def test_the_command_says_that_many_wakes_are_cancelled_in_the_background(server, session, tmp_path):
    asked = {"call_type": "once", "when": "2h", "additional_context_message": TODO}
    booked = (await server.call("POST", f"/sessions/{session}/recall", json=asked))["recall"]
    store = server.node.store
    wake = await store.read(lambda tx: tx.wakes.read(booked["id"]))
    more = [replace(wake, id=ids.new_id(), kind="session", session_id=None, slot=None) for _ in range(1_204)]
    await store.write(lambda tx: tx.wakes.add(more))
    code, said, problem = await pipe(server, tmp_path, "agent", "rm", wake.agent_id, "--yes")
    assert (code, problem) == (0, "")
    assert said == "Deleted. 205 more wakes are being cancelled in the background; none of them fires.\n"

    async def is_none_left():
        return (await server.call("GET", "/wakes", params={"live": True}))["wakes"] == []

    await eventually(is_none_left)


async def test_what_a_person_booked_stays_and_is_not_said_to_have_ended(server, session):
    asked = {"call_type": "once", "when": "2h", "additional_context_message": TODO}
    await server.call("POST", f"/sessions/{session}/recall", json=asked)
    async with server.watch(session) as client:
        await server.change_agent(self_scheduling=False)
        assert (await server.call("GET", f"/sessions/{session}/recall"))["recall"]["status"] == "pending"
        await client.nothing_more()


@pytest.mark.parametrize(
    ("tool", "arguments"), TRIES, ids=[f"{tool} {each.get('op') or each.get('action') or ''}" for tool, each in TRIES]
)
async def test_switched_off_in_mid_run_each_tool_refuses_and_names_the_toggle(server, session, tool, arguments):
    thinking = Tap()
    server.provider.then(thinking, say("So be it."))
    async with server.watch(session) as client:
        await client.say("Take your time")
        await thinking.is_asked.wait()
        assert tool in {each["function"]["name"] for each in server.provider.last["tools"]}
        await server.change_agent(self_scheduling=False)
        thinking.let(*call(tool, json.dumps(arguments)))
        thinking.end()
        frames = await client.until("stream_end")
    [answer] = of_kind(frames, "tool_call")
    assert not answer["success"]
    assert "self_scheduling" in answer["result"]
    assert answer["metadata"]["code"] == "self_scheduling_off"
    assert (await server.call("GET", "/wakes"))["wakes"] == []
    assert (await server.call("GET", "/notifications"))["notifications"] == []


async def test_in_the_next_run_they_are_not_even_shown(server, session):
    await server.change_agent(self_scheduling=False)
    server.provider.then(say("Hello."))
    async with server.watch(session) as client:
        await client.ask("Hello?")
    shown = {each["function"]["name"] for each in server.provider.last["tools"]}
    assert "read_file" in shown
    assert not shown & {tool for tool, _ in TRIES}


async def test_a_booking_at_the_very_moment_of_the_switch_does_not_outlive_it(server, session):
    """The tool looked while it was on; the store has the last word."""
    found = await server.node.store.read(lambda tx: tx.sessions.find(session))
    assert found is not None
    await server.change_agent(self_scheduling=False)
    with pytest.raises(Exception, match="self_scheduling") as refused:
        await server.book(session, TODO, scheduled_by="agent")
    assert refused.value.code == "self_scheduling_off"
    assert await eventually(lambda: _no_wakes(server))


async def _no_wakes(server):
    return (await server.call("GET", "/wakes"))["wakes"] == []
