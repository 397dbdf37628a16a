"""The tool registry: the tools of an agent, and the answer to every call."""

import pytest
from pydantic import Field

from harness import tool_context
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.errors import Invalid
from wakeful.core.labels import BUILT_IN, TOOLSETS
from wakeful.loop.tools import MORE_TOOLS
from wakeful.toolbox.registry import Arguments, Tool, ToolResult, Tools


class Say(Arguments):
    words: str
    times: int = Field(default=1, ge=1)


class TooLoud(Invalid):
    code = "too_loud"

    def __init__(self, words):
        super().__init__(f"{words!r} is too loud.", hint="Say it softly.")


async def say(context, asked):
    if asked.words.isupper():
        raise TooLoud(asked.words)
    if asked.words == "break":
        raise ZeroDivisionError("secret detail")
    return ToolResult(text=asked.words * asked.times, metadata={"agent": context.agent.id})


TOOLS = Tools(
    [
        Tool(name="say", toolset="voice", description="Say something.", arguments=Say, act=say),
        Tool(name="shout", toolset="noise", description="Shout something.", arguments=Say, act=say),
    ]
)


def make_context(tmp_path, *toolsets):
    return tool_context(tmp_path / "workspace", *toolsets)


@pytest.fixture
def context(tmp_path):
    return make_context(tmp_path, "voice")


def test_only_the_tools_of_the_toolsets_asked_for_are_shown():
    assert [tool.name for tool in TOOLS.catalog.of(["voice"])] == ["say"]
    assert [tool.name for tool in TOOLS.catalog.of(["voice", "noise"])] == ["say", "shout"]


def test_every_toolset_has_tools(tmp_path):
    catalog = build(Settings.model_validate({"data_dir": tmp_path, "config_dir": tmp_path})).catalog
    assert [name for name in TOOLSETS if not catalog.of([name])] == []
    assert {*catalog.toolset_of(), MORE_TOOLS} == BUILT_IN  # which no tool of an MCP server may be called


async def test_a_call_hands_its_arguments_and_the_context_to_the_tool(context):
    result = await TOOLS.call("say", {"words": "hi", "times": 2}, context)
    assert result == ToolResult(text="hihi", metadata={"agent": context.agent.id})


async def test_a_tool_that_is_off_is_as_unknown_as_one_that_does_not_exist(context):
    result = await TOOLS.call("shout", {"words": "hi"}, context)
    assert not result.success
    assert result.metadata == {"code": "unknown_tool"}
    assert result.text == "There is no tool 'shout'. Your tools: say."


async def test_a_misspelt_tool_is_answered_with_the_nearest_one(context):
    assert "Did you mean 'say'?" in (await TOOLS.call("says", {}, context)).text


async def test_an_agent_without_tools_is_told_so(tmp_path):
    result = await TOOLS.call("say", {"words": "hi"}, make_context(tmp_path))
    assert result.text == "There is no tool 'say'; this agent has no tools at all."


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param({}, ["`words` is missing"], id="missing"),
        pytest.param({"words": "hi", "loud": True}, ["`loud` is not a field here, got True"], id="one too many"),
        pytest.param({"words": "hi", "times": 0}, ["`times` must be greater", "got 0"], id="out of bounds"),
        pytest.param({"words": ["x" * 500]}, ["`words` must be", "…"], id="a long wrong value is shortened"),
    ],
)
async def test_wrong_arguments_are_named_with_what_the_tool_takes(context, arguments, named):
    result = await TOOLS.call("say", arguments, context)
    assert result.metadata == {"code": "bad_arguments"}
    assert all(part in result.text for part in [*named, "It takes: words, times."])
    assert len(result.text) < 300


async def test_a_refusal_is_a_result_with_its_code_and_hint(context):
    result = await TOOLS.call("say", {"words": "HI"}, context)
    assert result == ToolResult(text="'HI' is too loud. Say it softly.", success=False, metadata={"code": "too_loud"})


async def test_a_tool_that_breaks_ends_neither_the_run_nor_tells_its_details(context, caplog):
    result = await TOOLS.call("say", {"words": "break"}, context)
    assert result.metadata == {"code": "tool_broke"}
    assert "ZeroDivisionError" in result.text
    assert "secret detail" not in result.text
    assert caplog.messages == ["tool failed"]


def test_the_schema_forbids_what_the_tool_does_not_take():
    (tool,) = TOOLS.catalog.of(["voice"])
    assert tool.schema["additionalProperties"] is False
    assert tool.schema["required"] == ["words"]
