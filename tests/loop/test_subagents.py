"""Subagents: their prompt, the frames about them, their permissions, and their limits."""

import asyncio
import json

import pytest

from live_server import eventually, of_kind, running_server
from openai_server import call, calls, chunk, event, hang, refuse, say, stream, text, thinking, usage


class Team:
    """An agent with helpers, and a provider that answers each of them by its name."""

    def __init__(self, server):
        self.server = server
        self.scripts = {}
        self.asked = {}
        server.provider.always = self._answer

    async def hire(self, name, **settings):
        """Make an agent; its system prompt gives it away to the provider."""
        body = {"name": name, "system_prompt": f"NAME={name}.", **settings}
        return (await self.server.call("POST", "/agents", json=body))["id"]

    async def list(self, *ids, **changes):
        """Let the first agent give tasks to these."""
        agent = (await self.server.call("GET", "/agents"))["agents"][0]
        changes = {"system_prompt": "NAME=Boss.", "subagents": list(ids), **changes}
        return await self.server.call("PATCH", f"/agents/{agent['id']}", json=changes)

    def script(self, name, *answers):
        self.scripts[name] = list(answers)

    async def _answer(self, exchange):
        name = exchange.request.body["messages"][0]["content"].partition("NAME=")[2].partition(".")[0]
        self.asked.setdefault(name, []).append(exchange.request.body)
        left = self.scripts.get(name)
        await (left.pop(0) if left else refuse(400, f"{name} has nothing to say."))(exchange)


@pytest.fixture
async def team(server):
    team = Team(server)
    yield team
    assert not any(team.scripts.values()), team.scripts


@pytest.fixture
async def session(team):
    agents = (await team.server.call("GET", "/agents"))["agents"]
    return await team.server.session(agent_id=agents[0]["id"])


@pytest.fixture
async def client(team, session):
    async with team.server.watch(session) as client:
        yield client


def give(agent, task, **place):
    return call("spawn_agent", json.dumps({"agent": agent, "task": task}), **({"id": "s1"} | place))


def results(body):
    return {message["tool_call_id"]: message["content"] for message in body["messages"] if message["role"] == "tool"}


def tools_of(body):
    return {tool["function"]["name"] for tool in body.get("tools", ())}


async def test_a_task_is_given_done_and_answered(team, session, client):
    await team.list(await team.hire("Scout", description="Looks."))
    team.script("Boss", calls(*give("Scout", "Write x to a.txt"), usage(10, 1)), say("All done."))
    team.script(
        "Scout",
        stream(
            *thinking("Let me see."),
            *call("write_file", '{"path": "a.txt", "content": "x"}', id="w1"),
            usage(100, 10),
            finish="tool_calls",
        ),
        stream(*text("I wrote it."), usage(200, 20)),
    )
    frames = await client.ask("Have it done")
    assert frames[-1]["content"] == "All done."

    system, task = team.asked["Scout"][0]["messages"]
    assert "the agent 'Wakeful' has given you the task below" in system["content"]
    assert "has written to you" not in system["content"]
    assert task == {"role": "user", "content": "Write x to a.txt"}
    assert "- Scout: Looks." in team.asked["Boss"][0]["messages"][0]["content"]

    inner = [frame for frame in frames if frame.get("is_subagent")]
    assert [frame["type"] for frame in inner] == ["turn_thinking", "tool_started", "tool_call"]
    assert {frame["subagent_id"] for frame in inner} == {"s1"}
    assert inner[0]["thinking"] == "Let me see."
    outer = [frame for frame in of_kind(frames, "tool_call") if not frame["is_subagent"]]
    assert [(frame["call_id"], frame["tool"], frame["result"]) for frame in outer] == [
        ("s1", "spawn_agent", "I wrote it.")
    ]
    assert outer[0]["metadata"]["subagent_id"] == "s1"
    assert "".join(frame["delta"] for frame in of_kind(frames, "stream_delta")) == "All done."

    # The parent's model learns the result and nothing of the way to it.
    assert results(team.asked["Boss"][1]) == {"s1": "I wrote it."}
    assert "w1" not in json.dumps(team.asked["Boss"][1])
    spent = (await team.server.run(frames[0]["run_id"]))["usage"]
    assert (spent["model_calls"], spent["input_tokens"], spent["tool_calls"]) == (4, 322, 2)


