"""Two servers on one PostgreSQL with separate disks, through REST and sockets."""

from contextlib import asynccontextmanager

import pytest

from live_server import eventually, provided, running_server
from openai_server import call, calls, say

LEASE = 2


@pytest.fixture
async def provider():
    async with provided() as provider:
        yield provider


@pytest.fixture
def node(tmp_path, swept_postgres_url, provider):
    """Start a server with a data directory of its own."""

    @asynccontextmanager
    async def start(name):
        settings = {
            "data_dir": tmp_path / name,
            "config_dir": tmp_path / "config",
            "database_url": swept_postgres_url,
            "lease_seconds": LEASE,
        }
        async with running_server(settings, provider) as server:
            yield server

    return start


async def refused(server, method, path, **more):
    answer = await server.rest.request(method, path, **more)
    assert answer.is_error, answer.text
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


async def upload(server, session):
    return await server.call("POST", f"/sessions/{session}/uploads", files=[("files", ("plan.txt", b"plan"))])


async def first_agent(server):
    return (await server.call("GET", "/agents"))["agents"][0]["id"]


def files_of(tmp_path, name):
    agents = tmp_path / name / "agents"
    return sorted(path.name for path in agents.rglob("*") if path.is_file()) if agents.exists() else []


async def test_an_agents_files_and_database_are_made_in_one_directory(node, provider, tmp_path):
    async with node("one") as one, node("two") as two:
        session, agent = await one.session(), await first_agent(one)
        await upload(one, session)
        provider.then(calls(*call("write_file", '{"path": "notes.txt", "content": "x"}')), say("Done."))
        async with two.watch(session) as client:  # asked there, and done where the files are
            frames = await client.ask("Write a note.")
        assert frames[-1]["type"] == "stream_end"
        assert files_of(tmp_path, "one") == ["notes.txt", "plan.txt"]
        for method, path, body in (
            ("GET", f"/agents/{agent}/db", {}),
            ("POST", f"/agents/{agent}/db/import", {"json": {"table": "t", "text": "a\n1\n"}}),
            ("POST", f"/sessions/{session}/uploads", {"files": [("files", ("b.txt", b"b"))]}),
        ):
            status, code, message = await refused(two, method, path, **body)
            assert (status, code) == (503, "memory_elsewhere"), path
            assert str(tmp_path / "one") in message
            assert "running node has it" in message
        assert files_of(tmp_path, "two") == []
        await one.call("POST", f"/agents/{agent}/db/import", json={"table": "t", "text": "a\n1\n"})


async def test_what_waits_for_a_directory_is_told_at_every_door_and_goes_on_when_it_is_back(node, provider, tmp_path):
    async with node("two") as two:
        async with node("one") as one:
            session, agent = await one.session(), await first_agent(one)
            await upload(one, session)
        status, code, message = await refused(two, "POST", f"/sessions/{session}/messages", json={"content": "Hi"})
        assert (status, code) == (503, "memory_elsewhere")
        assert "Start the node with that data directory" in message
        async with two.watch(session) as client:
            await client.say("Hi")
            assert (await client.expect("error"))["code"] == "memory_elsewhere"
        wake = await two.book(session)

        async def notices():
            return (await two.call("GET", "/notifications"))["notifications"]

        [notice] = await eventually(notices)
        assert (notice["code"], notice["agent_id"]) == ("memory_elsewhere", agent)
        chain = (await two.call("GET", f"/wakes/{wake.id}/why"))["decisions"]
        assert "memory_elsewhere" in [each["code"] for each in chain]
        [run] = await two.runs_of(session)
        assert (run["status"], run["reason"]) == ("queued", "memory_elsewhere")
        ready = await two.rest.get("/readyz")
        assert (ready.status_code, ready.json()["ok"]) == (200, True)
        assert [(each["reason"], each["agents"]) for each in ready.json()["held"]] == [("memory_elsewhere", 1)]

        provider.then(say("Here I am."))
        async with node("one"):

            async def is_done():
                return (await two.run(run["id"]))["status"] == "success"

            await eventually(is_done)
        assert len(await notices()) == 1


async def test_an_agent_without_files_is_served_by_any_node(node, provider):
    async with node("two") as two:
        async with node("one") as one:
            session = await one.session()
            provider.then(say("One."))
            async with one.watch(session) as client:
                assert (await client.ask("Hi"))[-1]["type"] == "stream_end"
        provider.then(say("Two."))
        async with two.watch(session) as client:
            assert (await client.ask("Hi"))[-1]["type"] == "stream_end"
