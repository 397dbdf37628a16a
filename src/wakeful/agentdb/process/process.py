"""One worker process, and the socket it is spoken to through. What it is asked is answered in that order."""

import asyncio
import errno
import logging
import socket
import sys
from collections import deque
from collections.abc import Callable

from wakeful.agentdb.files.open_database import MOST_OPEN

log = logging.getLogger(__name__)

MOST_ANSWER = 64 * 1024 * 1024
USUAL_ANSWER = 128 * 1024
STARTING = 30.0  # seconds a worker has to start; it takes 0.1 on an idle machine
STOPPING = 2.0  # seconds a worker has at a graceful stop to close its files


class WorkerProcess(asyncio.BufferedProtocol):
    """Sends frames, each with its length before it, and hands the answers to those who wait for them."""

    def __init__(self, on_answer: Callable[["WorkerProcess"], None]) -> None:
        self._on_answer = on_answer
        self._loop = asyncio.get_running_loop()
        self._asked: deque[tuple[asyncio.Future[bytes], float]] = deque()
        self._buffer = bytearray(USUAL_ANSWER)
        self._filled = 0
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()  # done with its first frame, which is empty
        self.agent: str | None = None  # whose request it is at
        self.paths: deque[str] = deque(maxlen=MOST_OPEN)  # the files it may have open, the last one at the end

    @classmethod
    async def start(cls, on_answer: Callable[["WorkerProcess"], None], journal_seconds: float) -> "WorkerProcess":
        """Start a process with nothing of the server's surroundings, least of all its secrets."""
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
                    start_new_session=True,  # Ctrl-C is for the server, which ends its workers itself
                )
            except BaseException:
                ours.close()
                raise
        try:
            _, worker = await asyncio.get_running_loop().create_unix_connection(lambda: cls(on_answer), sock=ours)
        except BaseException:
            process.kill()
            raise
        worker._process = process
        try:
            async with asyncio.timeout(STARTING):
                await worker._ready
        except (EOFError, TimeoutError):
            worker._kill()
            code = await process.wait()
            raise ChildProcessError(errno.ECHILD, f"it ended at once, with exit code {code}") from None
        except BaseException:
            worker._kill()
            raise
        return worker

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_busy(self) -> bool:
        return bool(self._asked)

    @property
    def is_dead(self) -> bool:
        assert self._process is not None
        return self._transport is None or self._transport.is_closing() or self._process.returncode is not None

    def note_open(self, path: str) -> None:
        """Remember what the process has open: it closes the file that was asked about longest ago, as this does."""
        if path in self.paths:
            self.paths.remove(path)
        if path:
            self.paths.append(path)

    def ask(self, frame: bytes, seconds: float, answer: "asyncio.Future[bytes]") -> None:
        """Ask for something. If the caller cancels the answer, it is read and thrown away.

        The answer fails with TimeoutError if it is not there in its time, and with EOFError if the process ends.
        """
        if self._transport is None:
            answer.set_exception(EOFError())
            return
        self._asked.append((answer, seconds))
        if len(self._asked) == 1:
            self._watch()
        self._transport.write(len(frame).to_bytes(4) + frame)

    async def stop(self) -> None:
        """Let the process close its files and end; one that takes too long is killed."""
        assert self._process is not None
        if self.is_busy and self._process.returncode is None:
            self._process.terminate()  # interrupts what it is at
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()
        try:
            async with asyncio.timeout(STOPPING):
                await self._process.wait()
        except TimeoutError:
            log.warning("database worker did not end in time, so it is killed", extra={"pid": self.pid})
        await self.end()

    async def end(self) -> None:
        """Kill the process and wait until it is gone."""
        assert self._process is not None
        self._kill()
        await self._process.wait()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  (the library's signature)
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        while self._filled >= 4:
            end = 4 + int.from_bytes(self._buffer[:4])
            if end == 4 and not self._ready.done():
                self._ready.set_result(None)
                self._buffer[: self._filled - 4] = self._buffer[4 : self._filled]
                self._filled -= 4
                continue
            if end > MOST_ANSWER or not self._asked:
                self._kill()  # it does not keep to the form, so nothing it says can be trusted
                return
            if self._filled < end:
                self._make_room(end)
                return
            answer = bytes(memoryview(self._buffer)[4:end])
            rest = self._buffer[end : self._filled]
            self._buffer[: len(rest)] = rest
            self._filled = len(rest)
            self._settle(answer)
        if len(self._buffer) > USUAL_ANSWER:
            self._make_room(USUAL_ANSWER)

    def _make_room(self, size: int) -> None:
        """Take another buffer; the loop still holds on to the one it has just filled."""
        if len(self._buffer) < size or not self._filled:
            buffer = bytearray(max(size, USUAL_ANSWER))
            buffer[: self._filled] = self._buffer[: self._filled]
            self._buffer = buffer

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (the library's signature)
        self._transport = None
        if not self._ready.done():
            self._ready.set_exception(EOFError())
        while self._asked:
            self._settle(EOFError())
        self._on_answer(self)

    def _settle(self, outcome: bytes | Exception) -> None:
        answer, _ = self._asked.popleft()
        self._watch()
        if not answer.done():
            if isinstance(outcome, bytes):
                answer.set_result(outcome)
            else:
                answer.set_exception(outcome)
        self._on_answer(self)

    def _watch(self) -> None:
        """Begin to measure the time of what is to be answered next."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._asked[0][1], self._give_up) if self._asked else None

    def _give_up(self) -> None:
        self._kill()
        self._settle(TimeoutError())

    def _kill(self) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        if self._transport is not None:
            self._transport.abort()
