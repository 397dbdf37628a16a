"""Every page with something of everything on it, for tests and for scripts/places.py."""

from typing import Any

from browser.visits import add_notice
from live_server import Server, eventually
from openai_server import call, calls, say, stream, thinking

BEDS = "day,plant,beds,note\n2026-11-01,tomato,3,\n2026-11-03,bean,5,climbs\n2026-11-09,leek,2,\n2026-11-12,beet,4,\n"
VIEWS = [
    ("beds_by_plant", "bar", "SELECT plant, beds, beds * 1.5 AS next_year FROM garden WHERE beds > 0"),
    ("beds_over_time", "line", "SELECT day, beds FROM garden WHERE day IS NOT NULL"),
    ("share_of_beds", "pie", "SELECT plant, beds FROM garden WHERE beds >= :least"),
    ("all_beds", "number", "SELECT sum(beds) AS beds, count(*) AS plants FROM garden"),
    ("notes", "table", "SELECT plant, note FROM garden"),
]


async def make_places(server: Server) -> dict[str, str]:
    """Fill a server, and return the address of every page by its name."""
    session = await server.session("Notes on the garden")
    server.provider.then(
        stream(*thinking("Let me see"), *call("write_file", '{"path": "a.txt", "content": "x"}'), finish="tool_calls"),
        calls(
            *call("read_file", '{"path": "gone.txt"}', id="call_2"),
            *call("read_file", '{"path": "gone.txt"}', index=1, id="call_3"),
        ),
        say(
            "# Title\n\nA [link](https://example.org), `code` and\n\n```js\nlet x = 1\n```\n\n",
            "| plant | this week | last week | difference |\n|---|---|---|---|\n",
            "| pumpkins | 11.2 kg | 8.3 kg | thirty-five percent |\n\n- [x] done\n- one\n\n> quote\n",
        ),
        say("Below the fold."),
    )
    async with server.watch(session) as client:
        await client.ask("Show me all sorts of things")
        await client.ask("And more of them")
    brief = "Read garden.txt with read_file and say what it contains."
    asked = {"call_type": "recurring", "when": "2h", "interval_seconds": 14_400, "additional_context_message": brief}
    await server.call("POST", f"/sessions/{session}/recall", json=asked | {"internal_comment": "Look at the garden"})
    [_, run] = await server.runs_of(session)
    agent = run["agent_id"]
    server.provider.then(say("It is empty."))
    await server.call("PUT", f"/agents/{agent}/next-run", json={"in_seconds": 0, "instructions": brief})
    scheduled = await eventually(lambda: _ended(server, agent))
    await server.call("PUT", f"/agents/{agent}/next-run", json={"in_seconds": 9_000, "instructions": brief})
    more = {"name": "Researcher", "description": "Looks things up on the web", "self_scheduling": True}
    await server.call("POST", "/agents", json=more | {"schedule": {"mode": "project"}, "timezone": "Asia/Tokyo"})
    await _fill_inbox(server, agent, scheduled)
    hook = {
        "name": "Pushes",
        "scheme": "github",
        "instructions": "Note it in a.txt with write_file.",
        "events": ["push"],
    }
    await server.call("POST", f"/agents/{agent}/hooks", json=hook)
    pager = {"name": "Pager", "url": "https://pager.example.org/in", "events": ["run.failed"]}
    await server.call("POST", "/webhooks", json=pager)
    data = f"/agents/{agent}/db"
    await server.call("POST", f"{data}/import", json={"table": "garden", "text": BEDS})
    await server.call("POST", f"{data}/tables/garden/rows/delete", json={"row_ids": [3]})
    late = {"plant": "pea", "note": "sow early " * 20}
    await server.call("POST", f"{data}/tables/garden/rows", json={"rows": [late]})
    least = {"name": "least", "description": "How many beds", "default": 1}
    for name, render, sql in VIEWS:
        view = {"sql": sql, "render": render, "pinned": True, "parameters": [least] if ":least" in sql else []}
        await server.call("PUT", f"{data}/views/{name}", json=view)
    return {
        "start": "/",
        "chat": f"/ui/sessions/{session}",
        "agenda-week": "/ui/agenda",
        "agenda-day": "/ui/agenda?view=day",
        "inbox": "/ui/inbox",
        "agents": "/ui/agents",
        "configure": f"/ui/agents/{agent}/configure",
        "home": f"/ui/agents/{agent}/home",
        "schema": f"/ui/agents/{agent}/schema",
        "data": f"/ui/agents/{agent}/data?table=garden&show=all",
        "views": f"/ui/agents/{agent}/views?view=share_of_beds",
        "activity": f"/ui/agents/{agent}/activity",
        "run": f"/ui/runs/{run['id']}",
        "scheduled-run": f"/ui/runs/{scheduled['id']}",
        "scheduled-session": f"/ui/sessions/{scheduled['session_id']}",
        "not-found": "/ui/nowhere",
        "settings": "/ui/settings",
    }


async def _fill_inbox(server: Server, agent: str, run: dict[str, Any]) -> None:
    await add_notice(server, agent, "The beans can be picked", view_ref="beds_by_plant")
    await add_notice(server, agent, "Frost tonight", session_id=run["session_id"], run_id=run["id"])
    clerk = await server.call(
        "POST", "/agents", json={"name": "Clerk", "toolsets": ["files"], "ask_before": ["write_file"]}
    )
    session = await server.session("Tidy up every day", agent_id=clerk["id"])
    server.provider.then(calls(*call("write_file", '{"path": "note.txt", "content": "Hello"}')), say("I may not."))
    asked = {"call_type": "immediate", "additional_context_message": "Write note.txt with write_file."}
    await server.call("POST", f"/sessions/{session}/recall", json=asked)
    await eventually(lambda: _has_asked(server))


async def _has_asked(server: Server) -> bool:
    notices = (await server.call("GET", "/notifications"))["notifications"]
    return any(each["code"] == "needs_approval" for each in notices)


async def _ended(server: Server, agent: str) -> Any:
    runs = (await server.call("GET", "/runs", params={"agent_id": agent, "status": "success"}))["runs"]
    return next((run for run in runs if run["kind"] == "next_run"), None)
