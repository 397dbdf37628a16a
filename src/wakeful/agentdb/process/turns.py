"""Whose request is next: one at a time for each agent, and round robin between agents."""

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass

from wakeful.agentdb.process.process import WorkerProcess


@dataclass(slots=True, kw_only=True, eq=False)
class Job:
    """A request that waits for a worker, or is with one."""

    agent: str
    path: str
    frame: bytes
    seconds: float
    answer: "asyncio.Future[bytes]"
    worker: WorkerProcess | None = None  # once it has one


class Turns:
    """The queues of all agents. An agent with a request under way is passed over until that is answered."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Job]] = OrderedDict()  # whose turn comes next is first
        self._under_way: set[str] = set()

    def add(self, job: Job) -> None:
        self._queues.setdefault(job.agent, deque()).append(job)

    def next(self) -> Job | None:
        """Take the next job out; None if there is none, or only of agents that have one under way."""
        for agent, queue in list(self._queues.items()):
            if agent in self._under_way:
                continue
            while queue and queue[0].answer.done():  # its caller has left
                queue.popleft()
            if not queue:
                del self._queues[agent]
                continue
            self._under_way.add(agent)
            return queue.popleft()
        return None

    def end(self, agent: str) -> None:
        """Note that an agent's request is answered: now it is behind all others."""
        self._under_way.discard(agent)
        if agent in self._queues:
            self._queues.move_to_end(agent)

    def drain(self) -> list[Job]:
        """Take out everything that waits."""
        waiting = [job for queue in self._queues.values() for job in queue]
        self._queues.clear()
        return waiting
