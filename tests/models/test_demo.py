from datetime import UTC, datetime

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from wakeful.agents import tools as agents_tools
from wakeful.core.clock import ManualClock
from wakeful.database import tools as database_tools
from wakeful.loop import tools as loop_tools
from wakeful.models.demo import SENTENCES, DemoModel
from wakeful.outgoing import tools as outgoing_tools
from wakeful.sandbox import shell
from wakeful.timing.brief import find_problem
from wakeful.timing.when import parse_when
from wakeful.toolbox import web
from wakeful.wakes import tools as wakes_tools

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ALL = frozenset({"schedule_recall", *(sentence.tool for sentence in SENTENCES)})
SAFE = ALL - {"run_command"}


async def answer(*messages: ModelMessage, tools: frozenset[str] = ALL) -> ModelResponse:
    shown = [ToolDefinition(name=name) for name in sorted(tools)]
    model = DemoModel(ManualClock(NOON), delay=0)
    return await model.request(list(messages), None, ModelRequestParameters(function_tools=shown))


async def calls_for(
    sentence: str, tools: frozenset[str] = ALL, prompt: str = "> table memories (id INTEGER, note TEXT)"
) -> list[tuple[str, dict[str, object]]]:
    system = ModelRequest(parts=[SystemPromptPart(content=prompt)])
    response = await answer(system, ModelRequest.user_text_prompt(sentence), tools=tools)
    return [(part.tool_name, part.args_as_dict()) for part in response.parts if isinstance(part, ToolCallPart)]


async def call_for(sentence: str) -> tuple[str, dict[str, object]]:
    [call] = await calls_for(sentence)
    return call


async def text_for(sentence: str, tools: frozenset[str] = ALL) -> str:
    response = await answer(ModelRequest.user_text_prompt(sentence), tools=tools)
    assert not any(isinstance(part, ToolCallPart) for part in response.parts)
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


@pytest.mark.parametrize(
    ("sentence", "tool", "arguments"),
    [
        ("write Buy milk to notes.txt", "write_file", {"content": "Buy milk", "path": "notes.txt"}),
        ('Please save "a to b" into x/y.md.', "write_file", {"content": "a to b", "path": "x/y.md"}),
        ("write meet at noon to diary.txt", "write_file", {"content": "meet at noon", "path": "diary.txt"}),
        ("read notes.txt", "read_file", {"path": "notes.txt"}),
        ("Can you check notes.txt?", "read_file", {"path": "notes.txt"}),
        ("show me the file notes.txt", "read_file", {"path": "notes.txt"}),
        ("list files", "list_files", {}),
        ("Show me all my files", "list_files", {}),
        ("search for milk", "search_files", {"pattern": "milk"}),
        ("search tomorrow", "search_files", {"pattern": "tomorrow"}),
        ("fetch https://example.org/a", "fetch_url", {"url": "https://example.org/a"}),
        ("read https://example.org/a.", "fetch_url", {"url": "https://example.org/a"}),
        ("run ls -l", "run_command", {"command": "ls -l"}),
        ("Please ask Scout to read a.txt", "spawn_agent", {"agent": "Scout", "task": "read a.txt"}),
        ("cancel the recall", "manage_recall", {"action": "cancel"}),
        ("Please skip the next recall.", "manage_recall", {"action": "skip"}),
        ("show me all your recalls", "manage_recall", {"action": "list"}),
        ("cancel your next run", "cancel_next_run", {}),
        ("notify me that tea is ready", "notify", {"title": "Tea is ready", "body": "Tea is ready"}),
        (
            "book your next run in 10 minutes to read notes.txt",
            "schedule_next_run",
            {"in_seconds": 600, "instructions": "Read notes.txt with read_file."},
        ),
        (
            "Please remember that the plumber comes on Friday.",
            "db_insert",
            {"table": "memories", "rows": [{"note": "the plumber comes on Friday"}]},
        ),
    ],
)
async def test_a_plain_sentence_calls_the_real_tool(sentence, tool, arguments):
    assert await call_for(sentence) == (tool, arguments)


async def test_what_is_to_be_remembered_gets_its_table_first():
    made, insert = await calls_for("remember that milk is out", prompt="> no tables yet")
    assert (made[0], made[1]["name"]) == ("db_create_table", "memories")
    assert insert == ("db_insert", {"table": "memories", "rows": [{"note": "milk is out"}]})


