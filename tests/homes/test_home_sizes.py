"""Homes of unusual size, on a full disk, and many at once."""

import asyncio
import os
import threading
import time
from itertools import count

import pytest

from fixtures.stores import IS_LONG
from harness import MINUTE, NOON, SECOND
from small_disk import fill, small_disk
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.clock import ServerClock
from wakeful.core.errors import DiskFull
from wakeful.core.types import User
from wakeful.database.files import By

AGENTS = 50 if IS_LONG else 8
FILES = 5_000 if IS_LONG else 1_000
MB = 1024 * 1024
COLUMNS = [{"name": "title", "type": "text"}]


async def run(node, agent, op, **args):
    return await node.services.data.run(By(agent=agent), op, **args)


async def make_table(node, agent):
    await run(node, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)


async def add(node, agent, *titles):
    await run(node, agent, "insert", table="tasks", rows=[{"title": title} for title in titles])


async def titles(node, agent):
    found = await run(node, agent, "query", sql="SELECT title FROM tasks ORDER BY title")
    return [row[0] for row in found["rows"]]


async def count_rows(node, agent):
    return (await run(node, agent, "query", sql="SELECT count(*) FROM tasks"))["rows"][0][0]


async def bring(node, agent):
    await node.services.data.files.bring_files(agent.id)
    folder = node.services.workspace_of(agent.id)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def save(node, agent):
    await node.services.data.files.save_files(agent.id)


# ── A full disk ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_node_whose_disk_is_full_says_so_and_the_others_go_on(harness):
    agent = await harness.add_agent(toolsets=("database",))
    await make_table(harness.node, agent)
    await add(harness.node, agent, "a")
    with small_disk("3m") as disk:
        there = harness.another_node(data_dir=disk / "data")
        async with there.opened():
            assert await titles(there, agent) == ["a"]
            (await bring(there, agent) / "there.txt").write_bytes(b"there")
            await save(there, agent)
            await asyncio.to_thread(fill, disk / "ballast")
            (await bring(harness.node, agent) / "here.bin").write_bytes(os.urandom(MB))
            await save(harness.node, agent)
            await add(harness.node, agent, *(f"b{number}-{'x' * 1_000}" for number in range(90)))
            for act in (titles(there, agent), add(there, agent, "c"), bring(there, agent)):
                with pytest.raises(DiskFull):
                    await act
            assert await count_rows(harness.node, agent) == 91
            (disk / "ballast").unlink()
            assert await count_rows(there, agent) == 91
            await add(there, agent, "c")
            assert sorted(path.name for path in (await bring(there, agent)).iterdir()) == ["here.bin", "there.txt"]
            assert (await run(there, agent, "verify"))["intact"]
        assert await count_rows(harness.node, agent) == 92


# ── Sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_many_small_files_arrive(harness, there):
    folder = await bring(harness.node, harness.agent)
    for number in range(FILES):
        path = folder / str(number % 20) / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(str(number))
    began = time.monotonic()
    await save(harness.node, harness.agent)
    saved = time.monotonic()
    found = await bring(there, harness.agent)
    print(f"{FILES} files: saved in {saved - began:.2f} s, brought in {time.monotonic() - saved:.2f} s")
    assert {path.name: path.read_text() for path in found.glob("*/*")} == {f"{n}.txt": str(n) for n in range(FILES)}


@pytest.mark.skipif(not IS_LONG, reason="long")
async def test_a_file_of_100_mb_arrives(harness, there):
    content = os.urandom(MB) * 100
    (await bring(harness.node, harness.agent) / "large.bin").write_bytes(content)
    began = time.monotonic()
    await save(harness.node, harness.agent)
    saved = time.monotonic()
    found = await bring(there, harness.agent)
    print(f"100 MiB: saved in {saved - began:.2f} s, brought in {time.monotonic() - saved:.2f} s")
    assert (found / "large.bin").read_bytes() == content