async def test_the_steps_of_a_subagent_are_kept_beside_the_conversation(team, session, client):
    await team.list(await team.hire("Scout"))
    team.script("Boss", calls(*give("Scout", "Look around")), say("All done."), say("Again."))
    team.script("Scout", calls(*call("list_files", "{}", id="l1")), say("Nothing there."))
    frames = await client.ask("Have it done")
    messages = await team.server.messages(session)
    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "subagent",
        "subagent",
        "subagent",
        "subagent",
        "tool",
        "assistant",
    ]
    steps = [message for message in messages if message["role"] == "subagent"]
    assert [step["subagent"] for step in steps] == [
        {"id": "s1", "agent": "Scout", "role": role} for role in ("user", "assistant", "tool", "assistant")
    ]
    assert steps[1]["tool_calls"][0]["tool"] == "list_files"
    assert steps[2]["tool"]["call_id"] == "l1"
    assert messages[frames[-1]["message_index"]]["content"] == "All done."
    await client.ask("And now?")
    told = [message["role"] for message in team.asked["Boss"][-1]["messages"]]
    assert told == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_several_tasks_of_one_answer_are_done_side_by_side(team, session, client):
    await team.list(await team.hire("One"), await team.hire("Two"))
    met = asyncio.Barrier(2)

    async def meet(exchange):
        await asyncio.wait_for(met.wait(), 5)  # passes only if both are asked at the same time
        await say("Met.")(exchange)

    team.script("Boss", calls(*give("One", "Go"), *give("Two", "Go", id="s2", index=1)), say("Both are back."))
    team.script("One", meet)
    team.script("Two", meet)
    frames = await client.ask("Send both")
    assert frames[-1]["content"] == "Both are back."
    assert results(team.asked["Boss"][1]) == {"s1": "Met.", "s2": "Met."}


async def test_calls_around_them_keep_their_order(team, session, client):
    await team.list(await team.hire("Scout"))
    team.script(
        "Boss",
        calls(
            *call("write_file", '{"path": "a.txt", "content": "x"}', id="c1"),
            *give("Scout", "Read a.txt", id="c2", index=1),
            *call("list_files", "{}", id="c3", index=2),
        ),
        say("Done."),
    )
    team.script("Scout", calls(*call("read_file", '{"path": "a.txt"}', id="r1")), say("It says x."))
    frames = await client.ask("Go")
    calling = [(frame["type"], frame["call_id"]) for frame in frames if frame["type"] in ("tool_started", "tool_call")]
    assert calling == [(kind, each) for each in ("c1",) for kind in ("tool_started", "tool_call")] + [
        ("tool_started", "c2"),
        ("tool_started", "r1"),
        ("tool_call", "r1"),
        ("tool_call", "c2"),
        ("tool_started", "c3"),
        ("tool_call", "c3"),
    ]
    assert "x" in results(team.asked["Scout"][1])["r1"]  # it works in the parent's workspace


async def test_a_subagent_that_plans_shows_its_plan_as_its_own(team, client):
    await team.list(await team.hire("Scout", planning=True))
    team.script("Boss", calls(*give("Scout", "Look")), say("Done."))
    team.script("Scout", say("Clear."), say("1. Look"), say("Looked."))
    frames = await client.ask("Go")
    inner = [frame for frame in frames if frame.get("is_subagent")]
    assert [frame["type"] for frame in inner] == ["planning_status", "planning_status", "plan_ready"]
    assert {frame["subagent_id"] for frame in inner} == {"s1"}
    assert "1. Look" in team.asked["Scout"][2]["messages"][0]["content"]
    assert "1. Look" not in team.asked["Boss"][1]["messages"][0]["content"]


