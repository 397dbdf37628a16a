"""`wakeful restore`: fill an empty data directory or database from a backup, or replace what is there.

Everything is read, checked and prepared in a place of its own first. Then it is put into place in one step: by the
commit of a transaction in PostgreSQL, or by a record that every later start follows (`unfinished_restore`).
"""

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from secrets import token_hex

from wakeful.agentdb.errors import DatabaseLocked
from wakeful.agentdb.keys import KEY_FILE, Vault
from wakeful.backup import contents
from wakeful.backup.age import Decryptor, Identity, Unlocks
from wakeful.backup.archive import ArchiveReader, BackupIsNewer, Entry, Extraction, Head, UnfitBackup
from wakeful.backup.service import CountedReader
from wakeful.config.settings import Settings, find_risks
from wakeful.core import device_key as device_keys
from wakeful.core import ids
from wakeful.core.clock import SystemClock
from wakeful.core.device_key import fingerprint, has_device_key, to_recovery_key
from wakeful.core.errors import Conflict, NotFound, Unavailable
from wakeful.core.files import find_running, replace_file
from wakeful.core.types import FOREVER, Pause, Token, User, Wake
from wakeful.datadir.device_key import device_key_of
from wakeful.datadir.files import OURS, STORE_FILE, is_something
from wakeful.datadir.move import place_of
from wakeful.datadir.set_aside import check_movable, make_folder
from wakeful.datadir.unfinished_restore import (
    NEW,
    RECORD,
    SETTINGS,
    STAGING,
    Decided,
    apply,
    decide,
    finish_held,
    settings_path,
)
from wakeful.runs import rules as runs_rules
from wakeful.runs.claims import end_wake
from wakeful.store.drivers.sqlite import SqliteDatabase, hold
from wakeful.store.drivers.sqlite_thread import SEQUENCE_FILE, start_sequence
from wakeful.store.drivers.sqlite_thread import Sequence as StoreSequence
from wakeful.store.errors import StoreInUse
from wakeful.store.migrate import OLDEST, load_migrations
from wakeful.store.snapshot import CopiedTable, PostgresLoad, open_load, read_tables
from wakeful.store.store import Store, Tx

# Prepare a restored store for its first start: logins are ended, and nothing runs before someone resumes it.
#
# The server that the backup was made of may still run. Two servers must not fire the same wakes.


_PAGE = 1_000
_SHOWN = 10  # wakes of the report


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, and the tokens that still work."""

    user: User
    tokens: Sequence[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A restored store, and the wakes that run when it is resumed."""

    people: Sequence[Person]
    browsers: int  # that were logged out
    agents: int
    interrupted: int  # runs
    overdue: int  # wakes that came due since the backup was made; each runs once when it is resumed
    waiting: int  # wakes with a later time
    next_wakes: Sequence[Wake]


async def settle_restored(tx: Tx, made_at: str, now: datetime) -> Restored:
    """End logins and unfinished runs, and pause everything."""
    browsers = await tx.accounts.end_logins(now)
    users = await tx.accounts.users()
    interrupted = 0
    for user in users:
        interrupted += await _interrupt(tx, user.id, now)
        await _pause(tx, user.id, made_at, now)
    wakes = [wake for user in users for wake in await _live(tx, user.id)]
    later = sorted((wake for wake in wakes if wake.nominal_at > now), key=lambda wake: wake.nominal_at)
    return Restored(
        people=[Person(user=user, tokens=await tx.accounts.tokens_of(user.id, now)) for user in users],
        browsers=browsers,
        agents=sum([len(await tx.agents.of_user(user.id)) for user in users]),
        interrupted=interrupted,
        overdue=len(wakes) - len(later),
        waiting=len(later),
        next_wakes=later[:_SHOWN],
    )


async def _pause(tx: Tx, user_id: str, made_at: str, now: datetime) -> None:
    reason = f"Restored from a backup of {made_at}. Resume when no other server runs with the same data."
    pause = Pause(id=ids.new_id(now), user_id=user_id, agent_id=None, started_at=now, until=FOREVER, reason=reason)
    await tx.agents.end_pauses(user_id, None, now)
    await tx.agents.add_pause(pause)


