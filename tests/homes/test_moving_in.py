"""The files of agents go into PostgreSQL at the first start after `wakeful move`, and are kept beside the store."""

import asyncio
import shutil

import pytest

from harness import Harness
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.database.files import By
from wakeful.database.moving_in import FilesNotMoved
from wakeful.datadir.files import MOVED_AGENTS, MOVED_FILE

COLUMNS = [{"name": "title", "type": "text"}]


class Embedded:
    """Makes folders of an agent as an embedded store has them, in data directories whose store was moved."""

    def __init__(self, tmp_path, agent, user):
        self._tmp_path, self._agent, self._user = tmp_path, agent, user

    async def make(self, place, titles, files=None):
        """Write a database and files below a data directory."""
        settings = {"data_dir": self._tmp_path / f"embedded-{place}", "config_dir": self._tmp_path / "config"}
        harness = Harness(settings)
        harness.user = self._user
        node = build(Settings.model_validate(settings), executor=harness.executor, clock=harness.clock)
        async with node.opened():
            await node.agents.add_user(self._user)
            await node.agents.add(self._agent)
            by = By(agent=self._agent)
            await node.services.data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
            for title in titles:
                await node.services.data.run(by, "insert", table="tasks", rows=[{"title": title}])
            for path, content in (files or {}).items():
                file = node.services.workspace_of(self._agent.id) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        target = self._tmp_path / place / "agents" / self._agent.id
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(settings["data_dir"] / "agents" / self._agent.id, target)
        shutil.copy(settings["data_dir"] / "wakeful.sqlite", self._tmp_path / place / MOVED_FILE)
        return target


@pytest.fixture
async def agent(harness):
    return await harness.add_agent(toolsets=("database",))


@pytest.fixture
def embedded(harness, agent, tmp_path):
    return Embedded(tmp_path, agent, harness.user)


async def titles(node, agent):
    found = await node.services.data.run(By(agent=agent), "query", sql="SELECT title FROM tasks ORDER BY title")
    return [row[0] for row in found["rows"]]


async def files_of(node, agent):
    await node.services.data.files.bring_files(agent.id)
    folder = node.services.workspace_of(agent.id)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_databases_and_files_move_and_are_then_on_every_node(harness, embedded, agent, tmp_path):
    old = await embedded.make("one", ["a", "b"], {"notes.txt": b"notes", "deep/x.bin": b"x"})
    (old / "workspace" / "link").symlink_to("notes.txt")
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert not old.exists()
    assert (tmp_path / "one" / MOVED_AGENTS / agent.id / "workspace" / "notes.txt").read_bytes() == b"notes"
    assert await titles(harness.node, agent) == ["a", "b"]
    found = await files_of(harness.node, agent)
    assert found == {"notes.txt": b"notes", "deep/x.bin": b"x", "link": b"notes"}
    assert (await harness.node.services.data.run(By(agent=agent), "verify"))["intact"]


async def test_a_start_that_was_cut_off_goes_on(harness, embedded, agent, tmp_path):
    old = await embedded.make("one", ["a"], {"notes.txt": b"notes"})
    copy = shutil.copytree(old, tmp_path / "copy")
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    shutil.rmtree(tmp_path / "one" / MOVED_AGENTS)
    copy.rename(old)  # as if the server had been killed before it put the folder away
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert not old.exists()
    assert await titles(harness.node, agent) == ["a"]
    assert await files_of(harness.node, agent) == {"notes.txt": b"notes"}


async def test_files_in_a_directory_whose_store_was_not_moved_are_left_and_logged(
    harness, embedded, agent, tmp_path, caplog
):
    old = await embedded.make("one", ["a"])
    (tmp_path / "one" / MOVED_FILE).unlink()
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert (old / "db.sqlite").exists()
    [said] = [record for record in caplog.records if "are not used" in record.message]
    assert said.agent_ids == [agent.id]


@pytest.mark.parametrize("linked", [".", "workspace", "skills"])
async def test_a_folder_that_is_a_link_is_neither_moved_nor_deleted(harness, embedded, agent, tmp_path, linked):
    old = await embedded.make("one", ["a"], {"notes.txt": b"notes"})
    (old / "skills").mkdir(exist_ok=True)
    outside = (old / linked).rename(tmp_path / "outside")
    (outside / "secret.txt").write_text("secret")
    (old / linked).symlink_to(outside)
    with pytest.raises(FilesNotMoved, match=r"Put the directory itself.*wakeful move --undo"):
        async with harness.another_node(data_dir=tmp_path / "one").opened():
            pass
    assert (old / linked).is_symlink()
    assert (outside / "secret.txt").read_text() == "secret"


async def test_a_database_that_another_node_has_created_since_is_not_replaced(harness, embedded, agent, tmp_path):
    old = await embedded.make("one", ["a"], {"notes.txt": b"notes"})
    by = By(agent=agent)
    await harness.node.services.data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
    with pytest.raises(FilesNotMoved, match=f"wakeful db erase --agent {agent.id}"):
        async with harness.another_node(data_dir=tmp_path / "one").opened():
            pass
    assert await titles(harness.node, agent) == []
    await harness.node.services.data.files.erase(agent)
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert not old.exists()
    assert await titles(harness.node, agent) == ["a"]


async def test_two_nodes_on_one_directory_move_an_agent_once(harness, embedded, agent, tmp_path):
    await embedded.make("one", ["a"])
    nodes = [harness.another_node(data_dir=tmp_path / "one") for _ in range(2)]

    async def enter(node):
        async with node.opened():
            return await titles(node, agent)

    assert await asyncio.gather(*map(enter, nodes)) == [["a"], ["a"]]


async def test_a_server_does_not_start_without_files_that_cannot_be_moved(harness, embedded, agent, tmp_path):
    old = await embedded.make("one", ["a"])
    key = (old / "db.key").read_text()
    (old / "db.key").write_text("nonsense")
    with pytest.raises(FilesNotMoved, match=f"{agent.id}.*could not be moved from.*agents"):
        async with harness.another_node(data_dir=tmp_path / "one").opened():
            pass
    assert (old / "db.sqlite").exists()
    (old / "db.key").write_text(key)
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert await titles(harness.node, agent) == ["a"]
