"""Wrong calls of every tool that books, and wrong bodies at every door: one error each that a model or a person can
correct at once, and nothing is booked.
"""

import json

import pytest

from live_server import of_kind
from openai_server import call, calls, say

TODO = "Read notes.txt with read_file."
HALF = "half \ud800 of it"  # a lone surrogate, which JSON can carry and no database can keep
MAX_ERROR = 1_500  # characters; a model must find the mistake in them
LONG = "Read notes.txt with read_file. " * 3_300  # 100 kB


@pytest.fixture
async def server(shared_server):
    async with shared_server.as_new_owner() as server:
        await server.change_agent(toolsets=["recall", "scheduler", "next_run", "files"])
        yield server


async def answer_to(server, client, tool, arguments):
    """Let the model make one call, and return what it was answered."""
    server.provider.then(calls(*call(tool, json.dumps(arguments))), say("I see."))
    [told] = of_kind(await client.ask("Go on"), "tool_call")
    return told


async def find_faults(server, tool, base, table, token=None, agent=None):
    """Make every call of a table and return what was wrong with the answers."""
    faults = []
    session = (await server.call("POST", "/sessions", token=token, json={"title": "Titled", "agent_id": agent}))["id"]
    async with server.watch(session, token=token) as client:
        for changes, words in table:
            arguments = {name: value for name, value in (base | changes).items() if value is not None}
            told = await answer_to(server, client, tool, arguments)
            lacking = [word for word in words if word not in told["result"]]
            is_readable = len(told["result"]) < MAX_ERROR and told["metadata"]["code"] != "tool_broke"
            if told["success"] or lacking or not is_readable:
                faults.append((str(changes)[:80], lacking, told["result"][:300]))
            booked = (await server.call("GET", "/wakes", token=token))["wakes"]
            if booked:
                faults.append((str(changes)[:80], "booked", booked))
    return faults


RECALL = {"call_type": "once", "when": "1h", "additional_context_message": TODO}
HOURLY = {"call_type": "recurring", "interval_seconds": 3_600}
WRONG_RECALLS = [
    ({"call_type": None}, ["call_type"]),
    ({"call_type": "sometimes"}, ["call_type", "'sometimes'", "'once', 'recurring' or 'immediate'"]),
    ({"when": None}, ["`when` is missing", "'once'", "30m"]),
    ({"call_type": "immediate"}, ["`when`", "'1h'", "Leave it out"]),
    ({"when": "yesterday"}, ["`when`", "'yesterday'", "tomorrow at 09:00"]),
    ({"when": "2020-01-01T00:00:00Z"}, ["`when`", "'2020-01-01T00:00:00Z'", "not in the future", "30m"]),
    ({"when": "-5m"}, ["`when`", "'-5m'", "30m"]),
    ({"when": "9" * 500}, ["`when`", "200 characters"]),
    ({"when": "1h\x00"}, ["`when`", "30m"]),
    ({"when": HALF}, ["`when`", "30m"]),
    ({"interval_seconds": 60}, ["`interval_seconds`", "60", "'once'", "'recurring'"]),
    ({"cron": "0 9 * * *"}, ["`cron`", "'0 9 * * *'", "'recurring'"]),
    ({"until": "2h"}, ["`until`", "'2h'", "'recurring'"]),
    ({"max_runs": 3}, ["`max_runs`", "3", "'recurring'"]),
    ({"call_type": "recurring"}, ["interval", "cron"]),
    (HOURLY | {"cron": "0 9 * * *"}, ["interval", "cron", "exactly one"]),
    (HOURLY | {"interval_seconds": 1}, ["interval_seconds", "1 s", "10 s"]),
    (HOURLY | {"interval_seconds": 10**30}, ["interval_seconds"]),
    (HOURLY | {"interval_seconds": "often"}, ["interval_seconds", "'often'", "integer"]),
    ({"call_type": "recurring", "cron": "every day"}, ["cron", "'every day'"]),
    ({"call_type": "recurring", "cron": "0 9 * * *\x00"}, ["cron"]),
    (HOURLY | {"until": "yesterday"}, ["`until`", "'yesterday'"]),
    (HOURLY | {"until": "1m"}, ["until", "before the first time"]),
    (HOURLY | {"max_runs": 0}, ["max_runs", "got 0", "from 1"]),
    (HOURLY | {"max_runs": 10**30}, ["max_runs"]),
    ({"on_miss": "retry"}, ["on_miss", "'retry'", "'run_once'"]),
    ({"priority": "urgent"}, ["priority", "'urgent'", "'normal' or 'low'"]),
    ({"timezone": "Mars/Olympus"}, ["timezone", "'Mars/Olympus'", "IANA"]),
    ({"timezone": "Europe/Berlin\x00"}, ["timezone"]),
    ({"timezone": HALF}, ["timezone"]),
    ({"timezone_offset": "+25:00"}, ["timezone_offset", "'+25:00'", "14:00"]),
    ({"additional_context_message": None}, ["additional_context_message"]),
    ({"additional_context_message": "  "}, ["additional_context_message", "'  '", "1 to 32,000"]),
    ({"additional_context_message": LONG}, ["additional_context_message", "102,300", "32,000"]),
    ({"additional_context_message": f"{TODO}\x00"}, ["additional_context_message", "NUL"]),
    ({"additional_context_message": f"{TODO} {HALF}"}, ["additional_context_message", "half characters"]),
    (
        {"additional_context_message": "Tell the user that 2 hours have passed"},
        ["additional_context_message", "notify"],
    ),
    ({"additional_context_message": "Remind the user to drink."}, ["additional_context_message", "notify"]),
    ({"internal_comment": "a\x00b"}, ["internal_comment", r"'a\x00b'", "NUL"]),
    ({"internal_comment": HALF}, ["internal_comment", "half characters"]),
    ({"internal_comment": "x" * 5_000}, ["internal_comment", "5,000", "1,000"]),
    ({"session_id": "another"}, ["session_id", "'another'"]),
]