async def _interrupt(tx: Tx, user_id: str, now: datetime) -> int:
    """End the runs of a user that a pause would not hold; a person can continue them."""
    count = 0
    for status in ("running", "queued"):
        before = None
        while found := await tx.runs.of_user(user_id, status=status, before=before, most=_PAGE):
            before = (found[-1].queued_at, found[-1].id)
            for run in found:
                ended = runs_rules.interrupt_restored(run, now)
                if ended is None:
                    continue
                if status == "running":
                    await tx.runs.recover(ended)
                else:
                    await tx.runs.end_queued(run.id, "interrupted", "restored", now)
                if run.wake_id is not None and not (await tx.wakes.get(run.wake_id)).is_recurring:
                    await end_wake(tx, ended, "failed", "interrupted", now, ended.error)
                count += 1
    return count


async def _live(tx: Tx, user_id: str) -> list[Wake]:
    wakes: list[Wake] = []
    after = None
    while found := await tx.wakes.of_user(user_id, is_live=True, after=after, most=_PAGE):
        wakes += found
        after = (found[-1].nominal_at, found[-1].id)
    return wakes


_IN_STORE = {f"store/{STORE_FILE}": STORE_FILE, f"store/{STORE_FILE}-wal": f"{STORE_FILE}-wal"} | {
    "store/directory.json": "directory.json"
}


class NotEmpty(Conflict):
    code = "restore_target_not_empty"


class OtherStoreKind(Conflict):
    code = "other_store_kind"


class DeviceKeyNeeded(NotFound):
    code = "device_key_needed"


class OtherDeviceKeyHere(Conflict):
    code = "other_device_key_here"


