"""Files of agents on nodes with separate disks: workspace, uploads and skills are in PostgreSQL."""

import asyncio
import os
import stat

import pytest

from harness import MINUTE, doing, run_tidy_jobs
from wakeful.core.records import HomeTaken
from wakeful.homes.files import scan_files


def workspace(node, agent):
    return node.services.workspace_of(agent.id)


async def bring(node, agent):
    await node.services.data.files.bring_files(agent.id)
    return workspace(node, agent)


async def save(node, agent):
    await node.services.data.files.save_files(agent.id)


async def write(node, agent, files):
    """Write files into a workspace as a tool does, and save them."""
    folder = await bring(node, agent)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    await save(node, agent)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_files_travel_with_their_modes_links_and_empty_folders(harness, there):
    agent, here = harness.agent, harness.node
    await write(here, agent, {"a.txt": b"a", "deep/b.bin": bytes(3_000_000), "empty.txt": b""})
    folder = workspace(here, agent)
    (folder / "run.sh").write_text("true")
    (folder / "run.sh").chmod(0o755)
    (folder / "hollow").mkdir()
    (folder / "link").symlink_to("deep/b.bin")
    await save(here, agent)
    found = await bring(there, agent)
    assert contents(found) == contents(folder)
    assert stat.S_IMODE((found / "run.sh").stat().st_mode) == 0o755
    assert (found / "hollow").is_dir()
    assert (found / "link").readlink() == (folder / "link").readlink()


async def test_what_is_deleted_changed_or_turned_into_something_else_arrives(harness, there):
    agent = harness.agent
    await write(harness.node, agent, {"a.txt": b"a", "b.txt": b"b", "c/d.txt": b"d", "e": b"e"})
    folder = await bring(there, agent)
    (folder / "a.txt").unlink()
    (folder / "b.txt").write_bytes(b"changed")
    (folder / "c/d.txt").unlink()
    (folder / "c").rmdir()
    (folder / "c").write_bytes(b"a file now")
    (folder / "e").unlink()
    (folder / "e").mkdir()
    (folder / "e/f.txt").write_bytes(b"f")
    await save(there, agent)
    assert contents(await bring(harness.node, agent)) == {"b.txt": b"changed", "c": b"a file now", "e/f.txt": b"f"}


async def test_files_that_both_nodes_wrote_are_both_there(harness, there):
    agent = harness.agent
    await write(harness.node, agent, {"old.txt": b"old"})
    (await bring(there, agent) / "there.txt").write_bytes(b"there")  # not saved yet
    await write(harness.node, agent, {"here.txt": b"here"})
    await save(there, agent)
    expected = {"old.txt": b"old", "here.txt": b"here", "there.txt": b"there"}
    assert contents(await bring(harness.node, agent)) == contents(await bring(there, agent)) == expected


async def test_contents_in_postgresql_are_encrypted_and_go_with_their_files(harness, postgres):
    agent = harness.agent
    await write(harness.node, agent, {"a.txt": b"a secret of Ada" * 9})
    [row] = await postgres.fetch("SELECT bytes, digest FROM home_blobs")
    assert b"secret" not in row["bytes"]
    await write(harness.node, agent, {"a.txt": b"another"})
    assert [each["digest"] for each in await postgres.fetch("SELECT digest FROM home_blobs")] != [row["digest"]]
    assert await postgres.fetchval("SELECT count(*) FROM home_blobs") == 1


async def test_what_cannot_travel_is_left_out_and_named(harness, there, caplog):
    agent = harness.agent
    await write(harness.node, agent, {"a.txt": b"a"})
    folder = workspace(harness.node, agent)
    os.mkfifo(folder / "pipe")
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "up").symlink_to("../../../../etc/passwd")
    await save(harness.node, agent)
    assert sorted(path.name for path in (await bring(there, agent)).iterdir()) == ["a.txt"]
    [said] = [record for record in caplog.records if record.message == "files left out of a home"]
    assert sorted(said.paths) == ["workspace/out", "workspace/pipe", "workspace/up"]
    assert (folder / "out").is_symlink()  # and it stays here


