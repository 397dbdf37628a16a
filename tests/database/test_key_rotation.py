"""Rotating the key of an agent's database while others read, write and export it."""

import asyncio
import os
import re
import shutil
import signal
from itertools import count

import pytest

from fixtures.stores import IS_LONG
from live_server import TOKEN, eventually, provided, running_server
from network.raw_requests import code_of
from wakeful.agentdb.file import connect, opens

pytestmark = [pytest.mark.security, pytest.mark.both_stores]

ROUNDS = 40 if IS_LONG else 6

# On PostgreSQL a rotation is one transaction, and readers wait for it.
on_files = pytest.mark.parametrize("store_settings", ["sqlite"], indirect=True)


@pytest.fixture
async def agent(place):
    [agent] = (await place.home.call("GET", "/agents"))["agents"]
    await place.home.call("POST", f"/agents/{agent['id']}/db/import", json={"table": "notes", "text": "note\nfirst\n"})
    return agent["id"]


def keys_of(server, agent):
    return server.node.services.data.files.vault.open(agent)


def database_of(server, agent):
    return server.workspaces / agent / "db.sqlite"


async def notes_in(server, agent):
    asked = {"sql": "SELECT note FROM notes", "limit": 1000}
    return {row[0] for row in (await server.call("POST", f"/agents/{agent}/db/query", json=asked))["rows"]}


async def verify(server, agent):
    return await server.call("GET", f"/agents/{agent}/db/verify")


def is_busy(answer):
    """Return whether it was refused because a reader held the file; nothing is changed then."""
    is_unavailable = code_of(answer) == (503, "database_unavailable")
    return is_unavailable and re.search("is busy|in use elsewhere", answer.json()["error"]["message"]) is not None


class Clients:
    """Clients that read, write and export until they are stopped, and record the answers."""

    def __init__(self, server, agent, mark="n"):
        self.server = server
        self.mark = mark
        self.path = f"/agents/{agent}/db"
        self.inserted = set()
        self.odd = []
        self.is_over = False
        self._numbers = count()

    async def __aenter__(self):
        acts = (self._query, self._query, self._insert, self._insert, self._export, self._verify)
        self._tasks = [asyncio.create_task(self._repeat(act)) for act in acts]
        return self

    async def __aexit__(self, *_):
        self.is_over = True
        await asyncio.gather(*self._tasks)

    async def _repeat(self, act):
        async with self.server.client(TOKEN) as client:
            while not self.is_over:
                await act(client)

    async def _query(self, client):
        self._note(await client.post(f"{self.path}/query", json={"sql": "SELECT count(*) FROM notes"}))

    async def _insert(self, client):
        number = next(self._numbers)
        answer = await client.post(f"{self.path}/tables/notes/rows", json={"rows": [{"note": f"{self.mark}{number}"}]})
        if self._note(answer):
            self.inserted.add(f"{self.mark}{number}")

    async def _export(self, client):
        self._note(await client.get(f"{self.path}/tables/notes/export"))

    async def _verify(self, client):
        self._note(await client.get(f"{self.path}/verify"))

    def _note(self, answer):
        if not answer.is_success and not is_busy(answer):
            self.odd.append((answer.request.url.path, answer.status_code, answer.text[:300]))
        return answer.is_success


async def test_rotations_lose_nothing_while_others_read_write_and_export(place, agent):
    rotate, first = f"/agents/{agent}/db/rotate-key", keys_of(place.home, agent).current
    async with Clients(place.home, agent) as clients:
        for _ in range(ROUNDS):
            twice = await asyncio.gather(*[place.home.rest.post(rotate) for _ in range(2)])
            assert all(answer.is_success or is_busy(answer) for answer in twice), [answer.text for answer in twice]
    assert clients.odd == []
    assert len(clients.inserted) > ROUNDS
    await place.home.call("POST", rotate)
    assert await notes_in(place.home, agent) == {"first", *clients.inserted}
    assert (await verify(place.home, agent))["intact"] is True
    assert not (place.home.workspaces / agent / "quarantine").exists()
    keys = keys_of(place.home, agent)
    assert keys.previous is None
    copy = database_of(place.home, agent).with_name("copy.sqlite")
    shutil.copy(database_of(place.home, agent), copy)
    assert opens(copy, keys.current)
    assert not opens(copy, first)


class Held:
    """Holds requests of some operations back on their way to the workers, so that a race ends the same each time."""

    def __init__(self, server, monkeypatch):
        self.files = server.node.services.data.files
        self._ask = self.files.engine.ask
        self.let = {}  # by operation: who waits for it may go on
        self.came = {}  # by operation: one has come
        monkeypatch.setattr(self.files.engine, "ask", self._hold)

    def hold(self, op):
        self.let[op], self.came[op] = asyncio.Event(), asyncio.Event()

    async def _hold(self, request, *more):
        if request.op in self.let:
            self.came[request.op].set()
            await self.let[request.op].wait()
        return await self._ask(request, *more)


