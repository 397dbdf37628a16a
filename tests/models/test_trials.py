"""The test button: a short answer of an agent's model, or its provider's error."""

import pytest

from live_server import Tap, eventually, running_server
from openai_server import refuse, say
from wakeful.models.by_name import Models
from wakeful.models.trials import ModelTests


@pytest.fixture(scope="module")
async def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trials")
    async with running_server({"data_dir": folder / "data", "config_dir": folder / "config"}) as server:
        yield server


async def tried(server, **changes):
    agent = await server.change_agent(**({"model": None} | changes))
    return await server.call("POST", f"/agents/{agent['id']}/test-model")


async def test_a_model_that_answers_is_quoted(server):
    server.provider.then(say("rea", "dy"))
    trial = await tried(server)
    assert (trial["outcome"], trial["model"], trial["said"]) == ("answered", "openai-chat:test", "ready")
    assert trial["tool_calls"] == "none"
    assert len(server.provider.last["messages"]) == 1
    assert [tool["function"]["name"] for tool in server.provider.last["tools"]] == ["report_ready"]


async def test_what_the_provider_says_against_it_is_shown_as_it_is(server):
    server.provider.then(refuse(401, {"error": {"message": "This key was revoked."}}))
    trial = await tried(server)
    assert trial["outcome"] == "failed"
    assert "This key was revoked." in trial["reason"]


async def test_a_name_that_nobody_knows_is_refused_at_save_with_the_nearest(server):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    for model in ("antropic:claude", "mein"):
        answer = await server.rest.patch(f"/agents/{agent['id']}", json={"model": model})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "no_such_model")
        assert f"There is no model {model!r}" in answer.json()["error"]["message"]
    assert "did you mean 'demo'?" in answer.json()["error"]["message"]


async def test_the_demo_model_answers_without_a_key(server):
    trial = await tried(server, model="demo")
    assert (trial["outcome"], trial["model"]) == ("answered", "demo")


async def test_one_that_keeps_silent_is_waited_for_and_joined(server):
    models = Models("openai-chat:test", base_url=server.provider.base_url, clock=server.node.clock)
    tests, tap = ModelTests(models, answer_within=0.05), Tap()
    server.provider.then(tap)
    trial = await tests.test("openai-chat:test")
    assert (trial.outcome, trial.is_loading) == ("waiting", True)
    assert "has not answered yet" in (trial.reason or "")
    tap.say("ready")
    tap.end()
    trial = await eventually(lambda: finished(tests))
    assert trial.said == "ready"
    await models.aclose()


async def finished(tests):
    trial = await tests.test("openai-chat:test")
    return trial if trial.outcome != "waiting" else None


async def test_tools_are_listed_with_their_toolset(server):
    tools = (await server.call("GET", "/tools"))["tools"]
    assert {"name": "write_file", "toolset": "files"} in tools
