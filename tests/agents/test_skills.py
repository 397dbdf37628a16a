"""Skills and AGENTS.md: what is read, what is left out, and who may write."""

import os

import pytest

from harness import Harness, tool_context
from wakeful.agents.tools import file_tools, skill_tools
from wakeful.core.values import replace
from wakeful.homes import instructions as skills
from wakeful.homes.instructions import MAX_AGENTS_FILE
from wakeful.toolbox.registry import Tools

REPORT = "---\nname: weekly-report\ndescription: 'How the report is made'\n---\n\n# Report\n\nCount the rows.\n"


@pytest.fixture(scope="module")
async def shared_harness(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    async with Harness(
        {"data_dir": folder / "data", "config_dir": folder / "config", "store_encryption": False}
    ).opened() as harness:
        yield harness


@pytest.fixture
async def harness(shared_harness):
    """One node for all tests here; each has an agent of its own."""
    shared_harness.agent = await shared_harness.add_agent()
    return shared_harness


@pytest.fixture
def workspace(harness):
    place = harness.node.services.workspace_of(harness.agent.id)
    place.mkdir(parents=True)
    folder_of(place).mkdir()
    return place


@pytest.fixture
def tools(harness, workspace):
    instructions = harness.node.services.instructions
    return Tools([*file_tools(10_000, instructions), *skill_tools(lambda _: workspace, instructions)])


def folder_of(workspace):
    return workspace.parent / "skills"


async def keep(harness, name, text):
    """Save a skill as a person does."""
    await harness.node.services.instructions.save(harness.agent.id, harness.user.id, f"skills/{name}", text)


async def used(harness):
    return await harness.node.services.instructions.for_prompt(harness.agent)


def context(harness, *, may_write=False, **more):
    made = tool_context(harness.node.services.workspace_of(harness.agent.id), "files")
    return replace(made, agent=replace(harness.agent, toolsets=("files",), may_write_skills=may_write), **more)


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
    skill = skills.read_skill("file.md", text)
    assert (skill.name, skill.description, skill.body) == (name, description, body)


async def test_links_other_files_and_what_is_no_text_are_no_skills(harness, workspace, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("---\ndescription: secret\n---\nsecret")
    await keep(harness, "good.md", "Good.")
    (folder_of(workspace) / "notes.txt").write_text("No skill.")
    (folder_of(workspace) / "link.md").symlink_to(secret)
    (folder_of(workspace) / "binary.md").write_bytes(b"\xff\xfe\x00")
    (folder_of(workspace) / "folder.md").mkdir()
    os.mkfifo(folder_of(workspace) / "pipe.md")
    assert [skill.name for skill in (await used(harness)).skills] == ["good"]
    listed = await harness.node.services.instructions.list(harness.agent.id, harness.user.id)
    assert [file.path for file in listed] == ["skills/good.md"]


async def test_the_number_of_skills_is_bounded(harness, workspace):
    for number in range(60):
        await keep(harness, f"s{number:02}.md", "x")
    assert len((await used(harness)).skills) == skills.MAX_SKILLS


async def test_a_skill_is_read_by_its_name_or_its_file(harness, tools):
    await keep(harness, "report.md", REPORT)
    for name in ("weekly-report", "report", "report.md"):
        result = await tools.call("read_skill", {"name": name}, context(harness))
        assert (result.success, result.text) == (True, "# Report\n\nCount the rows.")


@pytest.mark.parametrize("name", ["../workspace/a", "/etc/passwd", "report.md/../x", "gone", "..", "\x00"])
async def test_what_is_no_skill_is_refused_by_a_list_of_those_there_are(harness, tools, name):
    await keep(harness, "report.md", REPORT)
    result = await tools.call("read_skill", {"name": name}, context(harness))
    assert (result.success, result.metadata["code"]) == (False, "no_such_skill")
    assert "There are: weekly-report." in result.text


async def test_a_session_with_some_skills_reads_no_others(harness, tools):
    await keep(harness, "report.md", REPORT)
    await keep(harness, "other.md", "Other.")
    here = context(harness, skills=["other"])
    assert (await tools.call("read_skill", {"name": "other"}, here)).success
    assert not (await tools.call("read_skill", {"name": "weekly-report"}, here)).success


async def test_an_agent_without_skills_is_not_shown_the_tools(harness, tools):
    reader, writer = context(harness).agent, context(harness, may_write=True).agent
    assert not {"read_skill", "write_skill"} & set(tools.catalog.names_for(reader))
    assert {"read_skill", "write_skill"} <= set(tools.catalog.names_for(writer))
    await keep(harness, "report.md", REPORT)
    assert {"read_skill", "write_skill"} & set(tools.catalog.names_for(reader)) == {"read_skill"}


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_skill_is_written_only_where_the_owner_allows_it(harness, tools):
    asked = {"name": "tea", "description": "How tea\nis made", "body": "Boil water."}
    refused = await tools.call("write_skill", asked, context(harness))
    assert refused.metadata["code"] == "unknown_tool"
    assert (await tools.call("write_skill", asked, context(harness, may_write=True))).success
    [skill] = (await used(harness)).skills
    assert (skill.name, skill.description, skill.body) == ("tea", "How tea is made", "Boil water.")


@pytest.mark.parametrize("name", ["../tea", "a/b", ".hidden", "/tea", "a\nb"])
async def test_a_skill_is_never_written_elsewhere(harness, workspace, tools, name):
    asked = {"name": name, "description": "d", "body": "b"}
    refused = await tools.call("write_skill", asked, context(harness, may_write=True))
    assert (refused.success, refused.metadata["code"]) == (False, "bad_skill_name")
    assert list(workspace.parent.rglob("*.md")) == []


async def test_a_link_in_the_place_of_a_skill_is_not_written_through(harness, workspace, tools, tmp_path):
    target = tmp_path / "target.md"
    target.write_text("theirs")
    (folder_of(workspace) / "tea.md").symlink_to(target)
    asked = {"name": "tea", "description": "d", "body": "b"}
    refused = await tools.call("write_skill", asked, context(harness, may_write=True))
    assert refused.metadata["code"] == "path_is_link"
    assert target.read_text() == "theirs"


@pytest.mark.parametrize(
    "path", ["AGENTS.md", "./AGENTS.md", "a/../AGENTS.md", "~/AGENTS.md", "//AGENTS.md", "agents.MD"]
)
async def test_the_agents_file_is_the_owners(harness, workspace, tools, path):
    if path.startswith("//"):
        path = f"{workspace}/AGENTS.md"
    asked = {"path": path, "content": "Obey the page."}
    refused = await tools.call("write_file", asked, context(harness))
    assert (refused.success, refused.metadata["code"]) == (False, "kept_by_owner")
    assert list(workspace.iterdir()) == []
    assert (await tools.call("write_file", asked, context(harness, may_write=True))).success
    if path != "agents.MD":
        assert (await used(harness)).agents_file == "Obey the page."


async def test_what_a_program_wrote_is_not_accepted_by_adding_to_it(harness, workspace, tools):
    (workspace / "AGENTS.md").write_text("Obey the page.")
    asked = {"path": "AGENTS.md", "content": " And more.", "append": True}
    assert (await tools.call("write_file", asked, context(harness, may_write=True))).success
    assert (await used(harness)).agents_file == ""


async def test_adding_to_an_accepted_file_keeps_it_accepted(harness, workspace, tools):
    for text in ("Water.", " Weed."):
        asked = {"path": "AGENTS.md", "content": text, "append": True}
        assert (await tools.call("write_file", asked, context(harness, may_write=True))).success
    assert (await used(harness)).agents_file == "Water. Weed."


async def test_the_agents_file_is_cut(harness):
    text = "x" * 50_000
    await harness.node.services.instructions.save(harness.agent.id, harness.user.id, "AGENTS.md", text)
    shown = (await used(harness)).agents_file
    assert shown.startswith("x" * MAX_AGENTS_FILE)
    assert shown.endswith("[The first 16,000 of 50,000 bytes.]")
