"""The server's side of the workers: a small pool of processes, each asked one thing at a time.

This process never opens an agent's file. A worker that dies or outlives its time is killed and replaced, and whoever
waited for it is told; SQLite sees to it that nothing is half-written.
"""

import asyncio
import logging
import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from wakeful.agentdb.errors import DatabaseUnavailable, DataInvalid, DataTimeout, to_error
from wakeful.agentdb.opened import Request

log = logging.getLogger(__name__)

GRACE = 2.0  # seconds a worker has after its deadline, before it is killed
MOST_ANSWER = 64 * 1024 * 1024
STARTING = 20.0  # seconds a new process may take


class WorkerBroke(DatabaseUnavailable):
    code = "database_worker_broke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a worker answered."""

    text: bytes  # the result as JSON
    used: int | None = None  # bytes, after a write
    quota: int | None = None
    is_crossing: bool = False  # the write has gone over the warning
    last_change: int | None = None

    @property
    def result(self) -> Any:
        return orjson.loads(self.text)


class Engine:
    """Carries out requests in worker processes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._idle: deque[_Worker] = deque()
        self._workers: set[_Worker] = set()
        self._starting = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    async def ask(self, request: Request) -> Answered:
        """Have a request carried out. It is finished even if the caller goes away, so that a worker is never torn."""
        return await asyncio.shield(asyncio.ensure_future(self._ask(request)))

    async def close_file(self, path: str) -> None:
        """Have every worker let go of a file."""
        frame = orjson.dumps({"op": "close", "path": path})
        for worker in list(self._workers):
            async with worker.turn:
                await self._exchange(worker, frame, STARTING)

    async def aclose(self) -> None:
        """End all workers."""
        self._is_closed = True
        for worker in list(self._workers):
            await self._end(worker)

    async def _ask(self, request: Request) -> Answered:
        try:
            frame = orjson.dumps(request)
        except orjson.JSONEncodeError as error:
            raise DataInvalid(f"A value in it cannot be kept: {error}.") from None
        worker = await self._take(request.path)
        try:
            async with worker.turn:
                answer, result = await self._exchange(worker, frame, request.seconds + GRACE)
        finally:
            self._give_back(worker)
        if answer["ok"]:
            used, quota, is_crossing = answer.get("usage") or (None, None, False)
            return Answered(
                text=result,
                used=used,
                quota=quota,
                is_crossing=is_crossing,
                last_change=answer.get("last_change"),
            )
        if answer["kind"] == "broken":
            log.error("database worker broke", extra={"op": request.op, "problem": answer["message"]})
            raise WorkerBroke("The database could not do this; it is a fault of the server. Nothing was changed.")
        raise to_error(answer)

    async def _exchange(self, worker: "_Worker", frame: bytes, seconds: float) -> tuple[dict[str, Any], bytes]:
        """Ask a worker, and kill it if it does not answer."""
        try:
            async with asyncio.timeout(seconds):
                return split(await worker.exchange(frame))
        except TimeoutError:
            await self._end(worker)
            log.warning("database worker took too long", extra={"pid": worker.pid})
            raise DataTimeout("That took too long and was stopped. Ask for less at a time.") from None
        except (EOFError, OSError):
            await self._end(worker)
            log.warning("database worker died", extra={"pid": worker.pid})
            raise WorkerBroke(
                "The database's worker ended in the middle of this, so it may or may not have been done. "
                "Look before you try again."
            ) from None

    async def _take(self, path: str) -> "_Worker":
        """Take an idle worker, best one that has the file open, or start one, or wait."""
        while True:
            if self._is_closed:
                raise WorkerBroke("The server is going down.")
            for dead in [worker for worker in self._idle if worker.is_dead]:
                await self._end(dead)
            chosen = next((worker for worker in reversed(self._idle) if worker.last_path == path), None)
            if chosen is not None:
                self._idle.remove(chosen)
            elif len(self._workers) + self._starting < self._size and not self._idle:
                chosen = await self._start()
            elif self._idle:
                chosen = self._idle.popleft()
            if chosen is not None:
                chosen.last_path = path
                return chosen
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            await waiter

    def _give_back(self, worker: "_Worker") -> None:
        if worker in self._workers:
            self._idle.append(worker)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break

    async def _start(self) -> "_Worker":
        self._starting += 1
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-m",
                "wakeful.agentdb.worker",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=MOST_ANSWER,
                env={},  # nothing of the server's surroundings, least of all its secrets
                cwd="/",
                start_new_session=True,  # Ctrl-C is for the server, which ends its workers itself
            )
        except OSError as error:
            raise WorkerBroke(f"A database worker cannot be started: {error.strerror}. Try again.") from error
        finally:
            self._starting -= 1
        worker = _Worker(process)
        self._workers.add(worker)
        return worker

    async def _end(self, worker: "_Worker") -> None:
        self._workers.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        await worker.end()


def split(answer: bytes) -> tuple[dict[str, Any], bytes]:
    """Take an answer apart into its head and its result."""
    end = 4 + int.from_bytes(answer[:4])
    return orjson.loads(answer[4:end]), answer[end:]


class _Worker:
    """One process at the other end of a pipe."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout
        self.pid = process.pid
        self.turn = asyncio.Lock()
        self.last_path: str | None = None

    @property
    def is_dead(self) -> bool:
        return self._process.returncode is not None or self._answers.at_eof()

    async def exchange(self, frame: bytes) -> bytes:
        self._requests.write(len(frame).to_bytes(4) + frame)
        await self._requests.drain()
        size = int.from_bytes(await self._answers.readexactly(4))
        if size > MOST_ANSWER:
            raise EOFError
        return await self._answers.readexactly(size)

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        self._requests.close()
        await self._process.wait()