async def test_schedule_recall(server):
    assert await find_faults(server, "schedule_recall", RECALL, WRONG_RECALLS) == []


WRONG_ENDS = [
    ({"action": None}, ["action"]),
    ({"action": "explode"}, ["action", "'explode'", "'cancel', 'skip' or 'list'"]),
    ({"action": "skip"}, ["No recurring recall is pending"]),
    ({"session_id": "nothing-here"}, ["'nothing-here'", "Leave `session_id` out"]),
    ({"session_id": "a\x00b"}, [r"'a\x00b'", "Leave `session_id` out"]),
    ({"session_id": HALF}, ["session", "Leave `session_id` out"]),
    ({"session_id": ""}, ["session", "Leave `session_id` out"]),
]


async def test_manage_recall(server):
    assert await find_faults(server, "manage_recall", {"action": "list"}, WRONG_ENDS) == []


async def test_another_persons_session_is_not_there_for_a_tool(server):
    secret = await server.add_user()
    [agent] = (await server.call("GET", "/agents", token=secret))["agents"]
    changes = {"toolsets": ["recall"], "self_scheduling": True}
    await server.call("PATCH", f"/agents/{agent['id']}", token=secret, json=changes)
    foreign = await server.session()
    await server.call("POST", f"/sessions/{foreign}/recall", json=RECALL)
    told = [repr(foreign), "Leave `session_id` out"]
    table = [({"action": action, "session_id": foreign}, told) for action in ("list", "cancel", "skip")]
    assert await find_faults(server, "manage_recall", {}, table, secret, agent["id"]) == []
    assert (await server.call("GET", f"/sessions/{foreign}/recall"))["recall"]["status"] == "pending"


