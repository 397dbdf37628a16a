"""Disk usage of a server, and retention."""

import pytest

from live_server import running_server


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
    assert after["retention"] == {"events_hours": 48, "skipped_days": 90, "forget_recalls_after_days": 30}
    async with server.client(await server.add_user()) as client:
        answer = await client.get("/storage")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owners_only")