async def test_a_subagent_makes_room_in_its_own_context_and_says_whose_it_is(backend_settings):
    async with running_server(backend_settings, context_window=10_000) as server:
        team = Team(server)
        await team.list(await team.hire("Scout", toolsets=["files"]), toolsets=["files", "subagents"])
        session = await server.session()
        team.script("Boss", calls(*give("Scout", "Write a lot")), say("Done."))
        writes = [json.dumps({"path": f"{n}.txt", "content": "All work and no play. " * 300}) for n in range(4)]
        team.script("Scout", *[calls(*call("write_file", each, id=f"w{n}")) for n, each in enumerate(writes)])
        team.scripts["Scout"].append(say("A lot."))
        team.script("", say("I wrote."))  # the summary's prompt does not name the file
        async with server.watch(session) as client:
            frames = await client.ask("Go")
        assert frames[-1]["content"] == "Done."
        [begun], [done] = of_kind(frames, "compression_started"), of_kind(frames, "context_compressed")
        assert (
            (begun["is_subagent"], begun["subagent_id"]) == (done["is_subagent"], done["subagent_id"]) == (True, "s1")
        )
        assert done["summary"] == "I wrote."
        assert "Write a lot" in json.dumps(team.asked["Scout"][-1]["messages"])
        roles = [message["role"] for message in await server.messages(session)]
        assert "summary" not in roles  # the parent's context is whole


# ── Limits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_subagent_has_no_more_tools_than_its_parent_and_books_nothing(team, client):
    scout = await team.hire("Scout", toolsets=["files", "web", "recall", "notify"], self_scheduling=True)
    await team.list(scout, toolsets=["files", "recall", "notify", "subagents"])
    team.script("Boss", calls(*give("Scout", "Go")), say("Done."))
    team.script("Scout", calls(*call("fetch_url", '{"url": "http://example.org"}')), say("I cannot."))
    frames = await client.ask("Go")
    assert tools_of(team.asked["Scout"][0]) == {"read_file", "write_file", "list_files", "search_files"}
    [called] = [frame for frame in of_kind(frames, "tool_call") if frame["is_subagent"]]
    assert (called["success"], called["metadata"]["code"]) == (False, "unknown_tool")


async def test_a_session_begun_with_fewer_tools_holds_for_subagents_too(team, session):
    await team.list(await team.hire("Scout"))
    booked = {
        "kind": "session",
        "delay_ms": 1_000,
        "message": "Give it away",
        "session_config": {"session_name": "Fewer", "tool_ids": ["spawn_agent", "read_file"]},
    }
    team.script("Boss", calls(*give("Scout", "Go")), say("Done."))
    team.script("Scout", say("Gone."))
    await team.server.call("POST", f"/sessions/{session}/schedules", json=booked)
    await eventually(lambda: _are_asked(team, "Scout"))
    assert tools_of(team.asked["Boss"][0]) == {"spawn_agent", "read_file"}
    assert tools_of(team.asked["Scout"][0]) == {"read_file"}
    await eventually(lambda: _has_nothing_left(team))


async def _has_nothing_left(team):
    return not any(team.scripts.values())


async def test_only_listed_agents_can_be_given_a_task(team, client):
    await team.hire("Secret")
    await team.list(await team.hire("Scout"))
    team.script("Boss", calls(*give("Secret", "Go")), say("I cannot."))
    [called] = of_kind(await client.ask("Go"), "tool_call")
    assert (called["success"], called["metadata"]["code"]) == (False, "no_such_subagent")
    assert "'Scout'" in called["result"]
    assert "Secret" not in team.asked


async def test_an_agent_without_helpers_is_not_shown_the_tool(team, client):
    await team.list()
    team.script("Boss", say("Hello."))
    await client.ask("Hi")
    assert "spawn_agent" not in tools_of(team.asked["Boss"][0])


@pytest.mark.parametrize(("depth", "sees"), [(1, False), (2, True)])
async def test_how_deep_tasks_are_given_on_is_a_setting(backend_settings, depth, sees):
    async with running_server(backend_settings, subagent_depth=depth) as server:
        team = Team(server)
        deep = await team.hire("Deep")
        middle = await team.hire("Middle", toolsets=["files", "subagents"], subagents=[deep])
        await team.list(middle, deep)
        session = await server.session()
        team.script("Boss", calls(*give("Middle", "Give it on")), say("Done."))
        if sees:
            team.script("Middle", calls(*give("Deep", "Look", id="d1")), say("Deep says: seen."))
            team.script("Deep", calls(*call("list_files", "{}", id="l1")), say("Seen."))
        else:
            team.script("Middle", say("I must do it myself."))
        async with server.watch(session) as client:
            frames = await client.ask("Go")
        assert ("spawn_agent" in tools_of(team.asked["Middle"][0])) is sees
        if sees:
            assert "spawn_agent" not in tools_of(team.asked["Deep"][0])
            owners = {frame["call_id"]: frame.get("subagent_id") for frame in of_kind(frames, "tool_call")}
            assert owners == {"l1": "d1", "d1": "s1", "s1": None}
            assert results(team.asked["Middle"][1]) == {"d1": "Seen."}


