import pytest

from wakeful.core.types import Message
from wakeful.loop.tools import ALWAYS, MORE_TOOLS, WANTED, fold_tools, tokens_of_tool, wanted_tools
from wakeful.toolbox.registry import Arguments, Tool


class Nothing(Arguments):
    pass


async def act(_context, _asked):
    raise AssertionError


def tool(name, toolset, size=300):
    return Tool(name=name, toolset=toolset, description="x" * size, arguments=Nothing, act=act)


TOOLS = [
    tool("schedule_recall", "recall"),
    tool("manage_recall", "recall"),
    *[tool(f"db_{number}", "database", 900) for number in range(10)],
    tool("read_file", "files"),
    tool("notify", "notify"),
    tool("search", "mcp:docs"),
]
NAMES = [tool.name for tool in TOOLS]


def names(tools):
    return [each.name for each in tools]


def message(role, content="", **data):
    return Message(
        id="", session_id="s", position=0, role=role, content=content, created_at=None, run_id="r", data=data or None
    )


def result(tool, **metadata):
    return message("tool", "db_9 is in a result", tool=tool, args={}, success=True, metadata=metadata)


def test_tools_that_fit_are_all_shown():
    assert fold_tools(TOOLS, [], 128_000) == TOOLS


@pytest.mark.parametrize("window", [2_000, 4_000, 8_000, 16_000])
def test_in_a_small_window_the_tools_take_at_most_their_share(window):
    shown = fold_tools(TOOLS, ["db_3", "db_1"], window)
    assert {"db_3", MORE_TOOLS} <= set(names(shown))
    assert sum(map(tokens_of_tool, shown)) <= window * (ALWAYS + WANTED) + 400
    listed = shown[-1].description
    for name in NAMES:
        assert (name in names(shown)) != (name in listed)


def test_a_toolset_is_shown_as_a_whole_or_not_at_all_unless_a_tool_of_it_is_wanted():
    shown = names(fold_tools(TOOLS, [], 12_000))
    assert shown == ["schedule_recall", "manage_recall", "read_file", "notify", "search", MORE_TOOLS]
    assert "db_5" in names(fold_tools(TOOLS, ["db_5"], 12_000))


def test_the_latest_wanted_tool_comes_first_and_one_is_always_shown():
    shown = names(fold_tools(TOOLS, ["db_9", "db_1", "db_2"], 1_500))
    assert "db_9" in shown
    assert "db_2" not in shown


def test_people_the_server_and_the_model_want_tools_and_results_do_not():
    said = [
        message("user", "Please read file a.txt, then tell me."),
        message("assistant", "With db_8."),
        result("db_1"),
        result(MORE_TOOLS, tools=["db_2", "gone"]),
        message("notice", "Book it with schedule_recall."),
    ]
    assert wanted_tools(said, NAMES) == ["schedule_recall", "db_2", "db_1", "read_file"]