async def test_a_folder_that_became_a_link_is_not_followed(harness, there, tmp_path):
    """A program of the agent swaps a folder for a link out of the workspace."""
    agent = harness.agent
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_bytes(b"secret")
    await write(harness.node, agent, {"folder/a.txt": b"a"})
    folder = await bring(there, agent) / "folder"
    (folder / "a.txt").unlink()
    folder.rmdir()
    folder.symlink_to(outside)
    await write(harness.node, agent, {"folder/b.txt": b"b"})
    await bring(there, agent)
    assert contents(outside) == {"secret.txt": b"secret"}
    await save(there, agent)
    assert b"secret" not in contents(await bring(harness.node, agent)).values()


async def test_a_run_that_another_node_has_taken_over_saves_no_files(harness, there, postgres):
    wake = await harness.book(at=harness.clock.now() + MINUTE)
    harness.clock.advance(MINUTE)
    refused = []

    async def write_late(run):
        await write(harness.node, harness.agent, {"a.txt": b"in time"})
        await postgres.execute("UPDATE runs SET owner = 'another', fence = fence + 1")
        await postgres.execute("UPDATE homes SET holder = 'another', fence = fence + 1")
        (workspace(harness.node, harness.agent) / "a.txt").write_bytes(b"too late")
        try:
            await harness.node.services.data.files.save_files(harness.agent.id, run.id)
        except HomeTaken as error:
            refused.append(error)

    harness.executor.by_wake[wake.id] = doing(write_late)
    await harness.turn()
    assert refused
    assert contents(await bring(there, harness.agent)) == {"a.txt": b"in time"}
    await write(harness.node, harness.agent, {"b.txt": b"b"})  # later, for a person
    assert contents(await bring(there, harness.agent)) == {"a.txt": b"in time", "b.txt": b"b"}


# ── Two nodes at once ───────────────────────────────────────────────────────────────────────────────────────────────


async def append(node, agent, line, path="log.txt"):
    """Append a line as `write_file` does."""

    async def act():
        file = workspace(node, agent) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_bytes() if file.exists() else b""
        await asyncio.sleep(0.01)
        file.write_bytes(before + line)

    await node.services.data.files.change_files(agent.id, None, act)


async def test_lines_that_two_nodes_append_to_one_file_are_all_there(harness, there):
    nodes = {b"here": harness.node, b"there": there}
    lines = sorted(b"%s %d\n" % (name, number) for name in nodes for number in range(8))
    await asyncio.gather(*[append(nodes[line.split()[0]], harness.agent, line) for line in lines])
    for node in nodes.values():
        assert sorted((await bring(node, harness.agent) / "log.txt").read_bytes().splitlines(keepends=True)) == lines


async def test_programs_that_change_one_file_on_two_nodes_leave_both_versions_and_a_notice(harness, there):
    agent = harness.agent
    await write(harness.node, agent, {"notes.md": b"old", "same.md": b"old", "gone.md": b"old"})
    folder = await bring(there, agent)
    await write(harness.node, agent, {"notes.md": b"here", "same.md": b"both", "gone.md": b"here"})
    (folder / "notes.md").write_bytes(b"there")
    (folder / "same.md").write_bytes(b"both")
    (folder / "gone.md").unlink()
    conflicts = await there.services.data.files.save_files(agent.id)
    assert conflicts == {"workspace/notes.md": "workspace/notes.conflict-1.md"}
    expected = {"notes.md": b"here", "notes.conflict-1.md": b"there", "same.md": b"both", "gone.md": b"here"}
    assert contents(await bring(harness.node, agent)) == contents(await bring(there, agent)) == expected
    [notice] = [each for each in await harness.notices() if each.code == "files_in_conflict"]
    assert "notes.md (also as notes.conflict-1.md)" in notice.body


