"""A small pool of worker processes, each with one request at a time.

The server process never opens an agent's file. An agent uses one worker at a time, so its slow requests delay only its
own. A worker that dies or exceeds its time is killed and replaced, and the caller gets an error; SQLite's transactions
keep the file consistent.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
import asyncio
import contextlib
import errno
import logging
import math
import os
import signal
import socket
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from wakeful.agentdb.connection import JOURNAL_SECONDS, MAX_OPEN, Request
from wakeful.agentdb.errors import DatabaseUnavailable, DataInvalid, DataTimeout, to_error
from wakeful.agentdb.operations import OPERATIONS
from wakeful.core.resources import OutOfResources

# One worker process and the socket to it; requests are answered in order.
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
                    "wakeful.agentdb.worker",
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


log = logging.getLogger(__name__)

GRACE = 2.0  # seconds after its deadline until a worker is killed
RETRY = 5.0  # seconds between attempts to start a worker
CLOSING = 20.0  # seconds a worker has to close a file

_TOO_LONG = "This took too long and was stopped. Ask for less at a time."
_TOO_LONG_WRITE = (
    "This took too long and was stopped, so it may or may not have been done. Check before you try again, and ask for "
    "less at a time."
)
_EXITED = "The database worker exited, so this may or may not have been done. Check before you try again."


class WorkerBroke(DatabaseUnavailable):
    code = "database_worker_broke"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAnswer:
    """A worker's answer; its head has the names of these fields."""

    text: bytes  # the result as JSON
    used: int | None = None  # bytes, after a write
    quota: int | None = None
    is_crossing: bool = False  # the write has crossed the warning level
    last_change: int | None = None
    last_hash: str | None = None

    @property
    def result(self) -> Any:
        return orjson.loads(self.text)


class DatabaseEngine:
    """Runs requests in worker processes: one at a time per agent, round robin between agents."""

    def __init__(
        self,
        size: int,
        *,
        journal_seconds: float = JOURNAL_SECONDS,
        on_wait: Callable[[float], None] = lambda _: None,  # the seconds that a request waited for a worker
    ) -> None:
        self._size = size
        self._on_wait = on_wait
        self._journal_seconds = journal_seconds
        self.workers: list[WorkerProcess] = []  # most recently used last
        self._starting: asyncio.Task[None] | None = None
        self._turns = Turns()
        self._is_closed = False
        self._retry: asyncio.TimerHandle | None = None
        self.problem: str | None = None  # why no worker can be started

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self.workers]

    @property
    def busy(self) -> int:
        """Return how many workers have a request."""
        return sum(worker.is_busy for worker in self.workers)

    async def ask(self, request: Request, agent: str | None = None) -> WorkerAnswer:
        """Run a request. It is finished even if the caller is cancelled, so that the worker stays usable."""
        try:
            frame = orjson.dumps(request)
        except orjson.JSONEncodeError as error:
            raise DataInvalid(f"A value cannot be stored: {error}.") from None
        answer, result = split(await self._carry_out(request, agent or request.path, frame))
        if answer.pop("ok"):
            return WorkerAnswer(text=result, **answer)
        if answer["kind"] == "broken":
            log.error("database worker failed", extra={"op": request.op, "problem": answer["message"]})
            raise WorkerBroke("The database failed; this is a fault of the server. Nothing was changed.")
        if self._is_closed and answer["kind"] == "timeout":  # it was interrupted for that
            raise _going_down()
        raise to_error(answer, request.zone, request.at)

    async def close_file(self, path: str) -> None:
        """Make every worker close a file. One that does not answer is killed, which closes it too."""
        frame = orjson.dumps({"op": "close", "path": path})
        holders = [worker for worker in self.workers if path in worker.paths]
        await asyncio.gather(*(self._close(worker, frame) for worker in holders))

    def has_open(self, path: str) -> bool:
        """Return whether a worker may have a file open."""
        return any(path in worker.paths for worker in self.workers)

    async def aclose(self) -> None:
        """Stop all workers after they have closed their files; that takes two seconds at most."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
        if self._starting is not None:
            await self._starting
        await asyncio.gather(*(worker.stop() for worker in list(self.workers)))
        self.workers.clear()
        self._fail_all(_going_down)

    async def _carry_out(self, request: Request, agent: str, frame: bytes) -> bytes:
        if self._is_closed:
            raise _going_down()
        is_write = OPERATIONS[request.op].kind == "write"
        seconds = request.seconds + GRACE + (request.room_seconds if is_write else 0)
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        job = Job(agent=agent, path=request.path, frame=frame, seconds=seconds, answer=answer, since=loop.time())
        self._turns.add(job)
        self._dispatch()
        try:
            return await answer
        except (TimeoutError, EOFError) as error:
            if job.worker is not None:
                await self.end(job.worker)
            if isinstance(error, TimeoutError):
                log.warning("database worker took too long", extra={"op": request.op})
                raise DataTimeout(_TOO_LONG_WRITE if is_write else _TOO_LONG) from None
            log.warning("database worker died", extra={"op": request.op})
            raise WorkerBroke(_EXITED) from None

    def _dispatch(self) -> None:
        """Give every idle worker the next job, and start another worker if none is idle after that."""
        if self._is_closed:
            return
        idle = [worker for worker in self.workers if not worker.is_busy and not worker.is_dead]
        while idle and (job := self._turns.next()) is not None:
            worker = next((each for each in idle if job.path in each.paths), idle[0])
            idle.remove(worker)
            self.workers.remove(worker)
            self.workers.append(worker)
            job.worker, worker.agent = worker, job.agent
            worker.note_open(job.path)
            worker.ask(job.frame, job.seconds, job.answer)
            self._on_wait(asyncio.get_running_loop().time() - job.since)
        # Starting a process takes longer than most requests, so one is started before it is needed.
        if not idle and self._starting is None and len(self.workers) < self._size:
            self._starting = asyncio.create_task(self._start(), context=Context())

    def _freed(self, worker: WorkerProcess) -> None:
        """Take note that a worker has answered or exited, and give out the next jobs."""
        if worker.is_dead and worker in self.workers:
            self.workers.remove(worker)
        if worker.agent is not None and (worker.is_dead or not worker.is_busy):
            self._turns.end(worker.agent)
            worker.agent = None
        self._dispatch()

    async def _start(self) -> None:
        """Start a worker. If that fails and there is none, fail all waiting jobs and retry later."""
        try:
            worker = await WorkerProcess.start(self._freed, self._journal_seconds)
        except OSError as error:
            if self.problem is None:
                log.warning("database worker cannot be started", extra={"problem": error.strerror})
            if not self.workers:
                self.problem = error.strerror or type(error).__name__
                text = f"No database worker can be started ({self.problem}), so this was not done. Try again later."
                self._fail_all(partial(OutOfResources, text))
                if not self._is_closed:
                    self._retry = asyncio.get_running_loop().call_later(RETRY, self._start_again)
            return
        finally:
            self._starting = None
        self.problem = None
        if self._is_closed:
            await worker.end()
            return
        self.workers.append(worker)
        self._dispatch()

    def _fail_all(self, error: Callable[[], Exception]) -> None:
        """Fail the waiting jobs."""
        for job in self._turns.drain():
            if not job.answer.done():
                job.answer.set_exception(error())

    def _start_again(self) -> None:
        if not self.workers and self._starting is None and not self._is_closed:
            self._starting = asyncio.create_task(self._start(), context=Context())

    async def _close(self, worker: WorkerProcess, frame: bytes) -> None:
        answer = asyncio.get_running_loop().create_future()
        worker.ask(frame, CLOSING, answer)
        try:
            await answer
        except (TimeoutError, EOFError):
            await self.end(worker)

    async def end(self, worker: WorkerProcess) -> None:
        """Kill a worker, and wait for its exit."""
        if worker in self.workers:
            self.workers.remove(worker)
        await worker.end()


def _going_down() -> WorkerBroke:
    return WorkerBroke("The server is shutting down.")


def split(answer: bytes) -> tuple[dict[str, Any], bytes]:
    """Split an answer into head and result."""
    end = 4 + int.from_bytes(answer[:4])
    return orjson.loads(answer[4:end]), answer[end:]


# The queue of requests: one at a time per agent, round robin between agents.


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A request that waits for a worker, or is being carried out."""

    agent: str
    path: str
    frame: bytes
    seconds: float
    answer: "asyncio.Future[bytes]"
    since: float  # by the event loop's clock
    worker: WorkerProcess | None = None  # None while it waits


