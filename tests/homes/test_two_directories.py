"""Two servers on one PostgreSQL with separate disks share agents' databases and files, through REST and sockets."""

import base64
import json
from contextlib import asynccontextmanager

import pytest

from live_server import provided, running_server
from openai_server import call, calls, say

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


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


async def test_commands_run_on_any_node_with_the_files_of_the_others(node, provider):
    async with node("one") as one, node("two") as two:
        session, agent = await one.session(), (await one.call("GET", "/agents"))["agents"][0]["id"]
        await one.call("PATCH", f"/agents/{agent}", json={"toolsets": ["files", "shell"]})
        script = "#!/bin/sh\nmkdir -p out/empty; cat data.txt > out/copy.txt; ln -s copy.txt out/link; rm data.txt"
        steps = (
            (one, "write_file", {"path": "data.txt", "content": "from one"}),
            (two, "write_file", {"path": "do.sh", "content": script}),
            (one, "run_command", {"command": "chmod +x do.sh"}),
            (two, "run_command", {"command": "./do.sh"}),
            (one, "run_command", {"command": "cat out/link; ls -d out/empty; ls data.txt"}),
        )
        for server, tool, arguments in steps:
            provider.then(calls(*call(tool, json.dumps(arguments))), say("Done."))
            async with server.watch(session) as client:
                frames = await client.ask("Go on.")
            assert frames[-1]["type"] == "stream_end"
        [last] = [frame["result"] for frame in frames if frame["type"] == "tool_call"]
        assert "from one" in last
        assert "out/empty" in last
        assert "No such file" in last


async def test_views_images_exports_undo_and_warnings_work_on_any_node(node, provider):
    async with node("one") as one, node("two") as two:
        session, agent = await one.session(), (await one.call("GET", "/agents"))["agents"][0]["id"]
        await one.call("PATCH", f"/agents/{agent}", json={"toolsets": ["database"], "database_mb": 1})
        database = f"/agents/{agent}/db"
        await one.call("POST", f"{database}/import", json={"table": "t", "text": "a\n1\n"})

        await one.call("PUT", f"{database}/views/all", json={"sql": "SELECT a FROM t", "pinned": True})
        [view] = (await two.call("GET", f"{database}/views"))["views"]
        assert (view["name"], view["pinned"]) == ("all", True)
        await two.call("POST", f"{database}/tables/t/rows", json={"rows": [{"a": 2}]})
        found = await one.call("POST", f"{database}/views/all/run", json={})
        assert [row[0] for row in found["rows"]] == [1, 2]

        provider.then(say("A picture."))
        async with one.watch(session) as client:
            await client.ask("Look", images=[base64.b64encode(PNG).decode()])
        [image] = (await two.messages(session))[0]["images"]
        assert (await two.rest.get(f"/sessions/{session}/images/{image['id']}")).content == PNG

        exported = await two.rest.get(f"{database}/tables/t/export")
        assert exported.status_code == 200, exported.text
        assert exported.text.splitlines()[1:]

        provider.then(calls(*call("db_insert", '{"table": "t", "rows": [{"a": 3}]}')), say("Done."))
        async with two.watch(session) as client:
            run_id = (await client.ask("Add three."))[0]["run_id"]
        assert (await one.call("POST", f"/runs/{run_id}/undo-data"))["undone"] == 1
        assert (await two.call("GET", f"{database}/tables/t/rows"))["total"] == 2

        await one.call("POST", f"{database}/import", json={"table": "large", "text": "title\nx\n"})
        for number in range(8):
            row = {"rows": [{"title": f"{number}-{'x' * 60_000}"}]}
            await (one, two)[number % 2].call("POST", f"{database}/tables/large/rows", json=row)
        codes = [each["code"] for each in (await two.call("GET", "/notifications"))["notifications"]]
        assert codes.count("storage_low") == 1


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