async def test_a_chart_is_saved_as_a_view_and_shown():
    define, run = await calls_for("draw a chart of memories")
    assert (define[0], define[1]["render"], define[1]["pinned"]) == ("db_define_view", "bar", True)
    assert run == ("db_run_view", {"name": "memories_by_day"})


@pytest.mark.parametrize(
    ("sentence", "when", "brief"),
    [
        ("in 10 seconds check notes.txt", "in 10 seconds", "Check notes.txt with read_file."),
        ("In half an hour, list my files", "In half an hour", "List my files with list_files."),
        ("check notes.txt in 2 hours 30 minutes", "in 2 hours 30 minutes", "Check notes.txt with read_file."),
        ("remind me tomorrow at 9 to read report.md", "tomorrow at 9", "Read report.md with read_file."),
        ("wake me in 10 seconds and check notes.txt", "in 10 seconds", "Check notes.txt with read_file."),
        ("read report.md friday at 14:30", "friday at 14:30", "Read report.md with read_file."),
        ("in 1m write hello to a.txt", "in 1m", "Write hello to a.txt with write_file."),
        ("come back in 10 seconds and check notes.txt", "in 10 seconds", "Check notes.txt with read_file."),
        ("in 5 minutes notify me that tea is ready", "in 5 minutes", "Notify me that tea is ready with notify."),
    ],
)
async def test_a_sentence_with_a_time_books_a_recall(sentence, when, brief):
    tool, arguments = await call_for(sentence)
    assert (tool, arguments["call_type"], arguments["when"]) == ("schedule_recall", "once", when)
    assert arguments["additional_context_message"] == brief
    assert parse_when(str(arguments["when"]), NOON, "Europe/Berlin").at > NOON


@pytest.mark.parametrize(
    ("sentence", "rhythm"),
    [
        ("every 10 minutes check notes.txt", {"when": "in 10 minutes", "interval_seconds": 600}),
        ("every hour, check notes.txt", {"when": "in 1 hour", "interval_seconds": 3600}),
        ("check notes.txt every 2 days", {"when": "in 2 days", "interval_seconds": 172_800}),
        ("every day at 9 check notes.txt", {"cron": "0 9 * * *"}),
        ("check notes.txt every weekday at 8:30", {"cron": "30 8 * * 1-5"}),
        ("every Monday at 5pm check notes.txt", {"cron": "0 17 * * mon"}),
    ],
)
async def test_a_sentence_with_a_rhythm_books_a_recurring_recall(sentence, rhythm):
    tool, arguments = await call_for(sentence)
    assert tool == "schedule_recall"
    assert arguments == rhythm | {
        "call_type": "recurring",
        "internal_comment": "Demo: check notes.txt",
        "additional_context_message": "Check notes.txt with read_file.",
    }
    wakes_tools.ScheduleRecall.model_validate(arguments)


CHAIN = "Check notes.txt with read_file. Then book your next run in 1 hour with schedule_next_run."


@pytest.mark.parametrize(
    "sentence",
    [
        "in 10 seconds come back, check notes.txt and book your next run in 1 hour",
        "Come back in 10 seconds, check notes.txt, then book your next run.",
    ],
)
async def test_the_next_run_at_the_end_of_a_sentence_goes_into_the_brief(sentence):
    tool, arguments = await call_for(sentence)
    assert (tool, arguments["when"]) == ("schedule_recall", "in 10 seconds")
    assert arguments["additional_context_message"] == CHAIN


async def test_woken_with_such_a_brief_it_works_first_and_then_books_the_same_again():
    read, book = await calls_for(CHAIN)
    assert read == ("read_file", {"path": "notes.txt"})
    assert book == ("schedule_next_run", {"in_seconds": 3600, "instructions": CHAIN})
    calls = [ToolCallPart(name, arguments, f"call_{name}") for name, arguments in (read, book)]
    results = [
        ModelRequest([ToolReturnPart("read_file", "Buy milk", "call_read_file")]),
        ModelRequest([ToolReturnPart("schedule_next_run", "Booked", "call_schedule_next_run")]),
    ]
    last = await answer(ModelRequest.user_text_prompt(CHAIN), ModelResponse(parts=calls), *results)
    assert [part.content for part in last.parts] == ["notes.txt says:\n\nBuy milk\n\nBooked"]


