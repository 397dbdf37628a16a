"""PostgreSQL goes back a few seconds under running nodes, as when a standby without the last changes is promoted."""

import asyncio
from dataclasses import replace

import pytest

from harness import Harness
from wakeful.core.records import Home, follows
from wakeful.database.files import By

TABLES = ("homes", "home_pages", "home_files", "home_blobs", "changelog_heads")
COLUMNS = [{"name": "title", "type": "text", "unique": True}]


@pytest.fixture
async def agent(harness):
    agent = await harness.add_agent(toolsets=("database", "files"))
    await run(harness.node, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    return agent


@pytest.fixture
async def rewind(postgres):
    """Remember what PostgreSQL has now, or go back to what was remembered last."""

    async def remember():
        for table in TABLES:
            await postgres.execute(f"DROP TABLE IF EXISTS kept.{table}; CREATE TABLE kept.{table} AS TABLE {table}")

    async def go_back():
        async with postgres.transaction():
            for table in reversed(TABLES):
                await postgres.execute(f"DELETE FROM {table}")
            for table in TABLES:
                await postgres.execute(f"INSERT INTO {table} SELECT * FROM kept.{table}")

    await postgres.execute("CREATE SCHEMA kept")
    yield remember, go_back
    await postgres.execute("DROP SCHEMA kept CASCADE")


async def run(node, agent, op, **args):
    return await node.services.data.run(By(agent=agent), op, **args)


async def add(node, agent, *titles):
    for title in titles:
        await run(node, agent, "insert", table="tasks", rows=[{"title": title}])


async def titles(node, agent):
    return [row[0] for row in (await run(node, agent, "query", sql="SELECT title FROM tasks ORDER BY title"))["rows"]]


async def notices(harness):
    return [each.code for each in await harness.node.store.read(lambda tx: tx.notices.of_user(harness.user.id))]


LOST = ("lost 1", "lost 2", "lost 3")


@pytest.mark.parametrize("new", [0, 1, 3, 7], ids=["nothing since", "fewer saves", "as many saves", "more saves"])
@pytest.mark.parametrize("first", ["read", "write"])
async def test_a_copy_of_what_postgres_has_lost_is_dropped_and_told(
    harness: Harness, there, agent, rewind, new, first, caplog
):
    here = harness.node
    remember, go_back = rewind
    await add(here, agent, "kept")
    assert await titles(there, agent) == ["kept"]
    await remember()
    await add(here, agent, *LOST)
    await go_back()
    added = [f"new {number}" for number in range(new)]
    await add(there, agent, *added)
    if first == "write":
        await add(here, agent, "written")
        added.append("written")
    assert await titles(here, agent) == ["kept", *added]
    assert await titles(there, agent) == ["kept", *added]
    await add(here, agent, "x")
    await add(there, agent, "y")
    assert await titles(here, agent) == await titles(there, agent) == sorted(["kept", *added, "x", "y"])
    for node in (here, there):
        await node.services.data.files.heads.aclose()
    for node in (here, there):
        assert (await run(node, agent, "verify"))["intact"]
    assert await notices(harness) == ["store_rewound"]
    assert "PostgreSQL was taken back" in caplog.text


@pytest.mark.parametrize("new", [0, 1, 2])
async def test_files_that_postgres_has_lost_are_gone_here_too(harness, there, agent, rewind, new):
    here = harness.node
    remember, go_back = rewind

    async def write(node, name, text):
        path = node.services.workspace_of(agent.id) / name

        async def act():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        await node.services.data.files.change_files(agent.id, None, act, f"workspace/{name}")

    async def read(node):
        await node.services.data.files.bring_files(agent.id)
        folder = node.services.workspace_of(agent.id)
        return {path.name: path.read_text() for path in folder.iterdir()}

    await write(here, "notes.txt", "kept")
    await remember()
    await write(here, "notes.txt", "lost")
    await write(here, "lost.txt", "lost")
    await go_back()
    for number in range(new):
        await write(there, "notes.txt", f"new {number}")
    expected = {"notes.txt": f"new {new - 1}" if new else "kept"}
    assert await read(here) == await read(there) == expected
    assert "store_rewound" in await notices(harness)


async def test_files_of_a_home_that_postgres_no_longer_has_are_gone_here_too(harness: Harness, rewind):
    agent, files = await harness.add_agent(toolsets=("files",)), harness.node.services.data.files
    remember, go_back = rewind
    path = harness.node.services.workspace_of(agent.id) / "lost.txt"

    async def write():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("lost")

    await remember()
    await files.change_files(agent.id, None, write, "workspace/lost.txt")
    await go_back()
    await files.bring_files(agent.id)
    assert not path.exists()
    assert await notices(harness) == ["store_rewound"]


async def test_a_write_that_postgres_goes_back_under_is_done_on_what_it_has_then(
    harness, there, agent, rewind, monkeypatch
):
    here = harness.node
    remember, go_back = rewind
    await add(here, agent, "kept")
    await remember()
    await add(here, agent, *LOST)
    engine = here.services.data.files.engine
    ask, has_gone_back = engine.ask, asyncio.Event()

    async def ask_later(request, *more):
        answered = await ask(request, *more)
        if not has_gone_back.is_set():
            has_gone_back.set()
            await go_back()
            await add(there, agent, "new 1", "new 2", "new 3")  # as many saves as were lost
        return answered

    monkeypatch.setattr(engine, "ask", ask_later)
    await add(here, agent, "written")
    assert has_gone_back.is_set()
    assert await titles(here, agent) == await titles(there, agent) == ["kept", "new 1", "new 2", "new 3", "written"]
    assert (await run(there, agent, "verify"))["intact"]


HOME = Home(
    agent_id="a", holder="n", fence=1, busy_until=None, seq=7, page_count=3, pages_seq=7, snapshots_seq=0, files_seq=0,
    database_key=None, files_key=None, last_save="7" * 16, saves=f"7:{'7' * 16} 6:{'6' * 16} 5:55555",
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        pytest.param({"seq": 0, "last_save": None}, "yes", id="had nothing"),
        pytest.param({}, "yes", id="the same"),
        pytest.param({"seq": 6, "last_save": "6" * 16}, "yes", id="one change behind"),
        pytest.param({"last_save": "f" * 16}, "no", id="another change of the same number"),
        pytest.param({"seq": 6, "last_save": "f" * 16}, "no", id="another change of an earlier number"),
        pytest.param({"seq": 8, "last_save": "8" * 16}, "no", id="ahead"),
        pytest.param({"seq": 5, "last_save": "5" * 16}, "unknown", id="cut off"),
        pytest.param({"seq": 2, "last_save": "2" * 16}, "unknown", id="too long ago"),
    ],
)
def test_whether_a_home_goes_on_from_what_was_read_before(before, expected):
    assert follows(HOME, replace(HOME, **before)) == expected


def test_a_home_that_is_gone_does_not_go_on():
    assert follows(None, HOME) == "no"
    assert follows(None, None) == "yes"
