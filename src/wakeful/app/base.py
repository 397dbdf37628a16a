"""Builds what the services of a node are built on: settings, clock, rules, store and device key."""

import socket
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
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
from wakeful.store.base import Base
from wakeful.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBase(Base):
    """What its services are built on, and the settings of the node."""

    settings: Settings
    recovery_key: str | None  # of a device key that no successful start has shown yet
    caches: CacheFolder | None


def build_base(settings: Settings, clock: Clock | None) -> NodeBase:
    """Create the store without opening it, and on the first start the device key."""
    finish_restore(settings)
    check_not_moved(settings)
    check_device_key(settings)
    device_key = device_key_of(settings)
    is_unshown = settings.device_key is None and is_recovery_key_unshown(settings.config_dir)
    store = Store(database_of(settings, clock))
    if clock is None:
        clock = ServerClock(store.read_clock) if store.is_shared else SystemClock()
    owner = token_hex(8)  # new at every start, so that claims of an earlier process are not taken for this one's
    return NodeBase(
        settings=settings,
        clock=clock,
        rules=_rules(settings),
        store=store,
        owner=owner,
        node=_identity(settings, owner),
        lease=timedelta(seconds=settings.lease_seconds),
        device_key=device_key,
        recovery_key=to_recovery_key(device_key) if is_unshown else None,
        data_dir=settings.data_dir,
        caches=CacheFolder(settings.data_dir) if store.is_shared else None,
        private_hosts=tuple(settings.fetch_private_hosts),
    )


def _identity(settings: Settings, owner: str) -> NodeIdentity:
    host = socket.gethostname()
    return NodeIdentity(
        owner=owner,
        name=settings.node_name or host,
        version=version("wakeful"),
        place=f"{host}:{settings.data_dir.resolve()}",
        mcp_servers=tuple(sorted(settings.mcp)),
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
