"""Profiles: an agent hands its session over to another agent, only to those that the owner listed."""

import json

import pytest

from live_server import eventually, of_kind, provided, running_server
from openai_server import call, calls, say


def use(tool, call_id="call_1", **arguments):
    return calls(*call(tool, json.dumps(arguments), id=call_id))


def tools_sent(server):
    return {tool["function"]["name"] for tool in server.provider.last.get("tools", [])}


def system_of(server):
    return server.provider.last["messages"][0]["content"]


@pytest.fixture(scope="module")
async def shared_server(shared_settings):
    async with running_server(shared_settings, store_encryption=False) as server:
        yield server


class Two:
    """The first agent, a poet it may hand over to, and a stranger it may not."""

    def __init__(self, server, first, poet, stranger):
        self.server, self.first, self.poet, self.stranger = server, first, poet, stranger


async def make_two(server, **poet):
    made = {"name": "Poet", "description": "Writes verse.", "system_prompt": "Rhyme.", "model": "openai-chat:verse"}
    made |= {"toolsets": ["files", "web", "recall", "next_run"], "self_scheduling": True}
    poet = await server.call("POST", "/agents", json=made | poet)
    stranger = await server.call("POST", "/agents", json={"name": "Stranger"})
    [first, *_] = (await server.call("GET", "/agents"))["agents"]
    tools = ["files", "recall", "next_run"]
    changes = {"profiles": [poet["id"]], "toolsets": tools, "system_prompt": "Be plain."}
    first = await server.call("PATCH", f"/agents/{first['id']}", json=changes)
    return Two(server, first, poet, stranger)


async def test_the_listed_agent_goes_on_in_the_same_run_with_no_more_tools(server):
    two = await make_two(server)
    session = await server.session(agent_id=two.first["id"])
    async with server.watch(session) as client:
        server.provider.then(use("switch_profile", profile="poet"), say("Roses are red."))
        frames = await client.ask("Let the poet answer.")
        [switched] = of_kind(frames, "profile_switched")
        assert (switched["profile_id"], switched["profile_name"]) == (two.poet["id"], "Poet")
        first, second = server.provider.requests[-2:]
        assert (
            "hand this session over with switch_profile to: 'Poet' Writes verse."
            in first.body["messages"][0]["content"]
        )
        assert (first.body["model"], second.body["model"]) == ("test", "verse")
        assert system_of(server).startswith("Rhyme.")
        assert {"read_file", "schedule_recall"} <= tools_sent(server)
        assert "fetch_url" not in tools_sent(server)  # the poet has it, the one who handed over has not

        server.provider.then(say("Violets are blue."))
        await client.ask("And now?")
        assert server.provider.last["model"] == "verse"
        assert "fetch_url" not in tools_sent(server)
        told = await server.call("GET", f"/sessions/{session}")
        assert told["agent_id"] == two.poet["id"]
        assert "fetch_url" not in told["tool_limit"]

        # A person may choose freely, and then the agent has all its tools.
        await server.call("PATCH", f"/sessions/{session}", json={"agent_id": two.poet["id"]})
        assert (await client.expect("profile_switched"))["profile_id"] == two.poet["id"]
        server.provider.then(say("Free."))
        await client.ask("And now?")
        assert "fetch_url" in tools_sent(server)


async def test_an_agent_that_is_not_listed_is_refused(server):
    two = await make_two(server)
    async with server.watch(await server.session(agent_id=two.first["id"])) as client:
        server.provider.then(
            use("switch_profile", call_id="a", profile="Stranger"),
            use("switch_profile", call_id="b", profile=two.stranger["id"]),
            say("I cannot."),
        )
        frames = await client.ask("Let the stranger answer.")
    made = of_kind(frames, "tool_call")
    assert [each["metadata"]["code"] for each in made] == ["profile_not_listed"] * 2
    assert "You may switch to: 'Poet'." in made[0]["result"]
    assert not of_kind(frames, "profile_switched")
    assert server.provider.last["model"] == "test"


