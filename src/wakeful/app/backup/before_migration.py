"""A backup of a store on PostgreSQL before its schema is migrated, since there is no way back without one.

An embedded store is copied as a file instead (`store/migrate.py`).
"""

import logging
from contextlib import aclosing
from pathlib import Path

from wakeful.app.backup.backups import backup_source
from wakeful.clock import Clock
from wakeful.config import Settings
from wakeful.domain.errors import Unavailable
from wakeful.service.backup.age import Identity
from wakeful.service.backup.backup_file import BackupFile, delete_drafts, write_backup
from wakeful.store.drivers.database import Database

log = logging.getLogger(__name__)

_PREFIX = "wakeful-before-migration"


class MigrationNotBackedUp(Unavailable):
    code = "migration_not_backed_up"


async def back_up_before_migration(
    settings: Settings, database: Database, device_key: bytes, clock: Clock, schema: int
) -> None:
    """Write a backup that the device key opens, and the recipients in the settings, if there are any."""
    folder = settings.backup_dir or settings.data_dir / "backups"
    now = clock.now()
    path = folder / f"{_PREFIX}-schema{schema}-{now:%Y-%m-%dT%H%M%SZ}.age"
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
    delete_drafts(folder, _PREFIX)
