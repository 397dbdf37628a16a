"""The queue of requests: one at a time per agent, round robin between agents."""

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass

from wakeful.agentdb.process.process import WorkerProcess


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
