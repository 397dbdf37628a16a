"""Restore a backup to an embedded store.

Everything is read, checked and prepared in a folder of its own. Then it is put into place by a record that every later
start follows (`unfinished_restore`).
"""

import asyncio
import errno
import os
import shutil
from pathlib import Path
from secrets import token_hex

from wakeful.agentdb.errors import DatabaseLocked
from wakeful.agentdb.keys import KEY_FILE, Vault
from wakeful.backup import contents
from wakeful.backup.archive import ArchiveReader, Extraction, Head, UnfitBackup
from wakeful.backup.restore_plan import (
    CannotRestore,
    NotEmpty,
    Plan,
    Restored,
    RestoreOptions,
    Result,
    find_settings_risks,
    place_key,
    settle_restored,
    whole_settings,
)
from wakeful.config.settings import Settings
from wakeful.core.clock import SystemClock
from wakeful.core.files import replace_file
from wakeful.datadir.files import (
    NEW,
    OURS,
    RECORD,
    SETTINGS,
    STAGING,
    STORE_FILE,
    Decided,
    apply,
    decide,
    is_something,
    settings_path,
)
from wakeful.datadir.set_aside import check_movable, make_folder
from wakeful.store.drivers.sqlite import SqliteDatabase
from wakeful.store.drivers.sqlite_thread import SEQUENCE_FILE, start_sequence
from wakeful.store.drivers.sqlite_thread import Sequence as StoreSequence
from wakeful.store.store import Store

_IN_STORE = {f"store/{STORE_FILE}": STORE_FILE, f"store/{STORE_FILE}-wal": f"{STORE_FILE}-wal"} | {
    "store/directory.json": "directory.json"
}


def restore_embedded(
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
        recovery_key = place_key(settings, key)
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
    settings_text = whole_settings(reader, _extract(reader, new, options))
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
        risks=[*find_settings_risks(settings_text), *_homes_of_mcp(new / "mcp")],
        locked=_find_locked(new / "agents", key),
        left_out=reader.left_out,
        changed=reader.changed,
    )


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
