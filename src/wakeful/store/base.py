"""What the services of a node are built on: store, clock, rules, keys and folders."""

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
