"""The server's side of the workers: a small pool of processes, each asked one thing at a time.

This process never opens an agent's file. A worker that dies or outlives its time is killed and replaced, and whoever
waited for it is told; SQLite sees to it that nothing is half-written.
"""

import asyncio
import contextlib
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any

import orjson

from wakeful.agentdb.errors import DatabaseUnavailable, DataInvalid, DataTimeout, to_error
from wakeful.agentdb.opened import Request
from wakeful.agentdb.process import WorkerProcess

log = logging.getLogger(__name__)

GRACE = 2.0  # seconds a worker has after its deadline, before it is killed
CLOSING = 20.0  # seconds a worker has to let go of a file


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
    last_hash: str | None = None

    @property
    def result(self) -> Any:
        return orjson.loads(self.text)


class Engine:
    """Carries out requests in worker processes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._workers: list[WorkerProcess] = []  # the one that was asked last at the end
        self._starting = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_closed = False

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    async def ask(self, request: Request) -> Answered:
        """Have a request carried out. It is finished even if the caller goes away, so that a worker is never torn."""
        try:
            frame = orjson.dumps(request)
        except orjson.JSONEncodeError as error:
            raise DataInvalid(f"A value in it cannot be kept: {error}.") from None
        worker = await self._take(request.path)
        answer, result = split(await self._exchange(worker, frame, request.seconds + GRACE))
        if answer["ok"]:
            used, quota, is_crossing = answer.get("usage") or (None, None, False)
            return Answered(
                text=result,
                used=used,
                quota=quota,
                is_crossing=is_crossing,
                last_change=answer.get("last_change"),
                last_hash=answer.get("last_hash"),
            )
        if answer["kind"] == "broken":
            log.error("database worker broke", extra={"op": request.op, "problem": answer["message"]})
            raise WorkerBroke("The database could not do this; it is a fault of the server. Nothing was changed.")
        raise to_error(answer)

    async def close_file(self, path: str) -> None:
        """Have every worker let go of a file. One that does not answer is ended, and so has let go too."""
        frame = orjson.dumps({"op": "close", "path": path})
        for worker in list(self._workers):
            with contextlib.suppress(WorkerBroke, DataTimeout):
                await self._exchange(worker, frame, CLOSING)

    async def aclose(self) -> None:
        """End all workers."""
        self._is_closed = True
        for worker in list(self._workers):
            await self._end(worker)
        while self._waiting:
            self._wake()  # to hear that nobody will come

    async def _exchange(self, worker: WorkerProcess, frame: bytes, seconds: float) -> bytes:
        """Ask a worker; one that does not answer is gone when this fails."""
        try:
            return await worker.ask(frame, seconds)
        except TimeoutError:
            await self._end(worker)
            log.warning("database worker took too long", extra={"pid": worker.pid})
            raise DataTimeout("That took too long and was stopped. Ask for less at a time.") from None
        except EOFError:
            await self._end(worker)
            log.warning("database worker died", extra={"pid": worker.pid})
            raise WorkerBroke(
                "The database's worker ended in the middle of this, so it may or may not have been done. "
                "Look before you try again."
            ) from None

    async def _take(self, path: str) -> WorkerProcess:
        """Take a worker that has nothing to do, best one that has the file open, or start one, or wait."""
        while True:
            if self._is_closed:
                raise WorkerBroke("The server is going down.")
            idle = [worker for worker in self._workers if not worker.is_busy and not worker.is_dead]
            chosen = next((worker for worker in idle if worker.last_path == path), None)
            if chosen is None and idle:
                chosen = idle[0]
            elif chosen is None and len(self._workers) + self._starting < self._size:
                chosen = await self._start()
            if chosen is not None:
                # No await from here to the asking: nobody else can take it in between.
                self._workers.remove(chosen)
                self._workers.append(chosen)
                chosen.last_path = path
                return chosen
            await self._wait()

    async def _wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake()  # it was this one's turn, and it has left
            raise

    def _wake(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break

    def _freed(self, worker: WorkerProcess) -> None:
        """Hear that a worker has answered, or is gone."""
        if worker.is_dead and worker in self._workers:
            self._workers.remove(worker)
        self._wake()

    async def _start(self) -> WorkerProcess:
        self._starting += 1
        try:
            worker = await WorkerProcess.start(self._freed)
        except OSError as error:
            self._wake()  # whoever waits may have more luck
            raise WorkerBroke(f"A database worker cannot be started: {error.strerror}. Try again.") from error
        finally:
            self._starting -= 1
        self._workers.append(worker)
        return worker

    async def _end(self, worker: WorkerProcess) -> None:
        if worker in self._workers:
            self._workers.remove(worker)
        await worker.end()


def split(answer: bytes) -> tuple[dict[str, Any], bytes]:
    """Take an answer apart into its head and its result."""
    end = 4 + int.from_bytes(answer[:4])
    return orjson.loads(answer[4:end]), answer[end:]
