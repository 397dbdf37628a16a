"""A server that is killed takes the programs it had started along, and what those had started."""

import asyncio
import json
import signal
import sys
from pathlib import Path

from world import eventually

TESTS = Path(__file__).parents[1]
NODE = """
import asyncio, json, sys
from pathlib import Path
from wakeful.domain.mcp_servers import McpServer
from wakeful.tools.outside.servers import McpServers
from world import tool_context

async def main(script, home):
    servers = McpServers({"calc": McpServer(name="calc", command=(sys.executable, script, "--stubborn"))}, Path(home))
    assert await servers.prepare(["calc"]) == []
    [who] = [tool for tool in servers.tools_of(["calc"]) if tool.name == "calc_who"]
    told = await who.act(tool_context(Path(home)), who.arguments())
    print(json.dumps(json.loads(told.text.partition("\\n")[2])), flush=True)
    await asyncio.sleep(3600)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_programs_end_when_the_server_is_killed(tmp_path):
    node = await asyncio.create_subprocess_exec(
        sys.executable, "-c", NODE, str(TESTS / "mcp_server.py"), str(tmp_path),
        stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": str(TESTS)},
    )  # fmt: skip
    assert node.stdout is not None
    async with asyncio.timeout(60):
        pids = json.loads(await node.stdout.readline())
    assert all(is_alive(pid) for pid in pids.values())
    node.send_signal(signal.SIGKILL)
    await node.wait()

    async def are_gone():
        return not any(is_alive(pid) for pid in pids.values())

    await eventually(are_gone, seconds=20)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
