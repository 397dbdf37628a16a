"""PostgreSQL away while a home is saved: nothing is acknowledged that is not there, and nothing is written twice."""

import pytest

from harness import Harness
from postgres_line import Line
from wakeful.domain.errors import StoreUnavailable
from wakeful.service.agents.database import By

COLUMNS = [{"name": "title", "type": "text"}]


@pytest.fixture
async def line(swept_postgres_url):
    return Line(swept_postgres_url)


@pytest.fixture
async def harness(line, tmp_path):
    async with line.laid() as url:
        harness = Harness({"data_dir": tmp_path, "config_dir": tmp_path, "database_url": url})
        async with harness.node.opened():
            await harness.settle_in()
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
