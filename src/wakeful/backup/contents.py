"""The content of a backup, as it was at one moment, read while others write.

On an embedded store, every database is pinned at the beginning: a read transaction keeps its file and its journal as
they are then, so that both can be copied byte by byte, encrypted as they are. The files of agents have no transactions:
each is copied as it is found. On PostgreSQL everything comes from one snapshot.
"""

# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# pyright: reportUnknownMemberType=false
import asyncio
import os
import stat
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import apsw

from wakeful.agentdb import file
from wakeful.agentdb.errors import DatabaseLocked
from wakeful.agentdb.keys import Vault
from wakeful.backup.archive import PIECE, ArchiveWriter, Entry, Head, coalesced, may_be_link
from wakeful.core.clock import Clock
from wakeful.core.device_key import fingerprint
from wakeful.store.drivers.database import Database
from wakeful.store.drivers.sqlite import SqliteDatabase, size_of
from wakeful.store.snapshot import PostgresSnapshot, open_snapshot

STORE_FILE = "wakeful.sqlite"
SETTINGS = "settings/wakeful.toml"
TABLES = "store/tables.json"
DATABASE_FILE = "db.sqlite"
KEY_FILE = "db.key"

_SNAPSHOTS = "snapshots"
_SMALL = 4 * 1024 * 1024  # bytes; read at once, so that a file that is being rewritten is whole
_TRIES = 50
_MAX_DEPTH = 64  # of folders
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not make us wait

Connect = Callable[[], apsw.Connection]