async def test_an_agent_without_a_list_is_not_shown_the_tool(server):
    two = await make_two(server)
    async with server.watch(await server.session(agent_id=two.stranger["id"])) as client:
        server.provider.then(use("switch_profile", profile="Poet"), say("No."))
        [made] = of_kind(await client.ask("Let the poet answer."), "tool_call")
    assert made["metadata"]["code"] == "unknown_tool"
    assert "switch_profile" not in tools_sent(server)


async def test_only_own_agents_can_be_listed(server):
    two = await make_two(server)
    token = await server.add_user()
    [graces] = (await server.call("GET", "/agents", token=token))["agents"]
    for agent_id in (graces["id"], "nobody"):
        refused = await server.rest.patch(f"/agents/{two.first['id']}", json={"profiles": [agent_id]})
        assert (refused.status_code, refused.json()["error"]["field"]) == (400, "profiles")


async def test_live_wakes_keep_the_agent_that_booked_them(server):
    two = await make_two(server)
    session = await server.session(agent_id=two.first["id"])
    recall = {"call_type": "once", "when": "1h", "additional_context_message": "Read a.txt with read_file."}
    async with server.watch(session) as client:
        await server.call("POST", f"/sessions/{session}/recall", json=recall)
        server.provider.then(use("switch_profile", profile="Poet"), say("Hello."))
        await client.ask("Let the poet answer.")
        server.provider.then(say("Read."))
        await server.call("POST", f"/sessions/{session}/recall/run-now")
        await client.until("session_sync")
    [run, _] = await server.runs_of(session)
    assert run["agent_id"] == two.first["id"]
    assert server.provider.last["model"] == "test"
    assert system_of(server).startswith("Be plain.")


async def test_what_the_other_agent_books_is_its_own_and_has_no_more_tools(server):
    two = await make_two(server)
    async with server.watch(await server.session(agent_id=two.first["id"])) as client:
        server.provider.then(
            use("switch_profile", call_id="a", profile="Poet"),
            use("schedule_next_run", call_id="b", in_seconds=3600, instructions="Read a.txt with read_file."),
            say("Booked."),
        )
        frames = await client.ask("Let the poet come back.")
    assert [each["success"] for each in of_kind(frames, "tool_call")] == [True, True]
    booked = await server.call("GET", f"/agents/{two.poet['id']}/next-run")
    assert booked["next_run"] is not None
    server.provider.then(say("Read."))
    run = await server.call("POST", f"/agents/{two.poet['id']}/next-run/run-now")

    async def is_over():
        return (await server.run(run["id"] if "id" in run else run["run_id"]))["finished_at"]

    await eventually(is_over, seconds=20)
    assert server.provider.last["model"] == "verse"
    assert "read_file" in tools_sent(server)
    assert "fetch_url" not in tools_sent(server)


async def test_what_one_agent_must_ask_for_the_other_cannot_do_unasked(server):
    two = await make_two(server)
    await server.call("PATCH", f"/agents/{two.first['id']}", json={"ask_before": ["write_file"]})
    async with server.watch(await server.session(agent_id=two.first["id"])) as client:
        server.provider.then(use("switch_profile", profile="Poet"), say("Hello."))
        await client.ask("Let the poet answer.")
        assert "write_file" not in tools_sent(server)
        assert "read_file" in tools_sent(server)


async def test_a_run_that_was_handed_over_is_resumed_by_the_same_agent(backend_settings):
    async with provided() as provider:
        async with running_server(backend_settings, provider, store_encryption=False) as server:
            two = await make_two(server, ask_before=["write_file"])
            session = await server.session(agent_id=two.first["id"])
            async with server.watch(session) as client:
                provider.then(
                    use("switch_profile", call_id="a", profile="Poet"),
                    use("write_file", call_id="b", path="verse.txt", content="Roses"),
                )
                await client.say("Let the poet write.")
                asked = (await client.until("approval_requested"))[-1]
        async with running_server(backend_settings, provider, store_encryption=False) as server:
            async with server.watch(session, after=asked["seq"]) as client:
                await client.until("approval_requested")
                provider.then(say("Written."))
                await server.call("POST", f"/runs/{asked['run_id']}/approvals/b", json={"approve": True})
                await client.until("stream_end")
            assert provider.last["model"] == "verse"
            assert (server.workspaces / two.poet["id"] / "workspace/verse.txt").read_text() == "Roses"
