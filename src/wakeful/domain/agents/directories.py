"""Data directories: each has an id, and an agent's database and files are in one of them."""

from dataclasses import dataclass
from datetime import datetime

from wakeful.domain.errors import Unavailable

MEMORY_ELSEWHERE = "memory_elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A data directory that some node has or had."""

    id: str
    place: str  # host and path
    seen_at: datetime  # when a node on it was last alive
    is_alive: bool  # a running node has it


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayDirectory:
    """A data directory that agents need and no running node has."""

    id: str
    place: str
    seen_at: datetime
    agents: int


class MemoryElsewhere(Unavailable):
    """An agent's database and files are in a data directory that this node does not have."""

    code = MEMORY_ELSEWHERE

    def __init__(self, agent_id: str, directory: Directory) -> None:
        super().__init__(words(agent_id, directory))
        self.agent_id = agent_id
        self.directory = directory


class NotMoved(Unavailable):
    """An agent's database and files could not be moved from the data directory of this node into PostgreSQL."""

    code = "files_not_moved"

    def __init__(self, agent_id: str, problem: str) -> None:
        super().__init__(
            f"The database and files of agent {agent_id!r} could not be moved from this node's data directory into "
            f"PostgreSQL: {problem} Nothing is lost. Correct the cause, then restart this node."
        )


def words(agent_id: str, directory: Directory, since: str | None = None) -> str:
    """Return a text that says where an agent's database and files are, and what to do; `since` may replace the time."""
    where = (
        f"The database and files of agent {agent_id!r} are in the data directory {directory.place!r} "
        f"(id {directory.id}), which this node does not have."
    )
    if directory.is_alive:
        return f"{where} A running node has it: ask that one."
    return (
        f"{where} No running node has it, since {since or f'{directory.seen_at:%Y-%m-%d %H:%M:%S} UTC'}. "
        "Start the node with that data directory, then try again; nothing is lost."
    )
