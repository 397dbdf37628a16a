"""Two servers on one PostgreSQL with separate disks share agents' databases and files, through REST and sockets."""

from contextlib import asynccontextmanager

import pytest

from live_server import provided, running_server
from openai_server import call, calls, say


@pytest.fixture
async def provider():
    async with provided() as provider:
        yield provider


@pytest.fixture
def node(tmp_path, swept_postgres_url, provider):
    """Start a server with a data directory of its own, and the device key that all share."""

    @asynccontextmanager
    async def start(name):
        settings = {
            "data_dir": tmp_path / name,
            "config_dir": tmp_path / "config",
            "database_url": swept_postgres_url,
        }
        async with running_server(settings, provider) as server:
            yield server

    return start


async def test_an_agents_files_and_database_are_used_from_any_node(node, provider):
    async with node("one") as one, node("two") as two:
        session, agent = await one.session(), (await one.call("GET", "/agents"))["agents"][0]["id"]
        database = f"/agents/{agent}/db"
        sent = [("files", ("plan.txt", b"the plan"))]
        [kept] = (await one.call("POST", f"/sessions/{session}/uploads", files=sent))["files"]
        provider.then(
            calls(*call("read_file", f'{{"path": "{kept["path"]}"}}')),
            calls(*call("write_file", '{"path": "notes.txt", "content": "noted"}')),
            say("Done."),
        )
        async with two.watch(session) as client:
            frames = await client.ask("Read it, and write a note.")
        assert frames[-1]["type"] == "stream_end"
        results = [frame["result"] for frame in frames if frame["type"] == "tool_call"]
        assert "the plan" in results[0]
        provider.then(calls(*call("read_file", '{"path": "notes.txt"}')), say("Done."))
        async with one.watch(session) as client:
            frames = await client.ask("Read the note.")
        assert any("noted" in frame["result"] for frame in frames if frame["type"] == "tool_call")

        async with two.watch_events() as events:
            await one.call("POST", f"{database}/import", json={"table": "t", "text": "a\n1\n"})
            while (update := await events.next())["type"] != "db_update":
                pass
            assert (update["agent_id"], update["table"]) == (agent, "t")
            assert update["last_change"] > 0
        await two.call("POST", f"{database}/tables/t/rows", json={"rows": [{"a": "2"}]})
        asked = {"sql": "SELECT a FROM t ORDER BY a"}
        assert [row[0] for row in (await one.call("POST", f"{database}/query", json=asked))["rows"]] == [1, 2]


async def test_what_a_node_wrote_is_there_when_it_is_gone(node, provider):
    async with node("two") as two:
        async with node("one") as one:
            session, agent = await one.session(), (await one.call("GET", "/agents"))["agents"][0]["id"]
            await one.call("POST", f"/agents/{agent}/db/import", json={"table": "t", "text": "a\n1\n"})
            await one.call("PUT", f"/agents/{agent}/instructions/AGENTS.md", json={"text": "Be kind."})
        found = await two.call("GET", f"/agents/{agent}/db/tables/t/rows")
        assert found["total"] == 1
        provider.then(say("Two."))
        async with two.watch(session) as client:
            assert (await client.ask("Hi"))[-1]["type"] == "stream_end"
        assert "Be kind." in str(provider.requests[-1])