@pytest.mark.skipif(not IS_LONG, reason="long")
async def test_a_database_of_100_mib_is_written_brought_rekeyed_and_verified(harness, there, postgres):
    agent = await harness.add_agent(toolsets=("database",), database_mb=400)
    await make_table(harness.node, agent)
    began = time.monotonic()
    while await postgres.fetchval("SELECT page_count FROM homes WHERE agent_id = $1", agent.id) * 4096 < 100 * MB:
        await add(harness.node, agent, *(os.urandom(10_000).hex() for _ in range(100)))
    rows = (await run(harness.node, agent, "query", sql="SELECT count(*) FROM tasks"))["rows"]
    written = time.monotonic()
    assert (await run(there, agent, "query", sql="SELECT count(*) FROM tasks"))["rows"] == rows
    brought = time.monotonic()
    await add(there, agent, "one more")
    added = time.monotonic()
    await there.services.data.files.rotate_key(By(agent=agent))
    rekeyed = time.monotonic()
    print(
        f"100 MiB: written in {written - began:.1f} s, brought in {brought - written:.2f} s, a row added in "
        f"{added - brought:.2f} s, a new key in {rekeyed - added:.1f} s"
    )
    assert (await run(harness.node, agent, "verify"))["intact"]
    assert (await run(harness.node, agent, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[rows[0][0] + 1]]


# ── Files that change while they are read ───────────────────────────────────────────────────────────────────────────


async def test_a_file_that_changes_while_it_is_read_holds_nothing_up_and_arrives_when_it_rests(harness, there):
    folder = await bring(harness.node, harness.agent)
    growing, changing, is_over = folder / "growing.log", folder / "changing.bin", threading.Event()

    def keep_writing():
        for number in count():
            if is_over.is_set():
                return
            with growing.open("ab") as file:
                file.write(b"%d\n" % number)
            changing.write_bytes(b"%d" % (number % 10) * 200_000)

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for number in range(5):
            (folder / f"{number}.txt").write_text(str(number))
            await asyncio.wait_for(save(harness.node, harness.agent), 20)
    finally:
        is_over.set()
        writer.join()
    found = await bring(there, harness.agent)
    assert sorted(path.name for path in found.glob("*.txt")) == [f"{number}.txt" for number in range(5)]
    await save(harness.node, harness.agent)
    for path in (growing, changing):
        assert (await bring(there, harness.agent) / path.name).read_bytes() == path.read_bytes()


# ── Many ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_three_nodes_write_to_many_agents_at_once(harness, there, tmp_path):
    third = harness.another_node(data_dir=tmp_path / "third")
    async with third.opened():
        nodes = {"here": harness.node, "there": there, "third": third}
        agents = [await harness.add_agent(toolsets=("database",)) for _ in range(AGENTS)]
        await asyncio.gather(*(make_table(harness.node, agent) for agent in agents))

        async def write(name, node, agent):
            await add(node, agent, name)

            async def act():
                (node.services.workspace_of(agent.id)).mkdir(parents=True, exist_ok=True)
                with (node.services.workspace_of(agent.id) / "log.txt").open("a") as file:
                    file.write(f"{name}\n")

            await node.services.data.files.change_files(agent.id, None, act)

        await asyncio.gather(*(write(name, node, agent) for agent in agents for name, node in nodes.items()))
        for agent in agents:
            for node in nodes.values():
                assert await titles(node, agent) == sorted(nodes)
                assert sorted((await bring(node, agent) / "log.txt").read_text().split()) == sorted(nodes)
            assert (await run(third, agent, "verify"))["intact"]


async def test_nodes_whose_clocks_differ_by_minutes_write_to_one_home(swept_postgres_url, tmp_path):
    """They use PostgreSQL's clock, so no node takes a home from one that is busy with it, or waits for minutes."""
    nodes = []

    def build_off_by(name, minutes):
        class Off(ServerClock):
            def read_wall_clock(self):
                return super().read_wall_clock() + minutes * MINUTE

        settings = {"data_dir": tmp_path / name, "config_dir": tmp_path / "config", "database_url": swept_postgres_url}
        clock = Off(lambda: node.store.read_clock())
        node = build(Settings.model_validate(settings), clock=clock)
        return node

    behind, ahead = build_off_by("behind", -5), build_off_by("ahead", 7)
    async with behind.opened(), ahead.opened():
        nodes = [behind, ahead]
        assert abs(behind.clock.now() - ahead.clock.now()) < SECOND
        user = await behind.agents.add_user(User(id="ada", name="Ada", role="owner", created_at=NOON))
        agent = await behind.agents.make(user, "One", {"toolsets": ("database",)})
        await make_table(behind, agent)
        began = time.monotonic()
        lines = [f"{number}" for number in range(10)]

        async def append(node, line):
            async def act():
                folder = node.services.workspace_of(agent.id)
                folder.mkdir(parents=True, exist_ok=True)
                with (folder / "log.txt").open("a") as file:
                    file.write(f"{line}\n")

            await add(node, agent, line)
            await node.services.data.files.change_files(agent.id, None, act)

        await asyncio.gather(*(append(nodes[int(line) % 2], line) for line in lines))
        assert time.monotonic() - began < 30
        for node in nodes:
            assert await titles(node, agent) == lines
            assert sorted((await bring(node, agent) / "log.txt").read_text().split()) == lines
