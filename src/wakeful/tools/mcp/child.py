"""The stdio transport to an MCP server: a child process under our guard, with an environment of its own.

The SDK's `mcp.client.stdio` is not used. It takes a line of any length and copies all of it for each chunk (2.3.0: a
line of 4 MB takes 0.3 s of CPU, 16 MB 2.4 s, 64 MB is not read within 10 s), logs lines that it cannot parse with their
content, passes on USER, SHELL and LOGNAME of this process, and does not report the exit code of the child.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from wakeful.domain.agents.mcp_servers import McpServer, hide_secrets
from wakeful.service.agents.workspace import make_private_directory
from wakeful.tools.confinement.guard import guarded
from wakeful.tools.confinement.rules import SEARCH_PATH, ConfinementRules
from wakeful.tools.mcp.connection import Streams

log = logging.getLogger(__name__)

MAX_LINE = 4 * 1024 * 1024  # bytes of one message
MAX_STDERR = 4_000  # characters of its standard error that are logged, the last ones
STEP_SECONDS = 2.0  # for each step of stopping it


@asynccontextmanager
async def started(
    server: McpServer, home: Path, rules: ConfinementRules | None, on_end: Callable[[], None], stderr: bytearray
) -> AsyncGenerator[Streams]:
    """Start the program, confined unless `rules` is None; stop it and its children at the end of the block.

    `on_end` is called at the end of its output, before pending calls fail. `stderr` gets the end of its stderr.
    """
    await asyncio.to_thread(make_private_directory, home)
    process = await asyncio.create_subprocess_exec(
        *guarded(*server.command, rules=rules),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": SEARCH_PATH, "HOME": str(home), "LANG": "C.UTF-8", **server.env},
        cwd=home,
        start_new_session=True,
        limit=MAX_LINE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process.stdout, to_us, server.name, on_end)),
        asyncio.create_task(_write(process.stdin, from_us)),
    ]
    reading = asyncio.create_task(_keep_end(process.stderr, stderr))
    try:
        yield incoming, outgoing
    finally:
        with anyio.CancelScope(shield=True):  # every wait in it is bounded
            await _end(process, tasks)
            for stream in (to_us, incoming, outgoing, from_us):
                stream.close()
            await _log_end(server, process, reading, stderr)


async def _read(
    stdout: asyncio.StreamReader,
    to_us: ObjectSendStream[SessionMessage | Exception],
    name: str,
    on_end: Callable[[], None],
) -> None:
    """Pass messages from stdout to the session until stdout ends; then close the stream, so pending calls fail."""
    async with to_us:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session was closed
            while line := await _line(stdout, name):
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    log.debug("MCP server sent an invalid message", extra={"server": name, "bytes": len(line)})
                    continue
                await to_us.send(SessionMessage(message))
        on_end()


async def _line(stdout: asyncio.StreamReader, name: str) -> bytes:
    try:
        return await stdout.readline()
    except ValueError:
        log.warning("MCP server sent a message too long", extra={"server": name, "most": MAX_LINE})
        return b""


async def _write(stdin: asyncio.StreamWriter, from_us: ObjectReceiveStream[SessionMessage]) -> None:
    async with from_us:
        with contextlib.suppress(ConnectionError):  # it has exited, which `_read` reports
            async for each in from_us:
                stdin.write(each.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()


async def _keep_end(output: asyncio.StreamReader, kept: bytearray) -> None:
    while piece := await output.read(65_536):
        kept += piece
        del kept[: -2 * MAX_STDERR]  # more than is logged, where a secret at the beginning could have lost its own


async def _end(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """Close stdin, as the protocol requires; then SIGTERM to the guard; then SIGKILL to its process group."""
    assert process.stdin is not None
    assert process.stdout is not None
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    process.stdin.close()
    # `wait` returns only after the pipe is read to its end.
    draining = asyncio.create_task(_keep_end(process.stdout, bytearray()))
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just exited
                # Not process.send_signal, which reads the exit status before asyncio does, and asyncio warns of it.
                (os.killpg if number == signal.SIGKILL else os.kill)(process.pid, number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STEP_SECONDS)
            break
    draining.cancel()
    await asyncio.gather(draining, return_exceptions=True)


async def _log_end(
    server: McpServer, process: asyncio.subprocess.Process, reading: "asyncio.Task[None]", stderr: bytearray
) -> None:
    """Log the exit code, and the end of its standard error without its secrets."""
    await asyncio.wait([reading], timeout=STEP_SECONDS)
    reading.cancel()
    wrote = hide_secrets(stderr.decode(errors="replace"), server)[-MAX_STDERR:]
    log.info("MCP server ended", extra={"server": server.name, "exit_code": process.returncode, "last_words": wrote})
