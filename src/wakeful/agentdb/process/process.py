"""One worker process and the socket to it; requests are answered in order."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable

from wakeful.agentdb.files.open_database import MAX_OPEN

log = logging.getLogger(__name__)

MAX_ANSWER = 64 * 1024 * 1024
BUFFER_BYTES = 128 * 1024
STARTING = 30.0  # seconds a worker has to start; it takes 0.1 on an idle machine
STOPPING = 2.0  # seconds a worker has to close its files at a graceful stop


class WorkerProcess(asyncio.BufferedProtocol):
    """Sends length-prefixed frames to a worker, and resolves the futures of their answers."""

    def __init__(self, process: asyncio.subprocess.Process, on_answer: Callable[["WorkerProcess"], None]) -> None:
        self._process = process
        self._on_answer = on_answer
        self._loop = asyncio.get_running_loop()
        self._asked: deque[tuple[asyncio.Future[bytes], float]] = deque()
        self._buffer = bytearray(BUFFER_BYTES)
        self._filled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.ready: asyncio.Future[None] = self._loop.create_future()  # done with its first, empty frame
        self.agent: str | None = None  # whose request is being answered
        self.paths: deque[str] = deque(maxlen=MAX_OPEN)  # files it may have open, most recently used last

    @classmethod
    async def start(cls, on_answer: Callable[["WorkerProcess"], None], journal_seconds: float) -> "WorkerProcess":
        """Start a process without the server's environment variables, which may have secrets."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-I",
                    "-m",
                    "wakeful.agentdb.process.worker",
                    str(journal_seconds),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    env={},
                    cwd="/",
                    start_new_session=True,  # Ctrl-C goes to the server, which stops its workers itself
                )
            except BaseException:
                ours.close()
                raise
        try:
            loop = asyncio.get_running_loop()
            _, worker = await loop.create_unix_connection(lambda: cls(process, on_answer), sock=ours)
        except BaseException:
            _send(process, signal.SIGKILL)
            raise
        try:
            async with asyncio.timeout(STARTING):
                await worker.ready
        except (EOFError, TimeoutError):
            worker.kill()
            code = await process.wait()
            raise ChildProcessError(errno.ECHILD, f"it ended at once, with exit code {code}") from None
        except BaseException:
            worker.kill()
            raise
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_busy(self) -> bool:
        return bool(self._asked)

    @property
    def is_dead(self) -> bool:
        return self._transport is None or self._transport.is_closing() or self._process.returncode is not None

    def note_open(self, path: str) -> None:
        """Record a file that the process opens; like the process, drop the least recently used one."""
        if path in self.paths:
            self.paths.remove(path)
        if path:
            self.paths.append(path)

    def ask(self, frame: bytes, seconds: float, answer: "asyncio.Future[bytes]") -> None:
        """Send a request. If the caller cancels the future, the answer is read and discarded.

        The future fails with TimeoutError after its time, and with EOFError if the process ends.
        """
        if self._transport is None:
            answer.set_exception(EOFError())
            return
        self._asked.append((answer, seconds))
        if len(self._asked) == 1:
            self._start_timer()
        self._transport.write(len(frame).to_bytes(4) + frame)

    async def stop(self) -> None:
        """Let the process close its files and exit; kill it if that takes too long."""
        if self.is_busy:
            _send(self._process, signal.SIGTERM)  # interrupts the current request
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()
        try:
            async with asyncio.timeout(STOPPING):
                await self._process.wait()
        except TimeoutError:
            log.warning("database worker did not stop in time, killed", extra={"pid": self.pid})
        await self.end()

    async def end(self) -> None:
        """Kill the process and wait for its exit."""
        self.kill()
        await self._process.wait()

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  (the library's signature)
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        while self._filled >= 4:
            end = 4 + int.from_bytes(self._buffer[:4])
            if end == 4 and not self.ready.done():
                self.ready.set_result(None)
                self._buffer[: self._filled - 4] = self._buffer[4 : self._filled]
                self._filled -= 4
                continue
            if end > MAX_ANSWER or not self._asked:
                self.kill()  # it violates the protocol, so its answers cannot be trusted
                return
            if self._filled < end:
                self._resize(end)
                return
            answer = bytes(memoryview(self._buffer)[4:end])
            rest = self._buffer[end : self._filled]
            self._buffer[: len(rest)] = rest
            self._filled = len(rest)
            self._settle(answer)
        if len(self._buffer) > BUFFER_BYTES:
            self._resize(BUFFER_BYTES)

    def _resize(self, size: int) -> None:
        """Replace the buffer; asyncio still holds a view of the old one, so it cannot be resized."""
        if len(self._buffer) < size or not self._filled:
            buffer = bytearray(max(size, BUFFER_BYTES))
            buffer[: self._filled] = self._buffer[: self._filled]
            self._buffer = buffer

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (the library's signature)
        self._transport = None
        if not self.ready.done():
            self.ready.set_exception(EOFError())
        while self._asked:
            self._settle(EOFError())
        self._on_answer(self)

    def _settle(self, outcome: bytes | Exception) -> None:
        answer, _ = self._asked.popleft()
        self._start_timer()
        if not answer.done():
            if isinstance(outcome, bytes):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)
        self._on_answer(self)

    def _start_timer(self) -> None:
        """Start the time limit of the next answer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._asked[0][1], self._give_up) if self._asked else None

    def _give_up(self) -> None:
        self.kill()
        self._settle(TimeoutError())

    def kill(self) -> None:
        _send(self._process, signal.SIGKILL)
        if self._transport is not None:
            self._transport.abort()


def _send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal to a process that has not ended.

    Not with the methods of the process: they read the exit status of one that has just ended, and asyncio, which then
    finds none, logs "Unknown child process" and reports 255.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
