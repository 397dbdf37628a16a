"""PostgreSQL away while a home is saved: nothing is acknowledged that is not there, and nothing is written twice."""

import asyncio
from dataclasses import replace

import pytest

from fixtures.stores import IS_LONG
from harness import Harness, tool_context
from postgres_line import Line
from wakeful.core.errors import StoreUnavailable
from wakeful.database.files import By
from wakeful.database.tools import database_tools
from wakeful.store.errors import insist
from wakeful.toolbox.registry import Tools

AWAY = 60.0 if IS_LONG else 1.0  # seconds
COLUMNS = [{"name": "title", "type": "text"}]


@pytest.fixture
async def line(swept_postgres_url):
    return Line(swept_postgres_url)


@pytest.fixture
async def harness(line, tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path}
    async with line.laid() as url, Harness(settings | {"database_url": url}).opened() as harness:
        yield harness


@pytest.fixture
async def agent(harness):
    agent = await harness.add_agent(toolsets=("database",))
    await run(harness, agent, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    return agent


async def run(harness, agent, op, **args):
    return await harness.node.services.data.run(By(agent=agent), op, **args)


async def titles(harness, agent):
    return [row[0] for row in (await run(harness, agent, "query", sql="SELECT title FROM tasks"))["rows"]]


@pytest.mark.parametrize("size", [10, 300_000], ids=["one statement", "many pages"])
async def test_a_save_whose_answer_is_lost_is_done_once(harness, line, agent, size):
    line.cut_at(b'"version":1' if size == 10 else b"COMMIT")  # the key file, among the parameters of a save
    await run(harness, agent, "insert", table="tasks", rows=[{"title": "x" * size} for _ in range(4)])
    assert line.cuts == 1
    assert (await run(harness, agent, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[4]]
    assert (await run(harness, agent, "verify"))["intact"]


async def test_a_write_without_postgresql_is_refused_and_leaves_nothing(harness, line, agent):
    line.go_down()
    with pytest.raises(StoreUnavailable):
        await run(harness, agent, "insert", table="tasks", rows=[{"title": "a"}])
    line.come_back()
    assert await titles(harness, agent) == []


async def test_postgresql_that_goes_away_in_the_middle_of_a_write_leaves_nothing_half_done(
    harness, line, agent, monkeypatch
):
    engine = harness.node.services.data.files.engine
    ask = engine.ask

    async def answer_and_cut(request, *more):
        answer = await ask(request, *more)
        if request.op == "insert":
            line.go_down()
        return answer

    monkeypatch.setattr(engine, "ask", answer_and_cut)
    with pytest.raises(StoreUnavailable):
        await run(harness, agent, "insert", table="tasks", rows=[{"title": "a"}])
    monkeypatch.undo()
    line.come_back()
    assert await titles(harness, agent) == []
    await run(harness, agent, "insert", table="tasks", rows=[{"title": "b"}])
    assert await titles(harness, agent) == ["b"]


@pytest.mark.parametrize(("sqlstate", "code"), [("53100", "store_full"), ("25006", "store_read_only")])
async def test_a_postgresql_that_takes_no_writes_is_named_and_nothing_of_them_is_seen(harness, agent, sqlstate, code):
    files, folder = harness.node.services.data.files, harness.node.services.workspace_of(agent.id)

    async def write():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "a.txt").write_text("a")

    for table in ("home_pages", "home_files"):
        await harness.sql(
            f"CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{sqlstate}'; END $$;"
            f" CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_{table}()"
        )
    try:
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as refused:
                await run(harness, agent, "insert", table="tasks", rows=[{"title": "a"}])
            assert refused.value.code == code
            with pytest.raises(StoreUnavailable) as refused:
                await files.change_files(agent.id, None, write)
            assert refused.value.code == code
            assert await titles(harness, agent) == []
            await files.bring_files(agent.id)
            assert list(folder.iterdir()) == []
    finally:
        for table in ("home_pages", "home_files"):
            await harness.sql(f"DROP TRIGGER refuse ON {table}; DROP FUNCTION refuse_{table}()")
    await run(harness, agent, "insert", table="tasks", rows=[{"title": "b"}])
    await files.change_files(agent.id, None, write)
    assert await titles(harness, agent) == ["b"]
    assert (folder / "a.txt").read_text() == "a"


async def test_a_file_that_could_not_be_saved_is_put_back_and_written_once_if_repeated(harness, line, agent):
    """PostgreSQL goes away between the write here and its save; the tool is called again later."""
    files, path = harness.node.services.data.files, harness.node.services.workspace_of(agent.id) / "log.txt"

    async def append(*, cut=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("line\n")
        if cut:
            line.go_down()

    await files.change_files(agent.id, None, append)
    with pytest.raises(StoreUnavailable):
        await files.change_files(agent.id, None, lambda: append(cut=True))
    line.come_back()
    await files.change_files(agent.id, None, append)
    await files.bring_files(agent.id)
    assert path.read_text() == "line\nline\n"


async def test_a_file_of_a_program_stays_when_something_else_could_not_be_saved(harness, line, agent):
    files, folder = harness.node.services.data.files, harness.node.services.workspace_of(agent.id)
    await files.bring_files(agent.id)

    async def append():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log.txt").write_text("line\n")
        (folder / "output.txt").write_text("of the program")  # meanwhile
        line.go_down()

    with files.program(agent.id):
        with pytest.raises(StoreUnavailable):
            await files.change_files(agent.id, None, append, "workspace/log.txt")
        line.come_back()
        await files.save_files(agent.id)
    await files.bring_files(agent.id)
    assert {path.name for path in folder.iterdir()} == {"output.txt"}


async def test_after_a_minute_without_postgresql_a_run_goes_on_and_has_done_everything_once(harness, line, agent):
    """Tools of a run wait for it; what people ask for meanwhile is refused."""
    files, folder = harness.node.services.data.files, harness.node.services.workspace_of(agent.id)

    async def append():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "log.txt").open("a") as file:
            file.write("line\n")

    await run(harness, agent, "insert", table="tasks", rows=[{"title": "before"}])
    line.go_down()
    waiting = [
        asyncio.create_task(insist(lambda: files.change_files(agent.id, None, append, "workspace/log.txt"))),
        asyncio.create_task(insist(lambda: run(harness, agent, "insert", table="tasks", rows=[{"title": "during"}]))),
    ]
    give_up_at = asyncio.get_running_loop().time() + AWAY
    while asyncio.get_running_loop().time() < give_up_at:
        with pytest.raises(StoreUnavailable, match="PostgreSQL"):
            await run(harness, agent, "insert", table="tasks", rows=[{"title": "refused"}])
        await asyncio.sleep(0.2)
    assert not any(each.done() for each in waiting)
    line.come_back()
    await asyncio.wait_for(asyncio.gather(*waiting), 30)
    await files.bring_files(agent.id)
    assert (folder / "log.txt").read_text() == "line\n"
    assert sorted(await titles(harness, agent)) == ["before", "during"]
    assert (await run(harness, agent, "verify"))["intact"]


async def test_a_file_whose_save_never_arrived_is_written_by_a_second_try(harness, line, agent):
    """The connection breaks before the server has the commit, so that it is unknown at first whether it was done."""
    files, path = harness.node.services.data.files, harness.node.services.workspace_of(agent.id) / "log.txt"

    async def append():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("line\n")

    line.lose_at(b"COMMIT")
    await files.change_files(agent.id, None, append, "workspace/log.txt")
    assert line.cuts == 1
    await files.bring_files(agent.id)
    assert path.read_text() == "line\n"
    assert "workspace/log.txt" in await harness.node.store.read(lambda tx: tx.homes.files(agent.id, ["workspace"]))


async def test_a_tool_call_waits_for_postgresql_and_is_done_once(harness, line, agent, tmp_path):
    """As the loop calls it: a tool that has changed nothing says so by raising, and is called again."""
    tools = Tools(database_tools(harness.node.services.data, 1_000_000))
    context = replace(tool_context(tmp_path, "database"), agent=agent)
    arguments = {"table": "tasks", "rows": [{"title": "a"}]}
    line.go_down()
    with pytest.raises(StoreUnavailable):
        await tools.call("db_insert", arguments, context)
    line.come_back()
    called = await insist(lambda: tools.call("db_insert", arguments, context))
    assert called.success, called.text
    assert await titles(harness, agent) == ["a"]


async def test_a_write_that_is_done_is_not_called_failed_because_its_notice_was_not_saved(harness, agent, caplog):
    agent = await harness.node.agents.change(agent.id, harness.user, lambda _: {"database_mb": 1})
    await harness.sql(
        "CREATE FUNCTION refuse_notice() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;"
        " CREATE TRIGGER refuse BEFORE INSERT ON notifications FOR EACH ROW EXECUTE FUNCTION refuse_notice()"
    )
    try:
        done = 0
        while "notice not saved" not in caplog.text:
            await run(harness, agent, "insert", table="tasks", rows=[{"title": "x" * 20_000}])
            done += 1
    finally:
        await harness.sql("DROP TRIGGER refuse ON notifications; DROP FUNCTION refuse_notice()")
    assert (await run(harness, agent, "query", sql="SELECT count(*) FROM tasks"))["rows"] == [[done]]
