"""When a server is killed, its MCP server processes and their children end too."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from confined import ALL_LEVELS, processes_with_home
from harness import eventually

pytestmark = pytest.mark.crash

TESTS = Path(__file__).parents[1]
NODE = """
import asyncio, json, sys
from pathlib import Path
from confined import at_level
from wakeful.mcp.rules import McpServer
from wakeful.mcp.servers import Confining, McpServers
from harness import tool_context

async def main(script, home, level):
    read = (sys.prefix, sys.base_prefix, str(Path(script).parent))
    command = (sys.executable, script, "--stubborn")
    calc = McpServer(name="calc", command=command, read=read, is_limited=level != "none")
    servers = McpServers({"calc": calc}, Path(home), confining=Confining(confinement=at_level(level)))
    assert await servers.prepare(["calc"]) == []
    [who] = [tool for tool in servers.tools_of(["calc"]) if tool.name == "calc_who"]
    told = await who.act(tool_context(Path(home)), who.arguments())
    [told_json] = [line for line in told.text.splitlines() if line.startswith("{")]
    print(told_json, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("level", ALL_LEVELS)
async def test_programs_end_when_the_server_is_killed(tmp_path, level):
    node = await asyncio.create_subprocess_exec(
        sys.executable, "-c", NODE, str(TESTS / "support/mcp_server.py"), str(tmp_path), level,
        stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": str(TESTS / "support")},
    )  # fmt: skip
    assert node.stdout is not None
    async with asyncio.timeout(60):
        assert set(json.loads(await node.stdout.readline())) == {"pid", "child"}

    async def are_all_there():  # the guard, the program and its child
        return len(processes_with_home(tmp_path / "calc")) >= 3

    await eventually(are_all_there)
    node.send_signal(signal.SIGKILL)
    await node.wait()

    async def are_gone():
        return not processes_with_home(tmp_path / "calc")

    await eventually(are_gone, seconds=20)