MESSAGE = {"op": "create", "kind": "message", "message": TODO, "delay_ms": 60_000}
SESSION = {"kind": "session", "session_config": {}}
WRONG_SCHEDULES = [
    ({"op": None}, ["op"]),
    ({"op": "explode"}, ["op", "'explode'", "'create', 'list' or 'cancel'"]),
    ({"kind": None}, ["`kind` is missing", "'message'", "'session'"]),
    ({"kind": "recurring"}, ["kind", "'recurring'", "'message' or 'session'"]),
    ({"delay_ms": None}, ["`delay_ms`", "`at`", "neither"]),
    ({"at": "2026-11-16T09:00:00Z"}, ["`delay_ms`", "`at`", "60000", "'2026-11-16T09:00:00Z'"]),
    ({"delay_ms": 999}, ["`delay_ms`", "999 ms", "1,000"]),
    ({"delay_ms": 25 * 3_600_000}, ["`delay_ms`", "90,000,000 ms", "86,400,000"]),
    ({"delay_ms": -1}, ["`delay_ms`", "-1 ms", "1,000"]),
    ({"delay_ms": 10**40}, ["`delay_ms`", "86,400,000"]),
    ({"delay_ms": "soon"}, ["delay_ms", "'soon'", "integer"]),
    ({"delay_ms": None, "at": "2026-11-16T09:00:00"}, ["`at`", "'2026-11-16T09:00:00'", "no time zone", "+01:00"]),
    ({"delay_ms": None, "at": "2999-01-01T00:00:00Z"}, ["`at`", "'2999-01-01T00:00:00Z'", "24 h"]),
    ({"delay_ms": None, "at": "tomorrow"}, ["`at`", "'tomorrow'", "ISO 8601", "`delay_ms`"]),
    ({"delay_ms": None, "at": "2026-02-30T09:00:00Z"}, ["`at`", "valid date"]),
    ({"delay_ms": None, "at": "a\x00b"}, ["`at`", r"'a\x00b'"]),
    ({"delay_ms": None, "at": HALF}, ["`at`", "ISO 8601"]),
    ({"message": None}, ["`message` is missing"]),
    ({"message": "  "}, ["`message`", "'  '", "1 to 32,000"]),
    ({"message": LONG}, ["`message`", "102,300", "32,000"]),
    ({"message": "a\x00b"}, ["`message`", r"'a\x00b'", "NUL"]),
    ({"message": HALF}, ["`message`", "half characters"]),
    ({"label": "a\x00b"}, ["`label`", "NUL"]),
    ({"label": HALF}, ["`label`", "half characters"]),
    ({"label": "a\nb"}, ["`label`", r"'a\nb'", "one line"]),
    ({"label": "x" * 500}, ["`label`", "500", "200"]),
    ({"ephemeral": "perhaps"}, ["ephemeral", "'perhaps'", "boolean"]),
    ({"session_config": {}}, ["`session_config`", "'message'"]),
    ({"kind": "session"}, ["`session_config`", "session_name", "tool_ids"]),
    (SESSION | {"session_config": []}, ["`session_config`", "[]", "JSON object"]),
    (SESSION | {"session_config": {"colour": "red", "size": 1}}, ["'colour', 'size'", "thinking_level"]),
    (SESSION | {"session_config": {"session_name": "a\x00b"}}, ["`session_config.session_name`", "NUL"]),
    (SESSION | {"session_config": {"system_prompt": HALF}}, ["`session_config.system_prompt`", "half characters"]),
    (SESSION | {"session_config": {"developer_prompt": "a\x00"}}, ["`session_config.developer_prompt`", "NUL"]),
    (SESSION | {"session_config": {"thinking_level": "deep"}}, ["thinking_level`", "'deep'", "off, low, medium, high"]),
    (
        SESSION | {"session_config": {"model": "openai:o9"}},
        ["`session_config.model`", "'openai:o9'", "openai-chat:test"],
    ),
    (SESSION | {"session_config": {"tool_ids": ["run_command"]}}, ["tool_ids`", "'run_command'", "read_file"]),
    (SESSION | {"session_config": {"skills": ["../up"]}}, ["`session_config.skills`", "'../up'", "without a path"]),
    (SESSION | {"session_config": {"skills": ["a\x00"]}}, ["`session_config.skills`"]),
    (SESSION | {"session_config": {"cache_breakpoints": ["all"]}}, ["cache_breakpoints`", "'all'", "messages"]),
    (
        SESSION | {"session_config": {"prompt_component_selection": ["soul"]}},
        ["prompt_component_selection`", "'soul'", "preamble"],
    ),
    (
        SESSION | {"session_config": {"preloaded_messages": [{"role": "system", "content": "Obey."}]}},
        ["preloaded_messages.0.role`", "'system'", "user or assistant"],
    ),
    (
        SESSION | {"session_config": {"preloaded_messages": [{"role": "user", "content": "a\x00"}]}},
        ["preloaded_messages.0.content`", "NUL"],
    ),
    (SESSION | {"session_config": {"preloaded_messages": [{"role": "user", "content": "a"}] * 51}}, ["51", "50"]),
    ({"schedule_id": "sch-1"}, ["`schedule_id`", "'sch-1'", "'create'"]),
    ({"when": "1h"}, ["when", "'1h'"]),
]


async def test_scheduler(server):
    assert await find_faults(server, "scheduler", MESSAGE, WRONG_SCHEDULES) == []


async def test_scheduler_cancel(server):
    table = [
        ({}, ["`schedule_id` is missing", "'list'"]),
        ({"schedule_id": "sch-nothing"}, ["schedule", "'sch-nothing'", "'list'"]),
        ({"schedule_id": "a\x00b"}, ["schedule_id", r"'a\x00b'"]),
        ({"schedule_id": HALF}, ["schedule_id"]),
        ({"schedule_id": "sch-1", "kind": "message"}, ["`kind`", "'message'", "'cancel'"]),
    ]
    assert await find_faults(server, "scheduler", {"op": "cancel"}, table) == []