async def test_a_subagent_passes_on_only_to_those_its_parent_may_use_too(team, client):
    deep = await team.hire("Deep")
    middle = await team.hire("Middle", toolsets=["files", "subagents"], subagents=[deep])
    await team.list(middle)
    team.script("Boss", calls(*give("Middle", "Give it on")), say("Done."))
    team.script("Middle", say("I must do it myself."))
    await client.ask("Go")
    assert "spawn_agent" not in tools_of(team.asked["Middle"][0])


async def test_an_agent_that_spawns_without_end_is_held_to_a_number(backend_settings):
    async with running_server(backend_settings, subagents_per_run=3) as server:
        team = Team(server)
        await team.list(await team.hire("Scout"), max_iterations=8)
        session = await server.session()
        team.script("Boss", *[calls(*give("Scout", f"Task {n}", id=f"s{n}")) for n in range(8)], say("Still here."))
        team.script("Scout", *[say("Done.")] * 3)
        async with server.watch(session) as client:
            frames = await client.ask("Go")
            called = of_kind(frames, "tool_call")
            assert [each["success"] for each in called] == [True] * 3 + [False] * 5
            assert called[3]["metadata"]["code"] == "too_many_subagents"
            assert (await server.run(frames[0]["run_id"]))["reason"] == "iteration_limit"
            assert (await client.ask("And now?"))[-1]["content"] == "Still here."


async def test_what_subagents_use_counts_and_ends_the_run_within_one_call(team, session, client):
    await team.list(*[await team.hire(f"S{n}") for n in range(4)], budgets={"run_tokens": 1_000})
    tasks = [piece for n in range(4) for piece in give(f"S{n}", "Go", id=f"s{n}", index=n)]
    team.script("Boss", calls(*tasks, usage(10, 0)))
    for n in range(4):
        # Each would go on for ever, and takes long enough for the others to begin meanwhile if nothing held them.
        team.script(f"S{n}", *[stream(*call("list_files", "{}"), 0.5, usage(890, 10), finish="tool_calls")] * 10)
    frames = await client.ask("Go")
    run = await team.server.run(frames[0]["run_id"])
    assert (run["status"], run["reason"]) == ("success", "budget")
    spent = run["usage"]["input_tokens"] + run["usage"]["output_tokens"]
    assert 1_000 <= spent < 1_000 + 900
    ended = [frame for frame in of_kind(frames, "tool_call") if frame["tool"] == "spawn_agent"]
    assert {frame["metadata"]["code"] for frame in ended} <= {"budget", "repeated_calls"}
    usage_today = await team.server.call("GET", f"/agents/{run['agent_id']}/usage")
    assert usage_today["today"]["tokens"] == spent
    for n in range(4):
        team.scripts[f"S{n}"].clear()


async def test_a_stop_reaches_all_of_them(team, session, client):
    await team.list(await team.hire("One"), await team.hire("Two"))
    team.script("Boss", calls(*give("One", "Go"), *give("Two", "Go", id="s2", index=1)))
    team.script("One", hang)
    team.script("Two", hang)
    await client.say("Send both")
    await eventually(lambda: _are_asked(team, "One", "Two"))
    async with asyncio.timeout(2):
        assert (await team.server.stop(session))["ok"] is True
        assert (await client.until("stream_stopped"))[-1]["type"] == "stream_stopped"
    team.script("Boss", say("Yes?"))
    assert (await client.ask("Still there?"))[-1]["content"] == "Yes?"


async def _are_asked(team, *names):
    return all(team.asked.get(name) for name in names)


