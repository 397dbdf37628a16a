"""Disk usage of a server, and retention."""

import pytest

from live_server import eventually, running_server
from openai_server import say


@pytest.fixture
async def server(backend_settings):
    async with running_server(backend_settings, retention_events_hours=48) as server:
        yield server


async def test_store_files_and_databases_are_measured_apart_for_owners_alone(server):
    before = await server.call("GET", "/storage")
    assert before["store_bytes"] > 4096
    assert (before["workspace_bytes"], before["database_bytes"]) == (0, 0)
    [agent] = (await server.call("GET", "/agents"))["agents"]
    workspace = server.node.services.workspace_of(agent["id"])
    (workspace / "deep").mkdir(parents=True)
    (workspace / "deep" / "notes.txt").write_text("x" * 1000)
    (workspace / "link").symlink_to("/etc/passwd")
    asked = {"table": "notes", "text": "note\nbuy milk"}
    await server.call("POST", f"/agents/{agent['id']}/db/import", json=asked)
    after = await server.call("GET", "/storage")
    assert after["workspace_bytes"] == 1000 + len("/etc/passwd")  # the link, and not what it leads to
    assert after["database_bytes"] >= 4096
    assert after["retention"] == {
        "events_hours": 48,
        "skipped_days": 90,
        "forget_recalls_after_days": 30,
        "runs_days": 0,
        "sessions_days": 0,
    }
    async with server.client(await server.add_user()) as client:
        answer = await client.get("/storage")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owners_only")


async def test_tables_and_agents_are_measured_apart(server):
    session = await server.session()
    server.provider.then(say(" ".join(map(str, range(1_000)))))
    async with server.watch(session) as client:
        await client.ask("Count to a thousand.")
    await server.node.services.storage.measure_sizes()
    found = await server.call("GET", "/storage")
    tables = {table["name"]: table["bytes"] for table in found["tables"]}
    assert {"messages", "runs", "wakes", "events"} <= tables.keys()
    assert sum(tables.values()) <= found["store_bytes"]
    assert list(tables.values()) == sorted(tables.values(), reverse=True)
    [agent] = found["agents"]
    assert (agent["messages"], agent["runs"]) == (2, 1)
    assert agent["message_bytes"] > 0

    async def metrics_that_agree():  # the measurement of the start may come between the two answers
        [table] = [each for each in (await server.call("GET", "/storage"))["tables"] if each["name"] == "messages"]
        metrics = (await server.rest.get("/metrics")).text
        return metrics if f'wakeful_table_bytes{{table="messages"}} {float(table["bytes"])}' in metrics else None

    metrics = await eventually(metrics_that_agree)
    assert f'wakeful_agent_bytes{{agent="{agent["name"]}",kind="messages"}} {float(agent["message_bytes"])}' in metrics
    assert "wakeful_store_bytes" in metrics