NEXT = {"in_seconds": 3_600, "instructions": TODO}
WRONG_NEXT_RUNS = [
    ({"in_seconds": None}, ["in_seconds", "scheduled_at", "exactly one"]),
    ({"scheduled_at": "2026-11-16T09:00:00Z"}, ["in_seconds", "3600", "'2026-11-16T09:00:00Z'", "exactly one"]),
    ({"in_seconds": 10**40}, ["in_seconds", "at most"]),
    ({"in_seconds": 1.5}, ["in_seconds", "1.5", "integer"]),
    ({"in_seconds": None, "scheduled_at": "2026-11-16T09:00:00"}, ["`scheduled_at`", "no time zone", "+01:00"]),
    ({"in_seconds": None, "scheduled_at": "tomorrow"}, ["`scheduled_at`", "'tomorrow'", "ISO 8601", "`in_seconds`"]),
    ({"in_seconds": None, "scheduled_at": "a\x00b"}, ["`scheduled_at`", r"'a\x00b'"]),
    ({"in_seconds": None, "scheduled_at": HALF}, ["`scheduled_at`", "ISO 8601"]),
    ({"priority": "urgent"}, ["priority", "'urgent'", "'normal' or 'low'"]),
    ({"on_miss": "retry"}, ["on_miss", "'retry'", "'run_once'"]),
    ({"context_views": ["open_tasks"]}, ["context_views", "'open_tasks'", "none"]),
    ({"context_views": ["a\x00b"]}, ["context_views", r"'a\x00b'"]),
    ({"context_views": [HALF]}, ["context_views"]),
    ({"context_views": "open_tasks"}, ["context_views", "'open_tasks'", "list"]),
    ({"instructions": None}, ["instructions"]),
    ({"instructions": "  "}, ["instructions", "'  '", "1 to 32,000"]),
    ({"instructions": LONG}, ["instructions", "102,300", "32,000"]),
    ({"instructions": f"{TODO}\x00"}, ["instructions", "NUL"]),
    ({"instructions": HALF}, ["instructions", "half characters"]),
    ({"agent_id": "another"}, ["agent_id", "'another'"]),
]


async def test_schedule_next_run(server):
    assert await find_faults(server, "schedule_next_run", NEXT, WRONG_NEXT_RUNS) == []


async def test_cancel_next_run(server):
    table = [({"agent_id": "another"}, ["agent_id", "'another'"])]
    assert await find_faults(server, "cancel_next_run", {}, table) == []


# ── The same at the doors of people ─────────────────────────────────────────────────────────────────────────────────

# An empty comment is none, and a person may write what the linter would refuse.
OF_THE_MODEL_ONLY = ("Tell the user that 2 hours have passed", "Remind the user to drink.")


async def test_wrong_bodies_name_their_field_and_book_nothing(server):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    session = await server.session()
    doors = [
        ("POST", f"/sessions/{session}/recall", RECALL, WRONG_RECALLS),
        ("POST", f"/sessions/{session}/schedules", {k: v for k, v in MESSAGE.items() if k != "op"}, WRONG_SCHEDULES),
        ("PUT", f"/agents/{agent['id']}/next-run", NEXT, WRONG_NEXT_RUNS),
    ]
    faults = []
    for method, path, base, table in doors:
        for changes, _words in table:
            if "op" in changes or any(value in OF_THE_MODEL_ONLY for value in changes.values()):
                continue
            body = json.dumps({name: value for name, value in (base | changes).items() if value is not None})
            answer = await server.rest.request(method, path, content=body, headers={"Content-Type": "application/json"})
            if answer.status_code not in (400, 422) or "field" not in answer.json()["error"]:
                faults.append((str(changes)[:80], answer.status_code, answer.text[:300]))
    assert faults == []
    assert (await server.call("GET", "/wakes"))["wakes"] == []


@pytest.mark.parametrize("value", [True, "5", 1.5])
async def test_what_is_no_whole_number_is_not_taken_for_one(server, value):
    recall = f"/sessions/{await server.session()}/recall"
    wrong = [
        ("POST", "/agents", {"name": "Counter", "budgets": {"run_tokens": value}}, "run_tokens"),
        ("POST", "/agents", {"name": "Counter", "max_iterations": value}, "max_iterations"),
        ("POST", recall, RECALL | HOURLY | {"interval_seconds": value}, "interval"),
    ]
    for method, path, body, field in wrong:
        answer = await server.rest.request(method, path, json=body)
        assert answer.status_code in (400, 422), (path, answer.text)
        assert field in answer.json()["error"]["field"]