@dataclass(slots=True)
class Pin:
    """A database whose file and journal stay as they are until it is let go."""

    path: Path
    name: str  # in the backup
    connection: apsw.Connection | None = None  # None: nobody else has it open
    is_alone: bool = False  # its journal is not needed
    _open: list[int] = field(default_factory=list[int])

    @classmethod
    def take(cls, path: Path, name: str, connect: Connect | None) -> "Pin":
        if connect is None:
            return cls(path, name)
        connection = connect()
        try:
            for _ in range(_TRIES):
                if cls._begin(path, connection):
                    return cls(path, name, connection, is_alone=True)
                connection.execute("ROLLBACK")
            connection.execute("BEGIN")
            connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
        except BaseException:
            connection.close()
            raise
        return cls(path, name, connection)

    @staticmethod
    def _begin(path: Path, connection: apsw.Connection) -> bool:
        """Begin a read transaction; return whether the journal is empty in it, so that the file alone has that state.

        While such a transaction is open, nobody moves later pages from the journal into the file.
        """
        with suppress(apsw.BusyError):
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        connection.execute("BEGIN")
        connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchall()
        return not size_of(path.with_name(f"{path.name}-wal"))

    def read(self, archive: ArchiveWriter) -> Iterator[bytes]:
        # If others write all the time, the journal is never empty. Then the file may get pages of it meanwhile, but
        # both together are a sound state, a moment later.
        for end in ("",) if self.is_alone else ("", "-wal"):
            try:
                handle = os.open(self.path.with_name(self.path.name + end), _READ)
            except FileNotFoundError:
                continue
            self._open.append(handle)
            entry = Entry(name=self.name + end, size=os.fstat(handle).st_size)
            yield from archive.file(entry, _pieces(handle))

    def let_go(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        while self._open:  # last: closing any descriptor of a file ends this process's locks on it
            os.close(self._open.pop())


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedContents:
    """An embedded store, and the agents' folders beside it."""

    data_dir: Path
    connect_store: Connect | None
    connect_agent: Callable[[str], apsw.Connection | None] | None  # None: the server does not run

    def stream(self, archive: ArchiveWriter) -> Generator[bytes]:
        pins = self._pin_all()
        try:
            yield from self._read(archive, pins)
        finally:
            for pin in pins:
                pin.let_go()

    def _read(self, archive: ArchiveWriter, pins: Sequence[Pin]) -> Iterator[bytes]:
        for pin in pins:
            folder = pin.path.parent
            if pin.path.name == DATABASE_FILE:  # with its key, which could be rotated later
                yield from self._with_database(archive, folder)
            yield from pin.read(archive)
            pin.let_go()
        yield from _one(archive, self.data_dir, "directory.json", "store/directory.json")
        for top in ("agents", "mcp"):
            yield from tree(archive, self.data_dir / top, top, _is_read)

    def _with_database(self, archive: ArchiveWriter, folder: Path) -> Iterator[bytes]:
        name = f"agents/{folder.name}"
        yield from _one(archive, folder, KEY_FILE, f"{name}/{KEY_FILE}")
        yield from tree(archive, folder / _SNAPSHOTS, f"{name}/{_SNAPSHOTS}", lambda _: False)

    def _pin_all(self) -> list[Pin]:
        """Pin the store first: a database that is a moment ahead of it is as after a crash, one behind is a loss."""
        pins = [Pin.take(self.data_dir / STORE_FILE, f"store/{STORE_FILE}", self.connect_store)]
        try:
            for path in sorted((self.data_dir / "agents").glob(f"*/{DATABASE_FILE}")):
                agent_id = path.parent.name
                connection = None if self.connect_agent is None else self.connect_agent(agent_id)
                connect = None if connection is None else lambda found=connection: found
                with suppress(FileNotFoundError):
                    pins.append(Pin.take(path, f"agents/{agent_id}/{DATABASE_FILE}", connect))
        except BaseException:
            for pin in pins:
                pin.let_go()
            raise
        return pins


def _is_read(path: str) -> bool:
    """Return whether something in an agent's folder was read with its database, or is of no use elsewhere."""
    parts = path.split("/")
    if len(parts) != 3 or parts[0] != "agents":
        return False
    return parts[2].startswith((DATABASE_FILE, KEY_FILE, ".")) or parts[2] == _SNAPSHOTS


async def stream_contents(
    head: Head,
    device_key: bytes,
    settings: str | None,
    store: EmbeddedContents | PostgresSnapshot,
    on_written: Callable[[int], None] = lambda _: None,
) -> AsyncGenerator[bytes]:
    """Yield the inside of a backup in pieces."""
    archive = ArchiveWriter(device_key)
    yield archive.head(head)
    if settings is not None:
        yield archive.small(Entry(name=SETTINGS), settings.encode())
    if isinstance(store, PostgresSnapshot):
        async for piece in _tables(archive, store):
            on_written(len(piece))
            yield piece
    else:
        pieces = coalesced(store.stream(archive))
        try:
            while piece := await to_its_end(lambda: next(pieces, b"")):
                on_written(len(piece))
                yield piece
        finally:
            await asyncio.to_thread(pieces.close)
    yield await asyncio.to_thread(archive.finish)


async def _tables(archive: ArchiveWriter, snapshot: PostgresSnapshot) -> AsyncGenerator[bytes]:
    tables = await snapshot.tables()
    yield archive.small(Entry(name=TABLES), snapshot.describe(tables))
    for table in tables:
        number = 0
        async for piece in snapshot.rows(table):
            entry = Entry(name=f"store/{table.name}/{number:08}")
            yield await asyncio.to_thread(archive.small, entry, piece)
            number += 1


# ── Files, without following links ──────────────────────────────────────────────────────────────────────────────────


def tree(archive: ArchiveWriter, root: Path, name: str, is_skipped: Callable[[str], bool]) -> Iterator[bytes]:
    """Yield a folder and everything in it. Links in workspaces are kept; others, sockets and devices are left out."""
    try:
        handle = os.open(root, _FOLDER)
    except FileNotFoundError:
        return
    except NotADirectoryError:  # a link, too
        archive.left_out.append(name)
        return
    yield from _folder(archive, handle, name, is_skipped)


def _folder(archive: ArchiveWriter, handle: int, name: str, is_skipped: Callable[[str], bool]) -> Iterator[bytes]:
    try:
        status = os.fstat(handle)
        mode = stat.S_IMODE(status.st_mode)
        yield archive.small(Entry(name=name, kind="folder", mode=mode, mtime=status.st_mtime))
        for each in sorted(os.listdir(handle)):
            path = f"{name}/{each}"
            if not is_skipped(path):
                yield from _in_folder(archive, handle, each, path, is_skipped)
    finally:
        os.close(handle)


def _in_folder(
    archive: ArchiveWriter, handle: int, name: str, path: str, is_skipped: Callable[[str], bool]
) -> Iterator[bytes]:
    try:
        status = os.stat(name, dir_fd=handle, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode) and may_be_link(path):
            target = os.readlink(name, dir_fd=handle)
            yield archive.small(Entry(name=path, kind="link", mode=0o777, mtime=status.st_mtime, target=target))
            return
        is_folder = stat.S_ISDIR(status.st_mode) and path.count("/") < _MAX_DEPTH
        if not is_folder and not stat.S_ISREG(status.st_mode):
            archive.left_out.append(path)
            return
        found = os.open(name, _FOLDER if is_folder else _READ, dir_fd=handle)
    except FileNotFoundError:
        return  # deleted meanwhile
    except OSError:  # replaced meanwhile, or not readable
        archive.left_out.append(path)
        return
    if is_folder:
        yield from _folder(archive, found, path, is_skipped)
        return
    try:
        yield from _file(archive, found, path)
    finally:
        os.close(found)


def _one(archive: ArchiveWriter, folder: Path, name: str, path: str) -> Iterator[bytes]:
    try:
        handle = os.open(folder / name, _READ)
    except FileNotFoundError:
        return
    try:
        yield from _file(archive, handle, path)
    finally:
        os.close(handle)


def _file(archive: ArchiveWriter, handle: int, path: str) -> Iterator[bytes]:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        archive.left_out.append(path)
        return
    entry = Entry(name=path, size=status.st_size, mode=stat.S_IMODE(status.st_mode), mtime=status.st_mtime)
    if entry.size > _SMALL:
        yield from archive.file(entry, _pieces(handle))
    else:
        yield archive.small(entry, b"".join(_pieces(handle, _SMALL)))


def _pieces(handle: int, most: int | None = None) -> Iterator[bytes]:
    left = most
    while piece := os.read(handle, PIECE if left is None else min(PIECE, left)):
        yield piece
        if left is not None:
            left -= len(piece)


# ── The store and the data directory of this node ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSource:
    """Streams the inside of a backup of this node's store."""

    database: Database
    postgres_url: str | None  # None: an embedded store
    data_dir: Path
    device_key: bytes
    is_store_encrypted: bool
    read_settings: Callable[[], str | None]  # the settings file without its secrets
    clock: Clock
    is_live: bool  # a server is writing meanwhile

    async def stream(self, on_written: Callable[[int], None] = lambda _: None) -> AsyncGenerator[bytes]:
        """Yield the inside of a backup, as it is at this moment."""
        settings = await asyncio.to_thread(self.read_settings)
        head = Head(
            made_at=self.clock.now().isoformat(timespec="seconds"),
            version=version("wakeful"),
            store="embedded" if self.postgres_url is None else "postgres",
            schema=0,
            device_key=fingerprint(self.device_key),
            is_store_encrypted=self.is_store_encrypted,
        )
        if self.postgres_url is None:
            if self.is_live:
                await self.database.checkpoint()  # the journal is copied besides the file
            head = replace(head, schema=await asyncio.to_thread(self._schema))
            async with aclosing(
                stream_contents(head, self.device_key, settings, self._embedded(), on_written)
            ) as pieces:
                async for piece in pieces:
                    yield piece
            return
        async with open_snapshot(self.postgres_url) as snapshot:
            head = replace(head, schema=snapshot.schema)
            async with aclosing(stream_contents(head, self.device_key, settings, snapshot, on_written)) as pieces:
                async for piece in pieces:
                    yield piece

    def _embedded(self) -> EmbeddedContents:
        assert isinstance(self.database, SqliteDatabase)
        return EmbeddedContents(
            data_dir=self.data_dir,
            connect_store=self.database.connect if self.is_live else None,
            connect_agent=self._connect_agent if self.is_live else None,
        )

    def _schema(self) -> int:
        assert isinstance(self.database, SqliteDatabase)
        connection = self.database.connect()
        try:
            return connection.execute("SELECT COALESCE(MAX(number), 0) FROM migrations").get
        finally:
            connection.close()

    def _connect_agent(self, agent_id: str) -> apsw.Connection | None:
        """Open an agent's database; None: it is locked or damaged, so that nobody writes to it."""
        vault = Vault(lambda each: self.data_dir / "agents" / each, lambda: self.device_key)
        path = vault.database_of(agent_id)
        if file.is_plain(Path(path)):  # it is encrypted when it is first opened
            return None
        try:
            keys = vault.open(agent_id)
        except DatabaseLocked:
            return None
        for key in (keys.current, keys.previous):
            if key is not None:
                try:
                    return file.connect(path, key)
                except (apsw.NotADBError, apsw.CantOpenError):
                    continue
        return None


# ── Threads that are waited for ──────────────────────────────────────────────────────────────────────────────────────

T = TypeVar("T")


async def to_its_end(act: Callable[[], T]) -> T:
    """Run a function in a thread; when cancelled, wait until it has ended.

    Otherwise the caller would close the file that the thread still writes to.
    """
    running = asyncio.ensure_future(asyncio.to_thread(act))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
