"""A real MCP server for tests: `python tests/mcp_server.py [--many N] [--http PORT] [--hang | --die]`.

Its tools behave as those of good and of bad servers do.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer

server = MCPServer("for tests")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def refuse(why: str) -> str:
    """Raise an error."""
    raise ValueError(f"refused: {why}")


@server.tool()
def flood(characters: int) -> str:
    """Return a long text."""
    return "x" * characters


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def die() -> str:
    """End the process in the middle of a call."""
    os._exit(3)


@server.tool()
def environment() -> list[str]:
    """Return the names of its environment variables, and its secret."""
    return [*sorted(os.environ), os.environ.get("SECRET", "")]


@server.tool()
def read(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


@server.tool()
def write(path: str) -> str:
    """Write a file."""
    Path(path).write_text("written")
    return path


@server.tool()
def connect(port: int) -> str:
    """Connect to a port of this machine."""
    with socket.create_connection(("127.0.0.1", port), 5):
        return "connected"


@server.tool()
def who() -> dict[str, Any]:
    """Return its process id, and that of a child that leaves the process group and never exits by itself."""
    child = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    return {"pid": os.getpid(), "child": child.pid}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--http", type=int)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--die", action="store_true")
    parser.add_argument("--started")
    asked = parser.parse_args()
    if asked.started:
        with Path(asked.started).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if asked.die:
        sys.exit("no key")
    if asked.hang:
        time.sleep(3600)
    for number in range(asked.many):
        server.add_tool(lambda: "one of many", name=f"tool_{number}", description="One of many.")
    if asked.http is None:
        server.run("stdio")
        if asked.stubborn:  # although its standard input was closed
            time.sleep(3600)
    else:
        server.run("streamable-http", host="127.0.0.1", port=asked.http, json_response=asked.json)


if __name__ == "__main__":
    main()