class CannotRestore(Unavailable):
    code = "cannot_restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A backup that was read and checked, before it is put into place."""

    head: Head
    restored: Restored
    place: str  # where to
    replaces: bool
    settings_file: Path | None  # where the settings in it go
    has_keys: bool
    is_proven: bool  # one who has the device key of this machine made the backup
    risks: Sequence[str]  # what in the settings and beside them could do harm, if somebody else made it
    locked: Sequence[str]  # agents whose database the device key does not open
    left_out: Sequence[str]
    changed: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """Callbacks that open a backup, ask and show progress."""

    find_keys: Callable[[bool], Sequence[Unlocks]]  # given whether there is a passphrase
    replaces: bool = False
    confirm: Callable[[Plan], None] = lambda _: None  # may raise
    on_step: Callable[[str], None] = lambda _: None
    on_bytes: Callable[[str, int], None] = lambda _what, _size: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A restore that is done."""

    plan: Plan
    aside: Path | None  # the folder with the old data
    recovery_key: str | None  # of a device key that came with the backup


def restore_backup(settings: Settings, path: Path, options: RestoreOptions) -> Result:
    """Restore a backup to the store of the settings."""
    running = find_running(settings.data_dir)
    if running is not None:
        raise StoreInUse(settings.data_dir, str(running.pid))
    with hold(settings.data_dir), _opened(path) as handle:
        finish_held(settings)
        size = 0

        def count(more: int) -> None:
            nonlocal size
            size += more
            options.on_bytes("read", size)

        has_own = settings.device_key is not None or has_device_key(settings.config_dir)
        own = device_key_of(settings) if has_own else None
        # Copies before an upgrade are encrypted to the identity of the device key.
        tried = [] if own is None else [Identity.derived(own)]
        source = Decryptor(CountedReader(handle, count), lambda is_locked: [*tried, *options.find_keys(is_locked)])
        reader = ArchiveReader(source, own)
        options.on_step("opened the backup")
        _check_head(settings, reader.head)
        key = _find_device_key(settings, reader, own)
        if settings.database_url is None:
            return _restore_embedded(settings, reader, key, os.fstat(handle).st_size, options)
        return asyncio.run(_restore_postgres(settings, reader, key, options))


@contextmanager
def _opened(path: Path) -> Generator[int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotRestore(
            f"The backup {str(path)!r} cannot be read: {error.strerror}. Nothing was changed."
        ) from error
    try:
        yield handle
    finally:
        os.close(handle)


def _check_head(settings: Settings, head: Head) -> None:
    dialect = "sqlite" if head.store == "embedded" else "postgres"
    newest = max(migration.number for migration in load_migrations(dialect))
    if head.schema > newest:
        raise BackupIsNewer(
            f"This backup was made by Wakeful {head.version}, whose store has schema {head.schema}; this version knows "
            f"up to {newest}. Nothing was changed. Install that version or a later one, and restore again."
        )
    if head.schema < OLDEST[dialect]:
        raise CannotRestore(
            f"This backup was made by a version before 0.2 (schema {head.schema}). Nothing was changed. Restore it "
            "with 0.2, start that once, then 0.3."
        )
    wanted = "embedded" if settings.database_url is None else "postgres"
    if head.store == wanted:
        return
    raise OtherStoreKind(
        "This backup is of a store on PostgreSQL, and no database is set. Nothing was changed. Set "
        "WAKEFUL_DATABASE_URL (database_url) to an empty PostgreSQL database, and restore again."
        if head.store == "postgres"
        else "This backup is of an embedded store, and WAKEFUL_DATABASE_URL (database_url) is set. Nothing was "
        "changed. Unset it and restore again; `wakeful move` can then move the store to PostgreSQL."
    )


def _find_device_key(settings: Settings, reader: ArchiveReader, own: bytes | None) -> bytes:
    """Return the device key of the data: the one that is here, or the one in the backup."""
    needed = reader.head.device_key
    if own is not None:
        if fingerprint(own) == needed:
            return own
        raise OtherDeviceKeyHere(
            f"The data in this backup is encrypted with the device key with fingerprint {needed}, and the one here has "
            f"{fingerprint(own)}. Nothing was changed. Keep {str(settings.config_dir / device_keys.KEY_FILE)!r} under "
            "another name, restore the right one with `wakeful key restore` and its recovery key (or use a backup with "
            "keys), and try again."
        )
    if reader.keys is None:
        raise DeviceKeyNeeded(
            f"The data in this backup is encrypted with the device key with fingerprint {needed}, which is not in the "
            f"backup and not in {str(settings.config_dir)!r}. Nothing was changed. Put device.key there, or restore it "
            "with `wakeful key restore` and its recovery key, and try again."
        )
    key = bytes.fromhex(reader.keys.device_key)
    if fingerprint(key) != needed:
        raise UnfitBackup("The device key in the backup is not the one of its data. Nothing was changed.")
    return key


def _place_key(settings: Settings, key: bytes) -> str | None:
    """Write a device key that came with the backup, and return its recovery key."""
    if settings.device_key is not None or has_device_key(settings.config_dir):
        return None
    device_keys.restore_device_key(settings.config_dir, to_recovery_key(key))
    return to_recovery_key(key)


# ── An embedded store ───────────────────────────────────────────────────────────────────────────────────────────────


def _restore_embedded(
    settings: Settings, reader: ArchiveReader, key: bytes, size: int, options: RestoreOptions
) -> Result:
    data_dir = settings.data_dir
    old = [name for name in OURS if is_something(data_dir / name)]
    if old and not options.replaces:
        raise NotEmpty(
            f"The data directory {str(data_dir)!r} is not empty: it has {', '.join(old)}. Nothing was changed. Set "
            "WAKEFUL_DATA_DIR to an empty one, or give --replace, which moves the present data aside."
        )
    check_movable(data_dir, old)
    free = shutil.disk_usage(data_dir).free
    if size > free:
        raise CannotRestore(
            f"The backup has {size:,} bytes, and the disk of {str(data_dir)!r} has {free:,} free. Nothing was changed."
        )
    folder = data_dir / f"{STAGING}{token_hex(4)}"
    try:
        plan = _prepare(settings, reader, key, folder, options)
        options.confirm(plan)
        recovery_key = _place_key(settings, key)
        aside = make_folder(data_dir, SystemClock().now()) if old else None
        decided = Decided(folder=folder.name, aside=None if aside is None else aside.name)
        options.on_step("checked everything")
        decide(data_dir, decided)
    except OSError as error:
        raise _cannot_write(data_dir, error) from error
    finally:
        if not (data_dir / RECORD).exists():
            shutil.rmtree(folder, ignore_errors=True)
    options.on_step("decided")
    apply(settings, decided)
    options.on_step("put into place")
    return Result(plan=plan, aside=aside, recovery_key=recovery_key)


def _prepare(settings: Settings, reader: ArchiveReader, key: bytes, folder: Path, options: RestoreOptions) -> Plan:
    """Extract everything, and make the store ready for its first start."""
    new = folder / NEW
    folder.mkdir(mode=0o700)
    new.mkdir(mode=0o700)
    settings_text = _whole_settings(reader, _extract(reader, new, options))
    if settings_text is not None:
        replace_file(folder / SETTINGS, settings_text)
    options.on_step("read everything")
    restored = asyncio.run(_settle(new, key if reader.head.is_store_encrypted else None, reader.head))
    options.on_step("prepared the store")
    os.sync()  # one by one, a hundred thousand small files would take minutes
    return Plan(
        head=reader.head,
        restored=restored,
        place=str(settings.data_dir),
        replaces=any(is_something(settings.data_dir / name) for name in OURS),
        settings_file=None if settings_text is None else settings_path(settings, settings_text),
        has_keys=reader.keys is not None,
        is_proven=reader.is_proven,
        risks=[*_find_risks(settings_text), *_homes_of_mcp(new / "mcp")],
        locked=_find_locked(new / "agents", key),
        left_out=reader.left_out,
        changed=reader.changed,
    )


def _whole_settings(reader: ArchiveReader, found: bytes | None) -> bytes | None:
    """Return the settings file with its secrets, if the backup has them."""
    whole = None if reader.keys is None else reader.keys.settings
    return found if whole is None else whole.encode()


def _find_risks(settings_text: bytes | None) -> list[str]:
    return [] if settings_text is None else find_risks(settings_text.decode(errors="replace"))


def _homes_of_mcp(folder: Path) -> list[str]:
    """Name the directories of MCP servers: a program takes settings and other programs from its home directory."""
    names = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
    return [f"mcp/{name}, the home directory of an MCP server" for name in names]


def _extract(reader: ArchiveReader, new: Path, options: RestoreOptions) -> bytes | None:
    """Write the files of a backup, and return the settings in it."""
    settings_text = None
    with Extraction(new) as extraction:
        for entry, pieces in reader.entries():
            if entry.name == contents.SETTINGS:
                settings_text = b"".join(pieces)
                continue
            path = _IN_STORE.get(entry.name) if entry.name.startswith("store/") else entry.name
            if path is None or entry.name.startswith("settings/"):
                raise UnfitBackup(f"The backup has {entry.name!r}, which is of no use here. Nothing was changed.")
            extraction.add(path, entry, pieces)
            options.on_step("wrote a file")
        extraction.finish()
    if not (new / STORE_FILE).exists():
        raise UnfitBackup("There is no store in the backup. Nothing was changed.")
    return settings_text


async def _settle(new: Path, key: bytes | None, head: Head) -> Restored:
    clock = SystemClock()
    now = clock.now()
    start_sequence(new / SEQUENCE_FILE, now)
    store = Store(SqliteDatabase(new / STORE_FILE, key, StoreSequence(new / SEQUENCE_FILE, clock.now)))
    await store.open(now)
    try:
        restored = await store.write(lambda tx: settle_restored(tx, head.made_at, now))
    finally:
        await store.close()
    (new / "wakeful.lock").unlink(missing_ok=True)
    shutil.rmtree(new / "backups", ignore_errors=True)  # from before its migration: the backup itself is that
    return restored


def _find_locked(agents: Path, key: bytes) -> list[str]:
    vault, locked = Vault(lambda agent_id: agents / agent_id, lambda: key), list[str]()
    for path in sorted(agents.glob(f"*/{KEY_FILE}")):
        try:
            vault.open(path.parent.name)
        except DatabaseLocked:
            locked.append(path.parent.name)
    return locked


def _cannot_write(data_dir: Path, error: OSError) -> CannotRestore:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    what = "its disk is full" if full else f"{error.strerror or error} ({error.filename})"
    return CannotRestore(f"The data directory {str(data_dir)!r} cannot be written: {what}. Nothing was changed.")


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def _restore_postgres(settings: Settings, reader: ArchiveReader, key: bytes, options: RestoreOptions) -> Result:
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    async with open_load(url) as load:
        await load.refuse_nodes(settings.lease_seconds)
        is_used = await load.is_used()
        if is_used and not options.replaces:
            raise NotEmpty(
                f"The PostgreSQL database {place_of(url)} is not empty. Nothing was changed. Set WAKEFUL_DATABASE_URL "
                "to an empty one, or give --replace, which deletes what is in this one."
            )
        settings_text = _whole_settings(reader, await _load(load, reader, options))
        options.on_step("read everything")
        await load.upgrade(reader.head.schema)
        now = SystemClock().now()
        restored = await load.carry_out(lambda tx: settle_restored(tx, reader.head.made_at, now))
        plan = Plan(
            head=reader.head,
            restored=restored,
            place=place_of(url),
            replaces=is_used,
            settings_file=None if settings_text is None else settings_path(settings, settings_text),
            has_keys=reader.keys is not None,
            is_proven=reader.is_proven,
            risks=_find_risks(settings_text),
            locked=[],
            left_out=reader.left_out,
            changed=reader.changed,
        )
        options.on_step("prepared the store")
        options.confirm(plan)
        recovery_key = _place_key(settings, key)
        options.on_step("checked everything")
        await load.commit()
        options.on_step("put into place")
    if settings_text is not None and plan.settings_file is not None:
        replace_file(plan.settings_file, settings_text)
    return Result(plan=plan, aside=None, recovery_key=recovery_key)


async def _load(load: PostgresLoad, reader: ArchiveReader, options: RestoreOptions) -> bytes | None:
    """Copy the rows of a backup into the database, and return the settings in it."""
    rows = _Rows(reader)
    settings_text = rows.take(contents.SETTINGS)
    described = rows.take(contents.TABLES)
    try:
        tables = read_tables(described or b"")
    except (ValueError, TypeError, KeyError) as error:
        raise UnfitBackup(f"The tables of the backup cannot be read ({error}). Nothing was changed.") from error
    await load.create(reader.head.schema)
    await load.empty(tables)
    for table in tables:
        await load.add(table, rows.of(table))
        options.on_step(f"copied {table.name}")
    rows.finish()
    return settings_text


class _Rows:
    """The entries of a backup of PostgreSQL, in their order."""

    def __init__(self, reader: ArchiveReader) -> None:
        self._entries = reader.entries()
        self._next: tuple[Entry, Iterator[bytes]] | None = next(self._entries, None)

    def take(self, name: str) -> bytes | None:
        if self._next is None or self._next[0].name != name:
            return None
        data = b"".join(self._next[1])
        self._next = next(self._entries, None)
        return data

    async def of(self, table: CopiedTable) -> AsyncIterator[bytes]:
        while self._next is not None and self._next[0].name.startswith(f"store/{table.name}/"):
            for piece in self._next[1]:
                yield piece
            self._next = next(self._entries, None)

    def finish(self) -> None:
        """Raise if something else is in the backup; the manifest was compared when the last entry was read."""
        if self._next is not None:
            raise UnfitBackup(f"The backup has {self._next[0].name!r}, which is of no use here. Nothing was changed.")
