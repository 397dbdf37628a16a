"""The data directory of a node: its id, the device key that its files are encrypted with, and the node on it.

`directory.json` in it has the id; it is created at the first start. On a shared store a row of `directories` and one of
`nodes` tell the other nodes.
"""

import asyncio
import logging
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from wakeful.agentdb import keys
from wakeful.core.clock import Clock
from wakeful.core.device_key import fingerprint
from wakeful.core.errors import Unavailable
from wakeful.core.files import draft_of, sync_folder
from wakeful.core.resources import remedy_of
from wakeful.store.drivers.database import SideConnection
from wakeful.store.rows import to_micros
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

ID_FILE = "directory.json"
_KEY = "device_key"
_STARTED = "started_at"
_STORE = "store"
_MOVE = "move"

_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class DirectoryUnusable(Unavailable):
    code = "directory_unusable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move of the embedded store to PostgreSQL that was begun here."""

    id: str
    to: str  # host, port and name of the database
    at: str
    is_done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFile:
    """The content of the file."""

    id: str
    key_fingerprint: str | None = None  # of the device key
    takes_any_key: bool = False  # someone wrote null, because the old key is lost
    started_at: str | None = None  # time of the first successful start
    store: str | None = None  # "embedded" or "postgres"
    move: Move | None = None  # while there is one, the embedded store is not started


def load_directory(data_dir: Path) -> DirectoryFile:
    """Read the file of a data directory, or create it."""
    found = find_directory(data_dir)
    if found is not None:
        return found
    path = data_dir / ID_FILE
    try:
        with draft_of(path, _encode({"id": secrets.token_hex(16)})) as draft, suppress(FileExistsError):
            path.hardlink_to(draft)  # never replaces: of two nodes that start at once, one creates it
        sync_folder(data_dir)
    except OSError as error:
        raise DirectoryUnusable(
            f"The data directory {str(data_dir)!r} cannot be written: {error.strerror}. "
            + remedy_of(error, "Make it writable, or set WAKEFUL_DATA_DIR to another one.")
        ) from error
    found = find_directory(data_dir)
    assert found is not None
    return found


