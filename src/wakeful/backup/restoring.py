"""`wakeful restore`: fill an empty data directory or database from a backup, or replace what is there.

Everything is read, checked and prepared in a place of its own first. Then it is put into place in one step: by the
commit of a transaction in PostgreSQL, or by a record that every later start follows (`unfinished_restore`).
"""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from wakeful.backup.age import Decryptor, Identity
from wakeful.backup.archive import ArchiveReader, BackupIsNewer, Head, UnfitBackup
from wakeful.backup.backup_file import CountedReader
from wakeful.backup.restore_embedded import restore_embedded
from wakeful.backup.restore_plan import (
    CannotRestore,
    DeviceKeyNeeded,
    OtherDeviceKeyHere,
    OtherStoreKind,
    RestoreOptions,
    Result,
)
from wakeful.backup.restore_postgres import restore_postgres
from wakeful.config.settings import Settings
from wakeful.core import device_key as device_keys
from wakeful.core.device_key import fingerprint, has_device_key
from wakeful.core.files import find_running
from wakeful.datadir.device_key import device_key_of
from wakeful.datadir.files import finish_held
from wakeful.store.drivers.sqlite import hold
from wakeful.store.errors import StoreInUse
from wakeful.store.migrate import OLDEST, load_migrations


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
            return restore_embedded(settings, reader, key, os.fstat(handle).st_size, options)
        return asyncio.run(restore_postgres(settings, reader, key, options))


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
