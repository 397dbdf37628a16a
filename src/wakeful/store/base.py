"""What services of a node are built on: store, clock, rules, keys, folders; periodic jobs; counters of messages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from wakeful.core.clock import Clock
from wakeful.core.records import NodeIdentity
from wakeful.core.types import Rules
from wakeful.store.store import Store


class Folder(Protocol):
    """A folder whose place may be known only once the store is open."""

    @property
    def path(self) -> Path: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Store, clock, rules, device key and folders of one node."""

    store: Store
    clock: Clock
    rules: Rules
    owner: str  # of this process's claims
    node: NodeIdentity  # what other nodes know of this one
    lease: timedelta
    device_key: bytes
    data_dir: Path
    caches: Folder | None  # None: an embedded store, whose files are not caches
    private_hosts: tuple[str, ...] = ()  # that requests may go to, though they are not on the public internet

    @property
    def agents_dir(self) -> Path:
        """Return the directory of the agents' folders; on a shared store these are caches, once it is opened."""
        return self.data_dir / "agents" if self.caches is None else self.caches.path

    def folder_of(self, agent_id: str) -> Path:
        return self.agents_dir / agent_id

    def workspace_of(self, agent_id: str) -> Path:
        """Return the directory of an agent's files."""
        return self.agents_dir / agent_id / "workspace"


# Periodic work: each feature contributes its jobs, and the engine of a node runs them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that a node repeats while it runs. A failure is logged, and the next turn tries again."""

    name: str
    every: timedelta
    run: Callable[[], Awaitable[object]]
    is_at_once: bool = False  # also when the node starts


# What features count of what they send; `operations/metrics.py` does the counting.


class SendCounters(Protocol):
    """Counts messages to something outside, and pings of the heartbeat address."""

    def count_outgoing(self, kind: str, outcome: str) -> None: ...