class Turns:
    """A queue per agent. An agent with a running request is skipped until it is answered."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Job]] = OrderedDict()  # next agent first
        self._running: set[str] = set()

    def add(self, job: Job) -> None:
        self._queues.setdefault(job.agent, deque()).append(job)

    def next(self) -> Job | None:
        """Remove and return the next job; None if all waiting jobs are of agents with one running."""
        for agent, queue in list(self._queues.items()):
            if agent in self._running:
                continue
            while queue and queue[0].answer.done():  # its caller was cancelled
                queue.popleft()
            if not queue:
                del self._queues[agent]
                continue
            self._running.add(agent)
            return queue.popleft()
        return None

    def end(self, agent: str) -> None:
        """Mark an agent's request as answered, and move the agent behind all others."""
        self._running.discard(agent)
        if agent in self._queues:
            self._queues.move_to_end(agent)

    def drain(self) -> list[Job]:
        """Remove and return all waiting jobs."""
        waiting = [job for queue in self._queues.values() for job in queue]
        self._queues.clear()
        return waiting


# A check of arguments before they are sent to a worker.


MAX_LEVELS = 200  # of nested objects and lists; the JSON that a worker reads has at most 254


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Refuse infinite numbers and NaN, and values nested too deep. Level by level, so depth costs no stack."""
    level: list[Any] = [arguments]
    for _ in range(MAX_LEVELS):
        deeper: list[Any] = []
        for each in level:
            for value in each.values() if isinstance(each, Mapping) else each:
                if value.__class__ is float:
                    if not math.isfinite(value):
                        raise DataInvalid(f"A number must be finite, got {value}. Use null or a text for it.")
                elif isinstance(value, Mapping | list | tuple):
                    deeper.append(value)
        if not deeper:
            return
        level = deeper
    raise DataInvalid(f"A value must be nested at most {MAX_LEVELS} levels deep. Store it as a text.")
