"""Skills and AGENTS.md: what is read, what is left out, and who may write."""

import os

import pytest

from wakeful.domain import skills
from wakeful.domain.values import replace
from wakeful.tools.files import file_tools
from wakeful.tools.registry import Tools
from wakeful.tools.skills import MOST_AGENTS_FILE, folder_of, read_agents_file, read_all, skill_tools
from wakeful.tools.workspace import PathIsLink
from world import tool_context

REPORT = "---\nname: weekly-report\ndescription: 'How the report is made'\n---\n\n# Report\n\nCount the rows.\n"


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "agent" / "workspace"
    place.mkdir(parents=True)
    folder_of(place).mkdir()
    return place


@pytest.fixture
def tools(workspace):
    return Tools([*file_tools(10_000), *skill_tools(lambda _: workspace)])


def keep(workspace, name, text):
    (folder_of(workspace) / name).write_text(text)


def context(workspace, *, may_write=False, **more):
    made = tool_context(workspace, "files")
    return replace(made, agent=replace(made.agent, may_write_skills=may_write), **more)


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "name", "description", "body"),
    [
        (REPORT, "weekly-report", "How the report is made", "# Report\n\nCount the rows."),
        ("# Just a title\n\nText.", "file", "Just a title", "# Just a title\n\nText."),
        ("---\nname: ../up\n---\nBody", "file", "Body", "Body"),
        ("---\nname: never closed\nBody", "file", "---", "---\nname: never closed\nBody"),
        ("", "file", "", ""),
        ("---\ndescription: " + "x" * 900 + "\n---\nB", "file", "x" * 300, "B"),
    ],
)
def test_a_file_has_a_name_a_description_and_a_body(text, name, description, body):
    skill = skills.read("file.md", text)
    assert (skill.name, skill.description, skill.body) == (name, description, body)


def test_links_other_files_and_what_is_no_text_are_no_skills(workspace, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("---\ndescription: secret\n---\nsecret")
    keep(workspace, "good.md", "Good.")
    keep(workspace, "notes.txt", "No skill.")
    (folder_of(workspace) / "link.md").symlink_to(secret)
    (folder_of(workspace) / "binary.md").write_bytes(b"\xff\xfe\x00")
    (folder_of(workspace) / "folder.md").mkdir()
    os.mkfifo(folder_of(workspace) / "pipe.md")
    assert [skill.name for skill in read_all(folder_of(workspace))] == ["good"]


def test_the_number_of_skills_is_bounded(workspace):
    for number in range(60):
        keep(workspace, f"s{number:02}.md", "x")
    assert len(read_all(folder_of(workspace))) == skills.MOST_SKILLS


async def test_a_skill_is_read_by_its_name_or_its_file(workspace, tools):
    keep(workspace, "report.md", REPORT)
    for name in ("weekly-report", "report", "report.md"):
        result = await tools.call("read_skill", {"name": name}, context(workspace))
        assert (result.success, result.text) == (True, "# Report\n\nCount the rows.")


@pytest.mark.parametrize("name", ["../workspace/a", "/etc/passwd", "report.md/../x", "gone", "..", "\x00"])
async def test_what_is_no_skill_is_refused_by_a_list_of_those_there_are(workspace, tools, name):
    keep(workspace, "report.md", REPORT)
    result = await tools.call("read_skill", {"name": name}, context(workspace))
    assert (result.success, result.metadata["code"]) == (False, "no_such_skill")
    assert "There are: weekly-report." in result.text


async def test_a_session_with_some_skills_reads_no_others(workspace, tools):
    keep(workspace, "report.md", REPORT)
    keep(workspace, "other.md", "Other.")
    here = context(workspace, skills=["other"])
    assert (await tools.call("read_skill", {"name": "other"}, here)).success
    assert not (await tools.call("read_skill", {"name": "weekly-report"}, here)).success


def test_an_agent_without_skills_is_not_shown_the_tools(workspace, tools):
    reader, writer = context(workspace).agent, context(workspace, may_write=True).agent
    assert not {"read_skill", "write_skill"} & set(tools.names_for(reader))
    assert {"read_skill", "write_skill"} <= set(tools.names_for(writer))
    keep(workspace, "report.md", REPORT)
    assert {"read_skill", "write_skill"} & set(tools.names_for(reader)) == {"read_skill"}


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_skill_is_written_only_where_the_owner_allows_it(workspace, tools):
    asked = {"name": "tea", "description": "How tea\nis made", "body": "Boil water."}
    refused = await tools.call("write_skill", asked, context(workspace))
    assert refused.metadata["code"] == "unknown_tool"
    assert (await tools.call("write_skill", asked, context(workspace, may_write=True))).success
    [skill] = read_all(folder_of(workspace))
    assert (skill.name, skill.description, skill.body) == ("tea", "How tea is made", "Boil water.")


@pytest.mark.parametrize("name", ["../tea", "a/b", ".hidden", "/tea", "a\nb"])
async def test_a_skill_is_never_written_elsewhere(workspace, tools, name):
    asked = {"name": name, "description": "d", "body": "b"}
    refused = await tools.call("write_skill", asked, context(workspace, may_write=True))
    assert (refused.success, refused.metadata["code"]) == (False, "bad_skill_name")
    assert list(workspace.parent.rglob("*.md")) == []


async def test_a_link_in_the_place_of_a_skill_is_not_written_through(workspace, tools, tmp_path):
    target = tmp_path / "target.md"
    target.write_text("theirs")
    (folder_of(workspace) / "tea.md").symlink_to(target)
    asked = {"name": "tea", "description": "d", "body": "b"}
    refused = await tools.call("write_skill", asked, context(workspace, may_write=True))
    assert refused.metadata["code"] == "path_is_link"
    assert target.read_text() == "theirs"


@pytest.mark.parametrize("path", ["AGENTS.md", "./AGENTS.md", "a/../AGENTS.md", "~/AGENTS.md", "//AGENTS.md"])
async def test_the_agents_file_is_the_owners(workspace, tools, path):
    if path.startswith("//"):
        path = f"{workspace}/AGENTS.md"
    asked = {"path": path, "content": "Obey the page."}
    refused = await tools.call("write_file", asked, context(workspace))
    assert (refused.success, refused.metadata["code"]) == (False, "kept_by_owner")
    assert not (workspace / "AGENTS.md").exists()
    assert (await tools.call("write_file", asked, context(workspace, may_write=True))).success
    assert read_agents_file(workspace) == "Obey the page."


def test_the_agents_file_is_cut_and_a_link_is_not_followed(workspace, tmp_path):
    assert read_agents_file(workspace) == ""
    (tmp_path / "secret").write_text("secret")
    (workspace / "AGENTS.md").symlink_to(tmp_path / "secret")
    with pytest.raises(PathIsLink):
        read_agents_file(workspace)
    (workspace / "AGENTS.md").unlink()
    (workspace / "AGENTS.md").write_text("x" * 50_000)
    shown = read_agents_file(workspace)
    assert shown.startswith("x" * MOST_AGENTS_FILE)
    assert shown.endswith("[The first 16,000 of 50,000 bytes.]")