async def test_a_brief_that_an_older_version_booked_is_still_understood():
    older = "Read notes.txt with read_file and say what it contains. Then book your next run in 1 hour."
    [read, (_, booking)] = await calls_for(older)
    assert read == ("read_file", {"path": "notes.txt"})
    assert str(booking["instructions"]).count("with read_file") == 1


async def test_without_the_tool_for_it_the_next_run_is_left_out():
    assert await calls_for(CHAIN, frozenset({"read_file"})) == [("read_file", {"path": "notes.txt"})]


@pytest.mark.parametrize("sentence", SENTENCES, ids=[sentence.example for sentence in SENTENCES])
async def test_it_obeys_its_own_instruction_as_it_would_the_person(sentence):
    _, booking = await call_for(f"in 10 seconds {sentence.example}")
    assert await calls_for(str(booking["additional_context_message"])) == await calls_for(sentence.example)


@pytest.mark.parametrize("sentence", SENTENCES, ids=[sentence.example for sentence in SENTENCES])
async def test_its_own_instruction_is_one_that_the_linter_takes(sentence):
    _, booking = await call_for(f"in 10 seconds {sentence.example}")
    assert find_problem(str(booking["additional_context_message"]), tools=ALL) is None


async def test_every_call_fits_the_tool_it_is_for():
    taken = {
        "read_file": agents_tools.ReadFile,
        "write_file": agents_tools.WriteFile,
        "list_files": agents_tools.ListFiles,
        "search_files": agents_tools.SearchFiles,
        "fetch_url": web.FetchUrl,
        "run_command": shell.RunCommand,
        "scheduler": wakes_tools.SchedulerTool,
        "spawn_agent": loop_tools.SpawnAgent,
        "manage_recall": wakes_tools.ManageRecall,
        "schedule_next_run": wakes_tools.ScheduleNextRun,
        "cancel_next_run": wakes_tools.CancelNextRun,
        "notify": outgoing_tools.NotifyUser,
    }
    taken |= {tool: getattr(database_tools, tool.title().replace("_", "")) for tool in ALL if tool.startswith("db_")}
    for sentence in SENTENCES:
        for tool, arguments in await calls_for(sentence.example):
            taken[tool].model_validate(arguments)


async def test_a_tool_it_was_not_shown_is_not_called():
    assert "run_command, which this agent does not have" in await text_for("run ls", SAFE)


async def test_help_says_what_it_is_and_can_do_and_how_to_get_a_real_model():
    text = await text_for("help", SAFE)
    assert "not an LLM" in text
    assert "in 10 seconds check notes.txt" in text
    assert "run ls" not in text
    assert "wakeful model add" in text


@pytest.mark.parametrize(
    "sentence",
    [
        "Compose a sonnet",
        "check the weather",
        "in 10 seconds dance",
        "every blue moon read a.txt",
        "every day at 99 read a.txt",
        "tell me a joke",
        "read " * 9000,
    ],
)
async def test_what_it_does_not_understand_it_says_with_its_help(sentence):
    text = await text_for(sentence)
    assert text.startswith("I do not understand that.")
    assert "read notes.txt" in text


