"""Budgets of an agent, by run and by day: checked before each call, announced to the model, shown over REST."""

import json

import pytest

from live_server import Tap, eventually, of_kind
from openai_server import call, say, stream, text, usage

HOUSEKEEPING = "Finish now"


def look(number, spent):
    """Return a turn that calls a tool and uses this number of tokens."""
    return stream(
        *call("list_files", json.dumps({"path": f"{number}"}), id=f"c{number}"), usage(spent, 0), finish="tool_calls"
    )


def notes(server):
    """Return how often each request contained the reminder to finish."""
    return [json.dumps(request.body["messages"]).count(HOUSEKEEPING) for request in server.provider.requests]


async def test_at_four_fifths_the_model_is_told_once_to_finish_and_stopped_before_the_call_too_many(
    server, session, client
):
    await server.change_agent(budgets={"run_tokens": 1_000})
    server.provider.then(look(1, 400), look(2, 400), look(3, 100), look(4, 100))
    frames = await client.ask("Go on and on")
    assert notes(server) == [0, 0, 1, 1]
    told = server.provider.requests[2].body["messages"][-1]
    assert told["role"] == "user"
    assert "book a follow-up" in told["content"]
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["reason"], run["usage"]["input_tokens"]) == ("success", "budget", 1_000)
    assert "budget" in frames[-1]["content"]
    saved = await server.messages(session)
    assert [message["role"] for message in saved].count("notice") == 1


async def test_a_run_that_comes_to_an_end_in_time_ends_like_any_other(server, client):
    await server.change_agent(budgets={"run_tokens": 1_000})
    server.provider.then(look(1, 850), stream(*text("I saved it all."), usage(50, 5)))
    frames = await client.ask("Go on and on")
    assert frames[-1]["content"] == "I saved it all."
    assert (await server.run(frames[0]["run_id"]))["reason"] is None


async def test_the_next_run_is_told_anew(server, client):
    await server.change_agent(budgets={"run_tokens": 1_000})
    server.provider.then(look(1, 850), say("Saved."), look(2, 850), say("Saved again."))
    await client.ask("Once")
    await client.ask("Twice")
    assert notes(server) == [0, 1, 1, 2]


async def test_what_is_left_of_the_day_counts_as_the_budget_of_a_run(server, client):
    await server.change_agent(budgets={"day_tokens": 1_000})
    server.provider.then(stream(*text("One."), usage(500, 0)), look(1, 450), stream(*text("Two."), usage(10, 0)))
    await client.ask("One")
    frames = await client.ask("Two")
    assert notes(server) == [0, 0, 1]
    assert frames[-1]["content"] == "Two."


async def test_a_day_is_shared_by_runs_that_go_on_at_the_same_time(server, session, client):
    await server.change_agent(budgets={"day_tokens": 1_000})
    slow = Tap()
    server.provider.then(slow)
    await client.say("Slowly")
    await slow.is_asked.wait()
    other = await server.session()
    async with server.watch(other) as second:
        server.provider.then(stream(*text("Quick."), usage(990, 20)))
        await second.ask("Quickly")
    slow.let(*call("list_files", "{}"))
    slow.let(usage(1, 1))
    slow.end()
    frames = await client.until("stream_end")
    assert (await server.run(frames[0]["run_id"]))["reason"] == "budget"
    assert len(server.provider.requests) == 2


async def test_use_and_limits_can_be_asked_for(server, client):
    agent = await server.change_agent(budgets={"run_tokens": 500, "day_tokens": 1_000, "run_cost": None})
    server.provider.then(stream(*text("One."), usage(100, 20)), stream(*text("Two."), usage(200, 30)))
    await client.ask("One")
    await client.ask("Two")
    told = await server.call("GET", f"/agents/{agent['id']}/usage")
    since = told["today"].pop("since")
    assert told == {
        "today": {"runs": 2, "model_calls": 2, "tokens": 350, "cost": 0.0, "unpriced_runs": 2},
        "budgets": {"run_tokens": 500, "run_cost": None, "day_tokens": 1_000, "day_cost": None},
        "tokens_left": 650,
        "cost_left": None,
    }
    assert since.endswith("Z")


async def test_a_budget_in_money_needs_a_model_whose_price_is_known(server, session, client):
    await server.change_agent(budgets={"run_cost": 1.0})
    frames = await client.ask("Hello?")
    assert (frames[-1]["type"], frames[-1]["code"]) == ("error", "price_unknown")
    assert "'openai-chat:test'" in frames[-1]["message"]
    assert server.provider.requests == []
    await server.change_agent(budgets={"run_cost": None})
    server.provider.then(say("Here."))
    assert (await client.ask("Hello?"))[-1]["content"] == "Here."


@pytest.mark.parametrize("limit", ["run_cost", "day_cost"])
async def test_money_is_counted_and_holds(server, client, limit):
    models = server.node.engine.runner.executor.models
    models.use("openai:gpt-4o", models.resolve("openai-chat:test"))  # one of the price list, on our own provider
    agent = await server.change_agent(model="openai:gpt-4o", budgets={limit: 0.01})
    server.provider.then(look(1, 2_000), look(2, 4_000))
    frames = await client.ask("Go on")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["reason"]) == ("success", "budget")
    assert run["usage"]["cost"] >= 0.01
    assert len(of_kind(frames, "tool_call")) == 2
    told = await server.call("GET", f"/agents/{agent['id']}/usage")
    assert told["today"]["cost"] == run["usage"]["cost"]
    assert told["cost_left"] == (0.0 if limit == "day_cost" else None)


async def test_the_limit_of_model_calls_is_each_workers_own(server, client):
    await server.change_agent(max_iterations=2, system_prompt="Work.", planning=True)
    server.provider.then(say("Clear."), say("1. Look"), look(1, 1), say("Done."))
    assert (await client.ask("Go"))[-1]["content"] == "Done."


async def test_the_name_of_a_session_counts_and_is_not_asked_for_once_all_is_spent(server):
    agent = await server.change_agent(budgets={"day_tokens": 1_000})
    server.provider.then(stream(*text("Paris."), usage(500, 20)), stream(*text("A capital"), usage(470, 9)))
    named = await server.session(title="")
    async with server.watch(named) as client:
        run_id = (await client.ask("What is the capital of France?"))[0]["run_id"]
        assert (await eventually(lambda: titled(server, named)))["title"] == "A capital"
    used = (await server.run(run_id))["usage"]
    assert (used["input_tokens"], used["output_tokens"], used["model_calls"]) == (970, 29, 2)
    assert (await server.call("GET", f"/agents/{agent['id']}/usage"))["tokens_left"] == 1
    server.provider.then(stream(*text("Rome."), usage(1, 1)))
    unnamed = await server.session(title="")
    async with server.watch(unnamed) as client:
        await client.ask("And of Italy?")
        assert (await eventually(lambda: titled(server, unnamed)))["title"] == "And of Italy?"
    assert len(server.provider.requests) == 3


async def titled(server, session):
    found = await server.call("GET", f"/sessions/{session}")
    return found if found["title"] else None
