"""The toolset `shell`: commands in the agent's workspace, confined to it, with a clean environment and a timeout.

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

from wakeful.core.errors import Invalid, Unavailable
from wakeful.core.labels import Confinement
from wakeful.core.types import Agent
from wakeful.homes.workspace import make_private_directory
from wakeful.notices.service import NoticeService
from wakeful.sandbox.guard import guarded
from wakeful.sandbox.rules import SEARCH_PATH, ConfinementRules, find_confinement, make_rules
from wakeful.toolbox.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool

MAX_TIMEOUT = 600  # seconds
MAX_KEPT = 32_000  # bytes of the output's beginning, and as many of its end
DRAIN_SECONDS = 0.5  # to read what is left in the pipe after the command ended
GUARD_SECONDS = 1.0  # for its guard to kill everything


class CommandUnusable(Invalid):
    code = "command_unusable"

    def __init__(self) -> None:
        super().__init__("The command has a NUL character in it, so it was not run. Write it as '\\0' for printf.")


class ShellRefused(Unavailable):
    code = "shell_not_confined"

    def __init__(self) -> None:
        super().__init__(
            "The command was not run, because this server cannot confine commands, and one that is not confined could "
            "read the server's keys. Its owner has got a notice with the remedy. Do without commands until then."
        )


class ShellUnsupported(Unavailable):
    code = "shell_not_supported"

    def __init__(self) -> None:
        super().__init__(
            "The command was not run: on this system, commands need Python 3.13 or newer. Do without commands."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellSettings:
    """Access of commands besides the workspace, and whether they may run unconfined."""

    confinement: Callable[[], Confinement] = find_confinement
    hidden: tuple[Path, ...] = ()  # the server's own directories
    read: tuple[Path, ...] = ()
    has_network: bool = False
    is_unconfined: bool = False  # the owner allows commands without confinement


OnRefused = Callable[[Agent, Confinement], Awaitable[None]]


class RunCommand(Arguments):
    command: str = Field(min_length=1, max_length=32_000, description="The command, as for /bin/sh -c.")
    timeout_seconds: float = Field(default=60, gt=0, le=MAX_TIMEOUT, description="After that it is killed.")


def make_tools(deps: ToolDeps) -> list[Tool]:
    return shell_tools(deps[ShellSettings], deps[NoticeService].add_shell_refused)


def shell_tools(settings: ShellSettings | None = None, on_refused: OnRefused | None = None) -> list[Tool]:
    """Return the tools of the toolset `shell`. `on_refused` notifies people that commands are refused, and why.

    An exit code other than 0 is a success of the tool: `grep` that finds nothing has answered. The text for the model
    begins with the code, and the metadata has it. Only a command that had to be killed has failed.
    """
    shell = settings or ShellSettings()

    async def run_command(context: ToolContext, asked: RunCommand) -> ToolResult:
        if "\0" in asked.command:
            raise CommandUnusable
        await asyncio.to_thread(make_private_directory, context.workspace)
        confinement = await asyncio.to_thread(shell.confinement)
        if confinement.level == "none" and not shell.is_unconfined:
            if on_refused is not None:
                await on_refused(context.agent, confinement)
            raise ShellRefused
        if not (hasattr(os, "pidfd_open") or hasattr(os, "waitid")):  # macOS has waitid since Python 3.13
            raise ShellUnsupported
        rules = await asyncio.to_thread(_rules, shell, confinement, context.workspace)
        output = _Output()
        code = await _run(asked.command, context.workspace, rules, asked.timeout_seconds, output)
        return _to_result(code, output, asked)

    text = (
        "Run a command with /bin/sh in your workspace and read its output and exit code. There is no input, and "
        "background processes are killed when it ends. " + _describe(shell)
    )
    return [tool("shell", run_command, RunCommand, text, makes_files=True)]


def _describe(shell: ShellSettings) -> str:
    if shell.is_unconfined:
        return "It can access whatever the server's user can."
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
    """The beginning and the end of a command's output, of any length."""

    size: int = 0
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        room = MAX_KEPT - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        if len(self.tail) > 4 * MAX_KEPT:  # not for each piece: moving the rest costs more than keeping it
            del self.tail[:-MAX_KEPT]

    def text(self) -> str:
        tail = self.tail[-MAX_KEPT:]
        missing = self.size - len(self.head) - len(tail)
        if not missing:
            return (self.head + tail).decode(errors="replace")
        left_out = f"\n[{missing:,} bytes left out here; redirect the output to a file to get all of it]\n"
        return self.head.decode(errors="replace") + left_out + tail.decode(errors="replace")


async def _run(
    command: str, workspace: Path, rules: ConfinementRules | None, seconds: float, output: _Output
) -> int | None:
    """Run a command, and return its exit code, or None if it was killed after its timeout.

    When it exits, times out or is cancelled, or the server exits, all its processes are killed.
    """
    with _draining(output) as (writing, drained):
        try:
            process = _start(command, workspace, rules, writing)
        finally:
            os.close(writing)  # the command has its own copy; ours would keep the pipe open
        is_late = False
        try:
            async with asyncio.timeout(seconds):
                await _exit_of(process.pid)
        except TimeoutError:
            is_late = True
        finally:
            await asyncio.shield(_end(process))
        # If the guard did not find every process, one may hold the pipe open for ever.
        with suppress(TimeoutError):
            await asyncio.wait_for(drained.wait(), DRAIN_SECONDS)
    return None if is_late else process.returncode


def _start(command: str, workspace: Path, rules: ConfinementRules | None, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        guarded("/bin/sh", "-c", command, rules=rules),
        cwd=workspace,
        env={"PATH": SEARCH_PATH, "HOME": str(workspace), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


async def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the guard kill what is left; if it does not end in time, kill its process group."""
    # It is not reaped before the end, so its process id cannot belong to another process.
    os.kill(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(_exit_of(process.pid), GUARD_SECONDS)
    with suppress(ProcessLookupError, PermissionError):  # no process is left, or none that we may kill
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.to_thread(process.wait)


async def _exit_of(pid: int) -> None:
    """Wait until a process has exited, without reaping it."""
    if not hasattr(os, "pidfd_open"):  # not Linux
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return
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
    """Create a pipe that is read continuously, so that a command never blocks; the caller closes the writing end."""
    loop = asyncio.get_running_loop()
    drained = asyncio.Event()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def read() -> None:
        with suppress(BlockingIOError):  # a spurious wakeup
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


def _to_result(code: int | None, output: _Output, asked: RunCommand) -> ToolResult:
    text = output.text().rstrip("\n") or "(no output)"
    metadata = {"exit_code": code, "output_bytes": output.size}
    if code is None:
        how = (
            f"Killed after {asked.timeout_seconds:g} seconds, with all its processes. Give a longer timeout_seconds "
            f"(up to {MAX_TIMEOUT}), or do less at a time. Its output until then:"
        )
        return ToolResult(text=f"{how}\n{text}", success=False, metadata=metadata | {"code": "command_timed_out"})
    how = f"Exit code {code}." if code >= 0 else f"Killed by signal {-code}."
    return ToolResult(text=f"{how}\n{text}", metadata=metadata)