async def test_a_damaged_file_is_left_out_with_a_notice_and_the_others_are_there(harness, there, postgres):
    agent = harness.agent
    await write(harness.node, agent, {"a.txt": b"a", "b.txt": b"b" * 3_000_000, "c.txt": b"c"})
    for path, change in (("a.txt", "bytes = set_byte(bytes, 20, get_byte(bytes, 20) # 255)"), ("b.txt", None)):
        of_file = f"digest = (SELECT digest FROM home_files WHERE path = 'workspace/{path}')"
        do = f"UPDATE home_blobs SET {change} WHERE" if change else "DELETE FROM home_blobs WHERE piece = 1 AND"
        await postgres.execute(f"{do} {of_file}")
    for _ in range(2):
        assert contents(await bring(there, agent)) == {"c.txt": b"c"}
        await write(harness.node, agent, {"d.txt": b"d"})
        await write(harness.node, agent, {"d.txt": b""})
        (workspace(harness.node, agent) / "d.txt").unlink()
        await save(harness.node, agent)
    [notice] = [each for each in await harness.notices() if each.code == "files_damaged"]
    assert "workspace/a.txt, workspace/b.txt" in notice.body
    await write(there, agent, {"a.txt": b"again"})
    assert contents(await bring(harness.node, agent))["a.txt"] == b"again"


async def test_uploads_are_on_every_node_and_go_with_their_session(harness, there, postgres):
    session = await harness.session()
    [kept] = await harness.node.services.uploads.keep(session.id, harness.user.id, [("plan.txt", b"plan")])
    assert not kept.path.startswith("/")
    assert (await bring(there, harness.agent) / kept.path).read_bytes() == b"plan"
    await there.sessions.delete(session.id, harness.user.id)
    assert not (await bring(harness.node, harness.agent) / kept.path).exists()
    assert await postgres.fetchval("SELECT count(*) FROM home_blobs") == 0


async def test_skills_and_instructions_that_a_person_saves_are_read_on_every_node(harness, there):
    agent, user = harness.agent, harness.user
    await harness.node.services.instructions.save(agent.id, user.id, "skills/tea.md", "# Tea\nMake tea.")
    await there.services.instructions.save(agent.id, user.id, "AGENTS.md", "Be kind.")
    for node in (harness.node, there):
        files = await node.services.instructions.list(agent.id, user.id)
        assert sorted((file.path, file.is_accepted) for file in files) == [("AGENTS.md", True), ("skills/tea.md", True)]


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_deleted_agent_leaves_no_files(harness, there, postgres, monkeypatch, is_told):
    if not is_told:  # the other node gets no news of it, as while its connection is lost
        monkeypatch.setattr(there.services.data.files, "_drop_soon", lambda *_: None)
    agent = await harness.add_agent()
    await write(harness.node, agent, {"a.txt": b"a"})
    folder = await bring(there, agent)
    await harness.node.agents.delete(agent.id, harness.user.id)
    for table in ("home_files", "home_blobs"):
        assert await postgres.fetchval(f"SELECT count(*) FROM {table}") == 0
    assert await postgres.fetchval("SELECT files_key FROM homes") is None
    await run_tidy_jobs(there)
    assert contents(folder) == {}


async def test_a_row_that_would_make_the_workspace_a_link_is_not_brought(harness, there, postgres):
    """As a restored backup could have it."""
    agent = harness.agent
    await write(harness.node, agent, {"a.txt": b"a"})
    (workspace(harness.node, agent) / "link").symlink_to("a.txt")
    await save(harness.node, agent)
    await postgres.execute("DELETE FROM home_files WHERE kind = 'file'")
    await postgres.execute("UPDATE home_files SET path = 'workspace' WHERE kind = 'link'")
    assert not (await bring(there, agent)).is_symlink()


@pytest.mark.parametrize("target", ["a", "../workspace/a", "./x/../a"])
def test_links_inside_their_folder_are_kept(tmp_path, target):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "link").symlink_to(target)
    assert list(scan_files(tmp_path, ["workspace"]).found) == ["workspace/link"]