def find_directory(data_dir: Path) -> DirectoryFile | None:
    """Read the file of a data directory; None if there is none."""
    path = data_dir / ID_FILE
    try:
        stored: Any = orjson.loads(path.read_bytes())
        fingerprint = stored.get(_KEY)
        started_at, store = stored.get(_STARTED), stored.get(_STORE)
        if not isinstance(stored["id"], str) or not all(
            isinstance(each, str | None) for each in (fingerprint, started_at, store)
        ):
            raise TypeError
        return DirectoryFile(
            id=stored["id"],
            key_fingerprint=fingerprint,
            takes_any_key=_KEY in stored and fingerprint is None,
            started_at=started_at,
            store=store,
            move=Move(**stored[_MOVE]) if stored.get(_MOVE) is not None else None,
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise DirectoryUnusable(
            f"{str(path)!r} cannot be read as the id of a data directory ({type(error).__name__}). "
            "Nothing was changed. Restore it from a backup. Without one: if the store is embedded, delete this file, "
            'and restart; on PostgreSQL, write {"id": "…"} with the id from the table directories.'
        ) from error


def save_key(data_dir: Path, fingerprint: str) -> None:
    """Record which device key the databases in a data directory are encrypted with."""
    _change(data_dir, {_KEY: fingerprint})


def save_started(data_dir: Path, at: str, store: str) -> None:
    """Record a successful start, so that a store that is missing later is noticed."""
    _change(data_dir, {_STARTED: at, _STORE: store})


def save_move(data_dir: Path, move: Move | None) -> None:
    """Record a move to PostgreSQL, or None when it is undone."""
    _change(data_dir, {_MOVE: None if move is None else asdict(move)})


def _change(data_dir: Path, changes: dict[str, Any]) -> None:
    load_directory(data_dir)  # creates it if it is missing
    path = data_dir / ID_FILE
    with draft_of(path, _encode(orjson.loads(path.read_bytes()) | changes)) as draft:
        draft.replace(path)
    sync_folder(data_dir)


def _encode(stored: dict[str, Any]) -> bytes:
    return orjson.dumps(stored, option=orjson.OPT_APPEND_NEWLINE)


class OtherDeviceKey(Unavailable):
    code = "other_device_key"


class Directories:
    """The data directory of this node, and the device key that its files are encrypted with."""

    def __init__(
        self, store: Store, clock: Clock, data_dir: Path, device_key: bytes, owner: str, lease: timedelta
    ) -> None:
        self._store = store
        self._clock = clock
        self._data_dir = data_dir
        self._agents = data_dir / "agents"
        self._device_key = device_key
        self._fingerprint = fingerprint(device_key)
        self._owner = owner
        self.lease = lease
        self.id = ""  # set by `enter`

    async def enter(self) -> None:
        """Read the id of the data directory, and compare its device key with ours and those of running nodes."""
        file = await asyncio.to_thread(load_directory, self._data_dir)
        self.id = file.id
        if self._store.is_shared:
            await self._register(file)

    async def arrive(self) -> None:
        """Record that this node is running."""
        if not self._store.is_shared:
            return
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            await tx.directories.delete_dead_nodes(self.alive_since(now))
            await tx.directories.see_node(self._owner, self.id, self._fingerprint, now)

        await self._store.write(work)

    async def leave(self) -> None:
        """Record that this node shuts down."""
        if self._store.is_shared:
            await self._store.write(lambda tx: tx.directories.delete_node(self._owner))

    async def beat(self, connection: SideConnection) -> None:
        """Renew the row of this node."""
        if self._store.is_shared:
            now = to_micros(self._clock.now())
            node = {"owner": self._owner, "directory_id": self.id, "key_fingerprint": self._fingerprint, "now": now}
            await connection.fetch("see_node", node)
            await connection.fetch("see_directory", {"id": self.id, "now": now})

    def alive_since(self, now: datetime) -> datetime:
        """Return the earliest time of a heartbeat that counts a node as running.

        Soon after a step of the clock every node counts, since older times cannot be compared.
        """
        is_settled = self._clock.seconds_since_step() >= self.lease.total_seconds()
        return now - self.lease if is_settled else _EVER

    async def _register(self, file: DirectoryFile) -> None:
        if file.key_fingerprint is not None and file.key_fingerprint != self._fingerprint:
            raise self._other_key()
        is_settled = file.key_fingerprint is not None or file.takes_any_key
        fits = is_settled or await asyncio.to_thread(keys.fits, self._agents, self._device_key)
        place, now = f"{socket.gethostname()}:{self._data_dir.resolve()}", self._clock.now()

        async def work(tx: Tx) -> None:
            own = self._fingerprint if fits else None
            known = await tx.directories.save(self.id, place, own, now, overwrite=is_settled)
            if known not in (None, self._fingerprint):
                raise self._other_key()
            if await tx.directories.has_other_key(self.id, self._fingerprint, self.alive_since(now)):
                raise OtherDeviceKey(
                    f"A running node uses the same data directory {str(self._data_dir)!r} with another device key, so "
                    "neither could read what the other writes. Copy device.key from the config directory of one to "
                    f"that of the other. If that node is gone, try again in {self.lease.total_seconds():.0f} seconds."
                )

        await self._store.write(work)
        if not fits:
            log.warning("no agent's database opens with the device key", extra={"data_dir": str(self._data_dir)})
        elif file.key_fingerprint is None:
            await asyncio.to_thread(save_key, self._data_dir, self._fingerprint)

    def _other_key(self) -> OtherDeviceKey:
        file = self._data_dir / ID_FILE
        return OtherDeviceKey(
            f"The device key of this node is not the one that the databases in {str(self._data_dir)!r} are encrypted "
            "with. Restore the right one with `wakeful key restore`, or copy device.key from the node that has it. "
            f'If it is lost for good, set "device_key" to null in {str(file)!r}: then the server starts, and the '
            "databases that were encrypted with it stay locked."
        )
