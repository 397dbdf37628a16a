"""Restore a backup to PostgreSQL, in one transaction: its commit puts everything into place."""

from collections.abc import AsyncIterator, Iterator

from wakeful.backup import contents
from wakeful.backup.archive import ArchiveReader, Entry, UnfitBackup
from wakeful.backup.restore_plan import (
    NotEmpty,
    Plan,
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
from wakeful.datadir.files import settings_path
from wakeful.datadir.move import place_of
from wakeful.store.snapshot import CopiedTable, PostgresLoad, open_load, read_tables


async def restore_postgres(settings: Settings, reader: ArchiveReader, key: bytes, options: RestoreOptions) -> Result:
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
        settings_text = whole_settings(reader, await _load(load, reader, options))
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
            risks=find_settings_risks(settings_text),
            locked=[],
            left_out=reader.left_out,
            changed=reader.changed,
        )
        options.on_step("prepared the store")
        options.confirm(plan)
        recovery_key = place_key(settings, key)
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
