"""A small pool of worker processes, each with one request at a time.

The server process never opens an agent's file. An agent uses one worker at a time, so its slow requests delay only its
own. A worker that dies or exceeds its time is killed and replaced, and the caller gets an error; SQLite's transactions
keep the file consistent.
"""

import asyncio
import logging
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson

from wakeful.agentdb.errors import DatabaseUnavailable, DataInvalid, DataTimeout, to_error
from wakeful.agentdb.files.open_database import JOURNAL_SECONDS, Request
from wakeful.agentdb.operations import OPERATIONS
from wakeful.agentdb.process.process import WorkerProcess
from wakeful.agentdb.process.turns import Job, Turns
from wakeful.domain.resources import OutOfResources

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