@pytest.mark.parametrize(
    ("sentence", "result", "reply"),
    [
        ("write Dig to garden.txt", "Wrote 'garden.txt'; it has 1,036 bytes.", "Done: garden.txt now has 1,036 bytes."),
        ("read notes.txt", "Buy\nmilk", "notes.txt says:\n\nBuy\nmilk"),
        ("list files", "a.txt (3 bytes)\nb/", "These are the files:\n- a.txt (3 bytes)\n- b/"),
        ("list files", "'.' is empty.", "'.' is empty."),
        ("run ls", "Exit code 0.\na.txt", "Done. It printed:\n\na.txt"),
        ("run ls x", "Exit code 2.\nno x", "Exit code 2.\nno x"),
        (
            "in 10 minutes read a.txt",
            "Booked: you will wake at 2026-03-02 12:10:00+00:00 UTC (in 10 min). Recall id: 01a-b.",
            "Done: I will wake today 12:10 (in 10 min).",
        ),
        (
            "every 10 minutes read a.txt",
            "Booked: you will wake at 2026-03-04 00:10:00+13:00 Pacific/Auckland (in 23 h), then every 600 s. "
            "Recall id: 01a-b.",
            "Done: I will wake tomorrow 00:10 (in 23 h), then every 10 min.",
        ),
        (
            "book your next run in 10 minutes to read a.txt",
            "Booked: your next run is at 2026-03-09 07:00:00+01:00 Europe/Berlin (in 7 d). "
            "Moved from 2026-03-02 13:10:00+01:00 Europe/Berlin (in 10 min): quiet hours. remaining_budget_today: 3.",
            "Done: my next run is Mon 9 Mar 07:00 (in 7 d).",
        ),
        (
            "in 10 seconds start a new session to read a.txt",
            "Booked: your message will begin in a fresh session at 2027-01-01 12:00:10+00:00 UTC (in 305 d). "
            "Schedule id: sch-a.",
            "Done: a new session starts Fri 1 Jan 2027 12:00 (in 305 d).",
        ),
        (
            "list recalls",
            "2026-03-02 12:00:09+00:00 UTC (in 9 s) once (Demo: read a.txt): pending. Id: 01a-b.",
            "today 12:00 (in 9 s) once (Demo: read a.txt): pending. Id: 01a-b.",
        ),
        (
            "read log.txt",
            "Woken at 2026-03-02 12:00:09+00:00 UTC (in 9 s)",
            "log.txt says:\n\nWoken at 2026-03-02 12:00:09+00:00 UTC (in 9 s)",
        ),
        ("ask Scout to read a.txt", "It is empty.", "Scout says: It is empty."),
        ("query SELECT 1", '{"ok":true,"result":{"columns":["a"],"rows":[[1],[2]]}}', "I found this (a):\n- 1\n- 2"),
        ("query SELECT 1", "not what this tool answers", "not what this tool answers"),
    ],
)
async def test_it_says_what_came_of_a_call_as_a_person_would(sentence, result, reply):
    assert (await reply_to(sentence, result)).startswith(reply)


async def reply_to(sentence, text, metadata=None):
    asked = ModelRequest.user_text_prompt(sentence)
    [call] = [part for part in (await answer(asked)).parts if isinstance(part, ToolCallPart)]
    result = ToolReturnPart(call.tool_name, text, call.tool_call_id, metadata=metadata)
    [said] = (await answer(asked, ModelResponse(parts=[call]), ModelRequest([result]))).parts
    return said.content


async def test_it_says_that_a_call_failed():
    text = "There is no file 'notes.txt'."
    assert await reply_to("read notes.txt", text, {"success": False}) == f"That went wrong: {text}"


async def test_of_a_file_that_is_missing_it_says_how_to_write_one_in_a_sentence_that_it_knows():
    problem = "There is no 'list.txt' in your workspace. Call list_files with recursive=true to see what there is."
    said = await reply_to("read list.txt", problem, {"success": False})
    assert said == "There is no list.txt yet. Tell me what to put there first: “write buy milk to list.txt”."
    assert await call_for(said.partition("“")[2].partition("”")[0]) == (
        "write_file",
        {"content": "buy milk", "path": "list.txt"},
    )


async def test_a_long_result_is_quoted_in_part():
    result = ToolReturnPart("read_file", "x" * 100_000, "call_1")
    response = await answer(ModelRequest([result]))
    assert response.parts[0].content.count("x") == 600


async def test_it_thinks_first_and_streams_word_by_word():
    model = DemoModel(ManualClock(NOON), delay=0)
    deltas: list[str] = []
    async with model.request_stream([ModelRequest.user_text_prompt("help")], None, ModelRequestParameters()) as events:
        async for event in events:
            if isinstance(event, PartDeltaEvent):
                deltas.append(event.delta.content_delta or "")
    response = events.get()
    assert isinstance(response.parts[0], ThinkingPart)
    assert response.parts[0].content.startswith("This is the demo model")
    assert all(len(delta.split()) == 1 for delta in deltas)
    assert response.usage.output_tokens > len(deltas)
    assert response.timestamp == NOON


async def test_the_same_question_gets_the_same_answer():
    first, second = [await answer(ModelRequest.user_text_prompt("help")) for _ in range(2)]
    assert (first.parts, first.usage) == (second.parts, second.usage)
