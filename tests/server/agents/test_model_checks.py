"""The test button: a short answer of an agent's model, or its provider's error."""

import pytest

from live_server import running_server
from openai_server import refuse, say
from wakeful.runtime.models.check import try_model
from wakeful.runtime.models.providers import Models


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
    assert len(server.provider.last["messages"]) == 1


async def test_what_the_provider_says_against_it_is_shown_as_it_is(server):
    server.provider.then(refuse(401, {"error": {"message": "This key was revoked."}}))
    trial = await tried(server)
    assert trial["outcome"] == "failed"
    assert "This key was revoked." in trial["reason"]


async def test_a_name_that_nobody_knows_is_said_before_any_run_needs_it(server):
    asked = len(server.provider.requests)
    trial = await tried(server, model="antropic:claude")
    assert trial["outcome"] == "failed"
    assert "There is no model 'antropic:claude'" in trial["reason"]
    assert len(server.provider.requests) == asked


async def test_the_demo_model_answers_without_a_key(server):
    trial = await tried(server, model="demo")
    assert (trial["outcome"], trial["model"]) == ("answered", "demo")


async def test_one_that_keeps_silent_is_given_up(server):
    models = Models("openai-chat:test", base_url=server.provider.base_url, clock=server.node.clock)
    trial = await try_model(models, None, patience=0)
    assert trial.outcome == "timed_out"
    assert "within 0 seconds" in (trial.reason or "")
    await models.aclose()


async def test_tools_are_listed_with_their_toolset(server):
    tools = (await server.call("GET", "/tools"))["tools"]
    assert {"name": "write_file", "toolset": "files"} in tools
