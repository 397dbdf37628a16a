"""What the services of a node are built on: settings, clock, rules, store, device key and folders."""

import socket
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex

from wakeful.config.settings import Settings
from wakeful.core.clock import Clock, ServerClock, SystemClock
from wakeful.core.device_key import is_recovery_key_unshown, to_recovery_key
from wakeful.core.records import NodeIdentity
from wakeful.core.types import Rules
from wakeful.datadir.device_key import database_of, device_key_of
from wakeful.datadir.lost_data import check_device_key, check_not_moved
from wakeful.datadir.unfinished_restore import finish_restore
from wakeful.homes.service import CacheFolder
from wakeful.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Settings, clock, store and device key of one node."""

    settings: Settings
    clock: Clock
    rules: Rules
    store: Store
    owner: str  # of this process's claims
    device_key: bytes
    recovery_key: str | None  # of a device key that no successful start has shown yet
    caches: CacheFolder | None  # None: an embedded store, whose files are not caches

    @property
    def node(self) -> NodeIdentity:
        """Return what other nodes know of this one."""
        host = socket.gethostname()
        return NodeIdentity(
            owner=self.owner,
            name=self.settings.node_name or host,
            version=version("wakeful"),
            place=f"{host}:{self.settings.data_dir.resolve()}",
            mcp_servers=tuple(sorted(self.settings.mcp)),
        )

    @property
    def lease(self) -> timedelta:
        return timedelta(seconds=self.settings.lease_seconds)

    @property
    def agents_dir(self) -> Path:
        """Return the directory of the agents' folders; on a shared store these are caches, once it is opened."""
        return self.settings.data_dir / "agents" if self.caches is None else self.caches.path

    def folder_of(self, agent_id: str) -> Path:
        return self.agents_dir / agent_id

    def workspace_of(self, agent_id: str) -> Path:
        """Return the directory of an agent's files."""
        return self.agents_dir / agent_id / "workspace"


def build_base(settings: Settings, clock: Clock | None) -> Base:
    """Create the store without opening it, and on the first start the device key."""
    finish_restore(settings)
    check_not_moved(settings)
    check_device_key(settings)
    device_key = device_key_of(settings)
    is_unshown = settings.device_key is None and is_recovery_key_unshown(settings.config_dir)
    store = Store(database_of(settings, clock))
    if clock is None:
        clock = ServerClock(store.read_clock) if store.is_shared else SystemClock()
    return Base(
        settings=settings,
        clock=clock,
        rules=_rules(settings),
        store=store,
        owner=token_hex(8),  # new at every start, so that claims of an earlier process are not taken for this one's
        device_key=device_key,
        recovery_key=to_recovery_key(device_key) if is_unshown else None,
        caches=CacheFolder(settings.data_dir) if store.is_shared else None,
    )


def _rules(settings: Settings) -> Rules:
    return Rules(
        grace=timedelta(seconds=settings.grace_seconds),
        defer_by=timedelta(seconds=settings.defer_seconds),
        max_deferrals=settings.max_deferrals,
        runs_per_hour=settings.runs_per_hour,
        runs_per_token=settings.runs_per_token_per_hour,
        min_every=timedelta(seconds=settings.min_interval_seconds),
        max_attempts=settings.max_attempts,
        outage_hold=timedelta(seconds=settings.outage_hold_seconds),
    )