async def test_the_time_limit_of_the_run_reaches_them(team, session, client):
    await team.list(await team.hire("One"), run_limit_seconds=1)
    team.script("Boss", calls(*give("One", "Go")))
    hung_up = asyncio.Event()

    async def wait(exchange):
        try:
            await exchange.begin()
            while True:
                await exchange.send(event(chunk({"content": "."})))
                await asyncio.sleep(0.05)
        except (ConnectionError, asyncio.CancelledError):
            hung_up.set()
            raise

    team.script("One", wait)
    frames = await client.ask("Go")
    assert (frames[-1]["type"], frames[-1]["code"]) == ("error", "time_limit")
    await asyncio.wait_for(hung_up.wait(), 5)
    assert team.server.node.engine.runner.active == 0


async def test_a_subagent_whose_model_fails_is_a_result_and_no_end(team, client):
    await team.list(await team.hire("Scout"))
    team.script("Boss", calls(*give("Scout", "Go")), say("Then I do it myself."))
    team.script("Scout", refuse(400, "No such thing."))
    frames = await client.ask("Go")
    [called] = of_kind(frames, "tool_call")
    assert (called["success"], called["metadata"]["code"]) == (False, "model_failed")
    assert "No such thing." in called["result"]
    assert frames[-1]["content"] == "Then I do it myself."


async def test_what_a_subagent_waits_for_is_shown_as_its_own(team, client):
    await team.list(await team.hire("Scout"))
    team.script("Boss", calls(*give("Scout", "Go")), say("Good."))
    team.script("Scout", refuse(503, "Overloaded"), say("Found it."))
    frames = await client.ask("Go")
    [told] = of_kind(frames, "waiting")
    assert (told["is_subagent"], told["subagent_id"]) == (True, "s1")
    assert (told["for"], told["reason"]) == ("model", "Overloaded (HTTP 503)")
    assert frames[-1]["content"] == "Good."


async def test_a_subagent_without_a_word_is_reported_so(team, client):
    await team.list(await team.hire("Scout"))
    team.script("Boss", calls(*give("Scout", "Go")), say("Well."))
    team.script("Scout", stream(chunk({"role": "assistant"})))
    [called] = of_kind(await client.ask("Go"), "tool_call")
    assert (called["success"], called["metadata"]["code"]) == (False, "empty_answer")


# ── Who may be listed ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_somebody_elses_agent_cannot_be_listed(team):
    foreign = await team.server.add_user("Grace")
    [theirs] = (await team.server.call("GET", "/agents", token=foreign))["agents"]
    mine = (await team.server.call("GET", "/agents"))["agents"][0]
    for listed in ([theirs["id"]], ["nobody"]):
        answer = await team.server.rest.patch(f"/agents/{mine['id']}", json={"subagents": listed})
        assert answer.status_code == 404, answer.text
        assert repr(listed[0]) in answer.json()["error"]["message"]
        answer = await team.server.rest.post("/agents", json={"name": "Sly", "subagents": listed})
        assert answer.status_code == 404, answer.text
    assert (await team.server.call("GET", f"/agents/{mine['id']}"))["subagents"] == [mine["id"]]


async def test_a_listed_agent_that_is_gone_is_simply_not_there(team, client):
    scout = await team.hire("Scout")
    await team.list(scout)
    await team.server.call("DELETE", f"/agents/{scout}")
    assert (await team.list(scout))["subagents"] == [scout]  # saving the same list again is not an error
    team.script("Boss", calls(*give("Scout", "Go")), say("Gone."))
    [called] = of_kind(await client.ask("Go"), "tool_call")
    assert called["metadata"]["code"] == "no_such_subagent"


# ── Without a key ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_demo_model_shows_a_plan_and_a_subagent_to_a_newcomer(backend_settings):
    async with running_server(backend_settings, model="demo") as server:
        await server.change_agent(planning=True)
        session = await server.session()
        async with server.watch(session) as client:
            frames = await client.ask("ask Wakeful to list files")
    plans = {frame["is_subagent"]: frame["plan"] for frame in of_kind(frames, "plan_ready")}
    assert plans == dict.fromkeys((False, True), "1. Do what was asked of me")
    called = [(frame["tool"], frame["is_subagent"], frame["success"]) for frame in of_kind(frames, "tool_call")]
    assert called == [("list_files", True, True), ("spawn_agent", False, True)]
    assert frames[-1]["content"] == "Wakeful says: '.' is empty."
