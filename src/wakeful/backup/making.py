"""Make a backup: from a running server, from the data directory, and before a migration."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass
from pathlib import Path

from wakeful.backup.age import Identity, Passphrase
from wakeful.backup.archive import Keys
from wakeful.backup.backup_file import BackupFile, Made, delete_drafts, write_backup
from wakeful.backup.contents import BackupSource
from wakeful.backup.service import BackupPlan
from wakeful.config.recipients import parse_every
from wakeful.config.settings import Settings
from wakeful.config.settings_file import without_secrets
from wakeful.core.clock import Clock, SystemClock
from wakeful.core.errors import NotFound, Unavailable
from wakeful.core.sources import FILE_NAME
from wakeful.datadir.device_key import database_of, device_key_of
from wakeful.datadir.files import STORE_FILE
from wakeful.datadir.lost_data import check_device_key
from wakeful.datadir.unfinished_restore import finish_restore
from wakeful.store.drivers.database import Database
from wakeful.store.drivers.sqlite import hold, size_of

log = logging.getLogger(__name__)

_BEFORE_MIGRATION = "wakeful-before-migration"
# A step, and its number of bytes so far.
OnBytes = Callable[[str, int], None]


class NothingToBackUp(NotFound):
    code = "nothing_to_back_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A new age identity and its recipient."""

    identity: str
    recipient: str


def make_key_pair() -> KeyPair:
    identity = Identity.new()
    return KeyPair(identity=identity.text, recipient=identity.recipient)


def backup_source(
    settings: Settings, database: Database, device_key: bytes, clock: Clock, *, is_live: bool
) -> BackupSource:
    """Return the source of backups of a node."""
    url = settings.database_url
    return BackupSource(
        database=database,
        postgres_url=None if url is None else url.get_secret_value(),
        data_dir=settings.data_dir,
        device_key=device_key,
        is_store_encrypted=settings.store_encryption and url is None,
        read_settings=lambda: without_secrets(settings.config_dir / FILE_NAME),
        clock=clock,
        is_live=is_live,
    )


def backup_plan(settings: Settings) -> BackupPlan | None:
    """Return the settings of scheduled backups; None: there are to be none."""
    if settings.backup_dir is None:
        return None
    return BackupPlan(
        folder=settings.backup_dir,
        recipients=settings.backup_recipients,
        every=parse_every(settings.backup_every),
        keep=settings.backup_keep,
    )


def read_keys(settings: Settings) -> Keys:
    """Return the keys of this machine, for a backup with keys."""
    check_device_key(settings)
    path = settings.config_dir / FILE_NAME
    text = path.read_text(encoding="utf-8") if path.exists() else None
    return Keys(device_key=device_key_of(settings).hex(), settings=text)


def save_stream(
    pieces: Iterator[bytes], path: Path, to: Sequence[str] | Passphrase, keys: Keys | None, on_bytes: OnBytes
) -> Made:
    """Encrypt what a server streams into a file, read it back, and give it its name."""
    count = _Count(on_bytes)
    with BackupFile(path, to, keys) as file:
        for piece in pieces:
            file.write(piece)
            count.add("written", len(piece))
        count.start_over()
        return file.finish(lambda size: count.add("read back", size))


def back_up_stopped(
    settings: Settings, path: Path, to: Sequence[str] | Passphrase, keys: Keys | None, on_bytes: OnBytes
) -> Made:
    """Back up a store that no server of this data directory uses."""
    finish_restore(settings)
    is_embedded = settings.database_url is None
    if is_embedded and not size_of(settings.data_dir / STORE_FILE):
        raise NothingToBackUp(
            f"There is no store in {str(settings.data_dir)!r}, so there is nothing to back up. Set WAKEFUL_DATA_DIR to "
            "the directory of the server, or give its address with --url."
        )
    check_device_key(settings)
    database, device_key = database_of(settings), device_key_of(settings)
    source = backup_source(settings, database, device_key, SystemClock(), is_live=False)
    count = _Count(on_bytes)

    async def make() -> Made:
        return await write_backup(
            BackupFile(path, to, keys), _counted(source, count), lambda size: count.add("read back", size)
        )

    with hold(settings.data_dir) if is_embedded else nullcontext():
        return asyncio.run(make())


async def _counted(source: BackupSource, count: "_Count") -> AsyncGenerator[bytes]:
    async for piece in source.stream(lambda size: count.add("written", size)):
        yield piece
    count.start_over()


class _Count:
    def __init__(self, on_bytes: OnBytes) -> None:
        self._on_bytes = on_bytes
        self._size = 0

    def add(self, what: str, size: int) -> None:
        self._size += size
        self._on_bytes(what, self._size)

    def start_over(self) -> None:
        self._size = 0


# ── Before a migration ───────────────────────────────────────────────────────────────────────────────────────────────


class MigrationNotBackedUp(Unavailable):
    code = "migration_not_backed_up"


async def back_up_before_migration(
    settings: Settings, database: Database, device_key: bytes, clock: Clock, schema: int
) -> None:
    """Write a backup of a store on PostgreSQL, which has no way back from a migration without one.

    The device key opens it, and the recipients in the settings, if there are any. An embedded store is copied as a file
    instead (`store/migrate.py`).
    """
    folder = settings.backup_dir or settings.data_dir / "backups"
    now = clock.now()
    path = folder / f"{_BEFORE_MIGRATION}-schema{schema}-{now:%Y-%m-%dT%H%M%SZ}.age"
    log.info("store is backed up before its migration", extra={"path": str(path)})
    source = backup_source(settings, database, device_key, clock, is_live=True)
    recipients = [Identity.derived(device_key).recipient, *settings.backup_recipients]
    try:
        _prepare(folder)
        async with aclosing(source.stream()) as pieces:
            made = await write_backup(BackupFile(path, recipients), pieces)
    except (Unavailable, OSError) as error:
        problem = error.message if isinstance(error, Unavailable) else f"{error.strerror} ({error.filename})."
        raise MigrationNotBackedUp(
            f"The schema of this PostgreSQL database is older (migration {schema}), and must be migrated. Before that, "
            f"everything in it is copied to {str(folder)!r}, which failed: {problem} Nothing was migrated. Fix that "
            "and start again; or, if you have a backup of your own, start with --no-backup."
        ) from error
    log.info("store backed up before its migration", extra={"path": str(path), "bytes": made.size})


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    delete_drafts(folder, _BEFORE_MIGRATION)
