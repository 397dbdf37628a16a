"""The toolset `shell`: commands in the agent's workspace, each confined to it, with a clean environment and an end.

A command runs as the server's own user, so it is confined by Landlock or bubblewrap: it reaches the workspace, a
temporary directory and the system's software. Where neither works, commands are refused.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from wakeful.domain.agents.confinement import Confinement
from wakeful.domain.errors import Invalid, Unavailable
from wakeful.domain.types import Agent
from wakeful.service.agents.workspace import make_private_directory
from wakeful.tools.confinement.guard import guarded
from wakeful.tools.confinement.probe import find_confinement
from wakeful.tools.confinement.rules import SEARCH_PATH, ConfinementRules, make_rules
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult

MAX_TIMEOUT = 600  # seconds
MAX_KEPT = 32_000  # bytes of the output's beginning, and as many of its end
LAST_WORDS = 0.5  # seconds to read what is left in the pipe after the command ended
PATIENCE = 1.0  # seconds for its guard to end everything


class CommandUnusable(Invalid):
    code = "command_unusable"

    def __init__(self) -> None:
        super().__init__("The command has a NUL character in it, so it was not run. Write it as '\\0' for printf.")


class ShellRefused(Unavailable):
    code = "shell_not_confined"

    def __init__(self) -> None:
        super().__init__(
            "The command was not run, because this server cannot confine commands, and one that is not confined could "
            "read the server's keys. Its owner has been told what to do about it. Do without commands until then."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """What commands may reach besides the workspace, and what happens where they cannot be confined."""

    confinement: Callable[[], Confinement] = find_confinement
    hidden: tuple[Path, ...] = ()  # the server's own directories
    read: tuple[Path, ...] = ()
    has_network: bool = False
    is_unconfined: bool = False  # the owner wants commands to run without limits


TellRefused = Callable[[Agent, Confinement], Awaitable[None]]


class RunCommand(Arguments):
    command: str = Field(min_length=1, max_length=32_000, description="What to run, as given to /bin/sh -c.")
    timeout_seconds: float = Field(default=60, gt=0, le=MAX_TIMEOUT, description="After so many seconds it is killed.")


def shell_tools(
    settings: ShellSettings | None = None, tell_refused: TellRefused | None = None, search_path: str = SEARCH_PATH
) -> list[Tool]:
    """Make the tools of the toolset `shell`. `tell_refused` tells people that commands are refused, and why.

    A command that ends with an exit code other than 0 is a success of the tool: `grep` that finds nothing has answered.
    The code is the first thing the model reads, and is in the metadata. Only a command that had to be killed failed.
    """

    shell = settings or ShellSettings()

    async def act(context: ToolContext, asked: RunCommand) -> ToolResult:
        if "\0" in asked.command:
            raise CommandUnusable
        await asyncio.to_thread(make_private_directory, context.workspace)
        confinement = await asyncio.to_thread(shell.confinement)
        if confinement.level == "none" and not shell.is_unconfined:
            if tell_refused is not None:
                await tell_refused(context.agent, confinement)
            raise ShellRefused
        rules = await asyncio.to_thread(_rules, shell, confinement, context.workspace)
        ended = await _run(asked.command, context.workspace, rules, search_path, asked.timeout_seconds)
        return _tell(ended, asked)

    return [
        Tool(
            name="run_command",
            toolset="shell",
            description=(
                "Run a command with /bin/sh in your workspace and read its output and exit code. There is no input, "
                "and what it leaves in the background is killed when it ends. " + _describe(shell)
            ),
            arguments=RunCommand,
            act=act,
            makes_files=True,
        )
    ]


def _describe(shell: ShellSettings) -> str:
    if shell.is_unconfined:
        return "It reaches whatever the server's user does."
    network = "has" if shell.has_network else "has no"
    return f"It can write in the workspace and $TMPDIR, read the system's software, and {network} network."


def _rules(shell: ShellSettings, confinement: Confinement, workspace: Path) -> ConfinementRules | None:
    if shell.is_unconfined or confinement.level == "none":
        return None
    return make_rules(
        confinement.level, read=shell.read, write=[workspace], network=shell.has_network, hidden=shell.hidden
    )


@dataclass(slots=True)
class _Output:
    """The beginning and the end of what a command says, however much it says."""

    size: int = 0
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        room = MAX_KEPT - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        if len(self.tail) > 4 * MAX_KEPT:  # not at each piece: moving the rest costs more than keeping it
            del self.tail[:-MAX_KEPT]

    def text(self) -> str:
        tail = self.tail[-MAX_KEPT:]
        missing = self.size - len(self.head) - len(tail)
        if not missing:
            return (self.head + tail).decode(errors="replace")
        left_out = f"\n[{missing:,} bytes left out here; redirect the output to a file to have it all]\n"
        return self.head.decode(errors="replace") + left_out + tail.decode(errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    output: _Output
    exit_code: int | None  # None: killed at the time-out


async def _run(
    command: str, workspace: Path, rules: ConfinementRules | None, search_path: str, seconds: float
) -> _Ended:
    """Run a command to its end. Whatever ends it – itself, the time-out, a cancelled call, the end of the server – all
    that it started is dead.
    """
    output = _Output()
    with _draining(output) as (writing, drained):
        try:
            process = _start(command, workspace, rules, search_path, writing)
        finally:
            os.close(writing)  # the command has its own; ours would keep the pipe from ending
        is_late = False
        try:
            async with asyncio.timeout(seconds):
                await _exit_of(process.pid)
        except TimeoutError:
            is_late = True
        finally:
            await asyncio.shield(_end(process))
        # Where the guard could not find everything, a process may hold the pipe open for ever; nobody waits for it.
        with suppress(TimeoutError):
            await asyncio.wait_for(drained.wait(), LAST_WORDS)
    return _Ended(output=output, exit_code=None if is_late else process.returncode)


def _start(
    command: str, workspace: Path, rules: ConfinementRules | None, search_path: str, output: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        guarded("/bin/sh", "-c", command, rules=rules),
        cwd=workspace,
        env={"PATH": search_path, "HOME": str(workspace), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


async def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the guard end what is left, and then its whole group, if it does not."""
    # Nobody reaps it meanwhile: until then its number cannot be given to a stranger.
    os.kill(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(_exit_of(process.pid), PATIENCE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.to_thread(process.wait)


async def _exit_of(pid: int) -> None:
    """Wait until a process has ended, without reaping it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


@contextmanager
def _draining(output: _Output) -> Generator[tuple[int, asyncio.Event]]:
    """Make a pipe that is read all the time, so that a command never waits for us; the caller closes its other end."""
    loop = asyncio.get_running_loop()
    drained = asyncio.Event()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def read() -> None:
        with suppress(BlockingIOError):
            piece = os.read(reading, 65_536)
            output.add(piece)
            if not piece:
                loop.remove_reader(reading)
                drained.set()

    loop.add_reader(reading, read)
    try:
        yield writing, drained
    finally:
        loop.remove_reader(reading)
        os.close(reading)


def _tell(ended: _Ended, asked: RunCommand) -> ToolResult:
    output = ended.output.text().rstrip("\n") or "(no output)"
    metadata = {"exit_code": ended.exit_code, "output_bytes": ended.output.size}
    if ended.exit_code is None:
        how = (
            f"Killed after {asked.timeout_seconds:g} seconds, with all it had started. Give a longer timeout_seconds "
            f"(up to {MAX_TIMEOUT}), or do less at a time. Its output until then:"
        )
        return ToolResult(text=f"{how}\n{output}", success=False, metadata=metadata | {"code": "command_timed_out"})
    return ToolResult(text=f"{_how(ended.exit_code)}\n{output}", metadata=metadata)


def _how(exit_code: int) -> str:
    return f"Exit code {exit_code}." if exit_code >= 0 else f"Killed by signal {-exit_code}."
