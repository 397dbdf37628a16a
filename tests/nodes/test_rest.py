"""Two servers on one PostgreSQL: listed, drained and restarted one after the other, over REST and by commands."""

import asyncio
import os
from contextlib import asynccontextmanager

import pytest

import forked_process
from live_server import TOKEN, eventually, provided, running_server
from openai_server import say


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
            "node_name": name,
            "lease_seconds": 2,
        }
        async with running_server(settings, provider) as server:
            yield server

    return start


async def wakeful(server, tmp_path, *words):
    """Run a command against a server, and return what it printed."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    environment = plain | {"WAKEFUL_URL": server.address, "WAKEFUL_TOKEN": TOKEN, "COLUMNS": "200"}
    done = await asyncio.to_thread(forked_process.run, words, environment, tmp_path / "errors")
    assert done.returncode == 0, done.stderr
    return done.stdout


async def nodes_of(server):
    return {each["name"]: each for each in (await server.call("GET", "/nodes"))["nodes"]}


async def ask(server, session, provider):
    """Send a message, and return the name of the node that answered."""
    provider.then(say("Here."))
    async with server.watch(session) as client:
        await client.ask("Who are you?")
    [run, *_] = await server.runs_of(session)
    return run["node"]


async def test_a_node_is_drained_and_the_other_takes_its_work(node, provider, tmp_path):
    async with node("one") as one, node("two") as two:
        session = await one.session()
        seen = await nodes_of(one)
        assert list(seen) == ["one", "two"]
        assert all(each["is_alive"] and not each["is_draining"] for each in seen.values())
        assert (await one.call("GET", "/nodes"))["this_id"] == seen["one"]["id"]

        drained = await two.call("POST", f"/nodes/{seen['one']['id']}/drain")
        assert drained["is_draining"]

        async def drains():
            return (await one.rest.get("/readyz")).json().get("draining") is True

        await eventually(drains)
        assert await ask(one, session, provider) == "two"
        metrics = (await one.rest.get("/metrics")).text
        assert "wakeful_node_draining 1.0" in metrics
        assert 'wakeful_node_info{node="one"' in metrics

        listed = (await wakeful(one, tmp_path, "node", "ls")).splitlines()
        assert [line.split()[1] for line in listed[1:]] == ["one", "two"]
        assert "draining" in listed[1]
        assert "claims runs again" in await wakeful(one, tmp_path, "node", "undrain", "one")
        await eventually(lambda: _not(drains))
        assert "two drains" in await wakeful(one, tmp_path, "node", "drain", seen["two"]["id"][:8])
        await eventually(lambda: _drains(two))
        assert await ask(two, session, provider) == "one"

        answer = await one.rest.post("/nodes/ffffffffffffffff/drain")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_node")
        async with one.client(await one.add_user()) as client:
            for method, path in (("GET", "/nodes"), ("POST", f"/nodes/{seen['one']['id']}/drain")):
                answer = await client.request(method, path)
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owners_only"), path


async def _drains(server):
    return (await server.rest.get("/readyz")).json().get("draining") is True


async def _not(ask_):
    return not await ask_()
