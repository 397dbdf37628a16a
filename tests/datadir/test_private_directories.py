"""Directories of the server: closed to other users of the machine, whatever the umask says."""

import os

import pytest

from harness import Harness, tool_context
from wakeful.agents.tools import file_tools
from wakeful.sandbox.shell import shell_tools
from wakeful.toolbox.registry import Tools

pytestmark = pytest.mark.both_stores


@pytest.fixture
def open_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder):
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_dir()}


async def test_new_directories_are_private(backend_settings, open_umask):
    async with Harness(backend_settings).opened() as harness:
        context = tool_context(harness.node.services.workspace_of(harness.agent.id), "files")
        tools = Tools([*file_tools(10_000), *shell_tools()])
        shell = tool_context(harness.node.services.workspace_of("another"), "shell")
        assert (await tools.call("run_command", {"command": "true"}, shell)).success
        assert (await tools.call("write_file", {"path": "a/b/c.txt", "content": "x"}, context)).success
        found = modes(backend_settings["data_dir"])
    assert any(path.endswith(f"/{harness.agent.id}/workspace/a/b") for path in found)
    assert set(found.values()) == {0o700}
    assert backend_settings["data_dir"].stat().st_mode & 0o777 == 0o700


async def test_directories_of_an_earlier_version_are_closed_at_the_next_start(backend_settings, open_umask, tmp_path):
    data = backend_settings["data_dir"]
    async with Harness(backend_settings).opened() as harness:
        pass
    (data / "agents" / "someone" / "workspace").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (data / "agents" / "someone" / "skills").symlink_to(elsewhere)
    async with harness.another_node().opened():
        pass
    assert set(modes(data / "agents").values()) - {elsewhere.stat().st_mode & 0o777} == {0o700}
    assert elsewhere.stat().st_mode & 0o777 == 0o755  # a link is not followed