@on_files
async def test_a_reader_between_two_rotations_does_not_take_the_file_for_damaged(place, agent, monkeypatch):
    """It comes with the first key when the file has the second and its key file names the third."""
    held, rotate = Held(place.home, monkeypatch), f"/agents/{agent}/db/rotate-key"
    held.hold("query")
    reading = asyncio.create_task(notes_in(place.home, agent))
    await held.came["query"].wait()
    await place.home.call("POST", rotate)
    held.hold("rekey")
    rotating = asyncio.create_task(place.home.call("POST", rotate))
    await held.came["rekey"].wait()
    held.let["query"].set()
    await asyncio.wait([reading], timeout=0.5)  # it must wait for the rotation, however long that takes
    held.let["rekey"].set()
    await rotating
    assert await reading == {"first"}
    assert not (place.home.workspaces / agent / "quarantine").exists()
    assert (await verify(place.home, agent))["intact"] is True


@on_files
async def test_after_a_rotation_that_could_not_be_finished_another_one_finishes_it(place, agent):
    """A second program that reads the file keeps it from getting its new key, which is saved by then."""
    rotate, first = f"/agents/{agent}/db/rotate-key", keys_of(place.home, agent).current
    reader = connect(str(database_of(place.home, agent)), first)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM notes").fetchall()
        for _ in range(2):
            assert is_busy(await place.home.rest.post(rotate))
    finally:
        reader.close()
    await place.home.call("POST", rotate)
    assert await notes_in(place.home, agent) == {"first"}
    assert not (place.home.workspaces / agent / "quarantine").exists()
    assert not opens(database_of(place.home, agent), first)


@on_files
async def test_a_rotation_whose_worker_is_killed_is_finished_by_the_next_who_asks(place, agent, monkeypatch):
    held, first = Held(place.home, monkeypatch), keys_of(place.home, agent).current
    held.hold("rekey")
    rotating = asyncio.create_task(place.home.rest.post(f"/agents/{agent}/db/rotate-key"))
    await held.came["rekey"].wait()
    held.let.pop("rekey").set()
    await asyncio.sleep(0)  # it is on its way to a worker
    killed = set(held.files.engine.pids)
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    answer = await rotating

    async def is_noticed():
        return not killed & set(held.files.engine.pids)

    await eventually(is_noticed)  # also of those that had nothing to do
    assert answer.is_success or code_of(answer) == (503, "database_worker_broke"), answer.text
    assert await notes_in(place.home, agent) == {"first"}
    assert (await verify(place.home, agent))["intact"] is True
    keys = keys_of(place.home, agent)
    assert keys.previous is None
    assert keys.current != first
    assert not (place.home.workspaces / agent / "quarantine").exists()


@on_files
async def test_a_reader_that_comes_after_an_erasing_brings_no_file_back(place, agent, monkeypatch):
    held, database = Held(place.home, monkeypatch), f"/agents/{agent}/db"
    held.hold("query")
    reading = asyncio.create_task(place.home.rest.post(f"{database}/query", json={"sql": "SELECT 1"}))
    await held.came["query"].wait()
    [name] = [each["name"] for each in (await place.home.call("GET", "/agents"))["agents"]]
    await place.home.call("DELETE", database, json={"confirm": name})
    held.let["query"].set()
    answer = await reading
    assert code_of(answer) == (503, "database_unavailable"), answer.text
    assert [path.name for path in database_of(place.home, agent).parent.glob("db.*")] == []
    again = {"table": "notes", "text": "note\nsecond\n"}
    await place.home.call("POST", f"{database}/import", json=again)
    assert await notes_in(place.home, agent) == {"second"}


@pytest.mark.parametrize("store_settings", ["two nodes"], indirect=True)
async def test_the_other_node_rotates_and_reads(place, agent):
    first = keys_of(place.home, agent).current
    await place.door.call("POST", f"/agents/{agent}/db/rotate-key")
    assert await notes_in(place.home, agent) == await notes_in(place.door, agent) == {"first"}
    assert keys_of(place.home, agent).current == keys_of(place.door, agent).current != first


async def test_two_nodes_on_one_directory_rotate_and_read_at_once(tmp_path, swept_postgres_url):
    settings = {
        "data_dir": tmp_path / "data",
        "config_dir": tmp_path / "config",
        "database_url": swept_postgres_url,
    }
    async with (
        provided() as provider,
        running_server(settings, provider) as one,
        running_server(settings, provider) as two,
    ):
        [agent] = (await one.call("GET", "/agents"))["agents"]
        path = f"/agents/{agent['id']}/db"
        await one.call("POST", f"{path}/import", json={"table": "notes", "text": "note\nfirst\n"})
        async with Clients(one, agent["id"]) as ones, Clients(two, agent["id"], "m") as twos:
            for _ in range(ROUNDS):
                rotated = await asyncio.gather(*[each.rest.post(f"{path}/rotate-key") for each in (one, two)])
                assert all(each.is_success or is_busy(each) for each in rotated), [each.text for each in rotated]
        assert (ones.odd, twos.odd) == ([], [])

        async def is_settled():  # each node closes only its own connections, so it may take a request at either
            asked = {"sql": "SELECT 1"}
            return all([(await each.rest.post(f"{path}/query", json=asked)).is_success for each in (one, two)])

        await eventually(is_settled)
        assert keys_of(one, agent["id"]).previous is None
        assert await notes_in(two, agent["id"]) == {"first", *ones.inserted, *twos.inserted}
        assert (await verify(one, agent["id"]))["intact"] is True
        assert not (one.workspaces / agent["id"] / "quarantine").exists()
