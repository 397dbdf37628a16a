"""A server as `wakeful serve` starts it, and a terminal in which commands are typed."""

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import forked_process
from live_server import Server

WAKEFUL = Path(sys.executable).with_name("wakeful")
CTRL_C, CTRL_D, ENTER = "\x03", "\x04", "\r"
_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")
_SECONDS = 30.0


class Terminal:
    """Runs commands with the environment of a server."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self._folder = folder

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return forked_process.run(arguments, self.environment, self._folder / "errors")

    def read(self, *arguments: str):
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextmanager
def a_terminal(folder: Path, **settings: str) -> Iterator[Terminal]:
    """Start a server with its data in a folder, and open a terminal beside it."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(folder / "data"), "WAKEFUL_CONFIG_DIR": str(folder / "config"), **settings}
    process = forked_process.Forked(("serve", "--port", "0"), plain | places, folder / "log")
    try:
        port = re.search(r"http://127.0.0.1:(\d+)", process.stdout.readline())
        assert port is not None, (folder / "log").read_text()
        yield Terminal(plain | places | {"WAKEFUL_PORT": port[1], "COLUMNS": "80"}, folder)
    finally:
        process.close()


class TypedCommand:
    """A running command and everything it has shown."""

    def __init__(self, arguments: tuple[str, ...], environment: Mapping[str, str], columns: int, rows: int) -> None:
        self._leader, follower = pty.openpty()
        termios.tcsetwinsize(follower, (rows, columns))
        self._process = subprocess.Popen(
            [WAKEFUL, *arguments], stdin=follower, stdout=follower, stderr=follower, env=dict(environment)
        )
        os.close(follower)
        os.set_blocking(self._leader, False)
        self.raw = ""
        self._read_to = 0  # in `shown`
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._leader, self._read)

    @property
    def shown(self) -> str:
        """What was shown, without codes for colours and the cursor."""
        return _CODES.sub("", self.raw)

    def type(self, keys: str) -> None:
        """Type, and read meanwhile: a terminal takes no input while the output that it echoes is not read."""
        left = keys.encode()
        while left:
            readable, writable, _ = select.select([self._leader], [self._leader], [], _SECONDS)
            assert readable or writable, "the terminal takes no input"
            if readable:
                self._read()
            if writable:
                left = left[os.write(self._leader, left) :]

    def enter(self, line: str) -> None:
        self.type(line + ENTER)

    @asynccontextmanager
    async def unread(self, keys: str, most: int) -> AsyncIterator[None]:
        """Type, and let what is printed pile up until there is this much: beyond 64 KB, it waits while it prints."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._leader)
        self.type(keys)
        async with asyncio.timeout(_SECONDS):
            while self._count_unread() < most:  # noqa: ASYNC110  (a terminal sends no event for it)
                await asyncio.sleep(0.01)
        yield
        loop.add_reader(self._leader, self._read)

    def _count_unread(self) -> int:
        return int.from_bytes(fcntl.ioctl(self._leader, termios.FIONREAD, bytes(4)), sys.byteorder)

    async def until(self, text: str) -> str:
        """Wait until a text appears after the last one that was waited for, and return what came before it."""
        try:
            async with asyncio.timeout(_SECONDS):
                while (found := self.shown.find(text, self._read_to)) < 0:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} did not come after:\n{self.shown[self._read_to :]}") from None
        passed = self.shown[self._read_to : found]
        self._read_to = found + len(text)
        return passed

    async def leave(self) -> int:
        """Press Ctrl-D and return the exit code."""
        self.type(CTRL_D)
        return await self.code()

    async def code(self) -> int:
        """Wait for its end and return the exit code."""
        return await asyncio.wait_for(asyncio.to_thread(self._process.wait), _SECONDS)

    def _read(self) -> None:
        try:
            self.raw += os.read(self._leader, 65536).decode(errors="replace")
        except BlockingIOError:  # it was read already
            return
        except OSError:  # the command has ended
            asyncio.get_running_loop().remove_reader(self._leader)
        self._news.set()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._leader)
        self._process.kill()
        self._process.wait()
        os.close(self._leader)


@asynccontextmanager
async def typed(
    *arguments: str, environment: Mapping[str, str], columns: int = 80, rows: int = 24
) -> AsyncIterator[TypedCommand]:
    """Start a command on a terminal."""
    command = TypedCommand(arguments, environment, columns, rows)
    try:
        yield command
    finally:
        command.close()


def environment(server: Server, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command that talks to a server of the tests."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_") and key != "NO_COLOR"}
    port = server.address.rpartition(":")[2]
    ours = {"WAKEFUL_PORT": port, "WAKEFUL_TOKEN": server.token, "WAKEFUL_CONFIG_DIR": str(folder), "TERM": "xterm"}
    return plain | ours | more


async def pipe(server: Server, folder: Path, *arguments: str, given: str = "") -> tuple[int | None, str, str]:
    """Run a command with its input and output in pipes."""
    process = await asyncio.create_subprocess_exec(
        WAKEFUL,
        *arguments,
        env=environment(server, folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(process.communicate(given.encode()), 60)
    return process.returncode, out.decode(), errors.decode()
