"""Files that an earlier version has left in data directories are moved into PostgreSQL at the start of their nodes."""

import asyncio
import shutil

import pytest

from harness import Harness
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.records import NotMoved
from wakeful.database.files import By

COLUMNS = [{"name": "title", "type": "text"}]


class Earlier:
    """Makes folders of an agent as an embedded store has them, which are those of earlier versions."""

    def __init__(self, tmp_path, agent, user):
        self._tmp_path, self._agent, self._user = tmp_path, agent, user

    async def make(self, place, titles, files=None, *, base=None):
        """Write a database and files below a data directory; it may go on from that of another."""
        settings = {"data_dir": self._tmp_path / f"earlier-{place}", "config_dir": self._tmp_path / "config"}
        harness = Harness(settings)
        harness.user = self._user
        agent_folder = settings["data_dir"] / "agents" / self._agent.id
        node = build(Settings.model_validate(settings), executor=harness.executor, clock=harness.clock)
        async with node.opened():
            await node.agents.add_user(self._user)
            await node.agents.add(self._agent)
            if base is not None:
                shutil.copytree(base, agent_folder)
            by = By(agent=self._agent)
            if base is None:
                await node.services.data.run(by, "create_table", name="tasks", purpose="x", columns=COLUMNS)
            for title in titles:
                await node.services.data.run(by, "insert", table="tasks", rows=[{"title": title}])
            for path, content in (files or {}).items():
                file = node.services.workspace_of(self._agent.id) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        target = self._tmp_path / place / "agents" / self._agent.id
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(agent_folder, target)
        return target


@pytest.fixture
async def agent(harness):
    return await harness.add_agent(toolsets=("database",))


@pytest.fixture
def earlier(harness, agent, tmp_path):
    return Earlier(tmp_path, agent, harness.user)


async def titles(node, agent):
    found = await node.services.data.run(By(agent=agent), "query", sql="SELECT title FROM tasks ORDER BY title")
    return [row[0] for row in found["rows"]]


async def files_of(node, agent):
    await node.services.data.files.bring_files(agent.id)
    folder = node.services.workspace_of(agent.id)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_databases_and_files_move_and_are_then_on_every_node(harness, earlier, agent, tmp_path):
    old = await earlier.make("one", ["a", "b"], {"notes.txt": b"notes", "deep/x.bin": b"x"})
    (old / "workspace" / "link").symlink_to("notes.txt")
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert not old.exists()
    assert await titles(harness.node, agent) == ["a", "b"]
    found = await files_of(harness.node, agent)
    assert found == {"notes.txt": b"notes", "deep/x.bin": b"x", "link": b"notes"}
    assert (await harness.node.services.data.run(By(agent=agent), "verify"))["intact"]


@pytest.mark.parametrize("linked", [".", "workspace", "skills"])
async def test_a_folder_that_is_a_link_is_neither_moved_nor_deleted(harness, earlier, agent, tmp_path, caplog, linked):
    old = await earlier.make("one", ["a"], {"notes.txt": b"notes"})
    (old / "skills").mkdir(exist_ok=True)
    outside = (old / linked).rename(tmp_path / "outside")
    (outside / "secret.txt").write_text("secret")
    (old / linked).symlink_to(outside)
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert (old / linked).is_symlink()
    assert (outside / "secret.txt").read_text() == "secret"
    [said] = [record for record in caplog.records if record.message == "files of an agent not moved"]
    assert "Put the directory itself" in str(said.exc_info[1])


async def test_of_two_different_databases_the_longer_is_used_and_the_other_kept(harness, earlier, agent, tmp_path):
    await earlier.make("one", ["a"], {"notes.txt": b"one", "only-one.txt": b"1"})
    await earlier.make("two", ["b", "c", "d"], {"notes.txt": b"two", "only-two.txt": b"2"})
    for place in ("one", "two"):
        async with harness.another_node(data_dir=tmp_path / place).opened():
            pass
    assert await titles(harness.node, agent) == ["b", "c", "d"]
    [notice] = [each for each in await harness.notices() if each.code == "memory_forked"]
    assert "longer" in notice.body
    found = await files_of(harness.node, agent)
    [exported] = [content for path, content in found.items() if path.startswith("other-database-")]
    assert b"a" in exported
    assert b"b" not in exported.split(b"\r\n")[1]
    assert {path: found[path] for path in ("notes.txt", "only-one.txt", "only-two.txt")} == {
        "notes.txt": b"one",
        "only-one.txt": b"1",
        "only-two.txt": b"2",
    }
    assert b"two" in found.values()  # the other notes.txt, under another name
    folder = harness.node.services.workspace_of(agent.id).parent
    await titles(harness.node, agent)
    assert {path.name for path in folder.glob("quarantine/*/*")} >= {"db.sqlite", "db.key"}


async def test_a_database_that_goes_on_from_that_of_the_home_replaces_it_without_a_fuss(
    harness, earlier, agent, tmp_path
):
    first = await earlier.make("one", ["a"])
    copy = shutil.copytree(first, tmp_path / "copy")
    await earlier.make("two", ["b"], base=copy)
    for place in ("one", "two"):
        async with harness.another_node(data_dir=tmp_path / place).opened():
            pass
    assert await titles(harness.node, agent) == ["a", "b"]
    assert [each for each in await harness.notices() if each.code == "memory_forked"] == []


async def test_two_nodes_on_one_directory_move_an_agent_once(harness, earlier, agent, tmp_path):
    await earlier.make("one", ["a"])
    nodes = [harness.another_node(data_dir=tmp_path / "one") for _ in range(2)]

    async def enter(node):
        async with node.opened():
            return await titles(node, agent)

    assert await asyncio.gather(*map(enter, nodes)) == [["a"], ["a"]]
    assert [each for each in await harness.notices() if each.code == "memory_forked"] == []


async def test_what_cannot_be_moved_is_left_and_nobody_starts_anew(harness, earlier, agent, tmp_path):
    old = await earlier.make("one", ["a"])
    key = (old / "db.key").read_text()
    (old / "db.key").write_text("nonsense")
    node = harness.another_node(data_dir=tmp_path / "one")
    async with node.opened():
        with pytest.raises(NotMoved, match="could not be moved"):
            await titles(node, agent)
    assert (old / "db.sqlite").exists()
    (old / "db.key").write_text(key)
    async with harness.another_node(data_dir=tmp_path / "one").opened():
        pass
    assert await titles(harness.node, agent) == ["a"]
