"""Where a backup comes from: the store and the data directory of this node."""
# apsw's types name collections.abc.Buffer, which Python 3.11 does not have, so its methods count as partly unknown.
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import apsw

from wakeful.agentdb.errors import DatabaseLocked
from wakeful.agentdb.files import files
from wakeful.agentdb.keys.agent_keys import Vault
from wakeful.agentdb.keys.keys import fingerprint
from wakeful.clock import Clock
from wakeful.service.backup import contents
from wakeful.service.backup.archive import Head
from wakeful.service.backup.contents import EmbeddedContents
from wakeful.store.backup.postgres_snapshot import open_snapshot
from wakeful.store.drivers.database import Database
from wakeful.store.drivers.sqlite import SqliteDatabase


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
                contents.stream(head, self.device_key, settings, self._embedded(), on_written)
            ) as pieces:
                async for piece in pieces:
                    yield piece
            return
        async with open_snapshot(self.postgres_url) as snapshot:
            elsewhere = await snapshot.agents_elsewhere()
            head = replace(head, schema=snapshot.schema, agents_elsewhere=elsewhere)
            async with aclosing(contents.stream(head, self.device_key, settings, snapshot, on_written)) as pieces:
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
        if files.is_plain(Path(path)):  # it is encrypted when it is first opened
            return None
        try:
            keys = vault.open(agent_id)
        except DatabaseLocked:
            return None
        for key in (keys.current, keys.previous):
            if key is not None:
                try:
                    return files.connect(path, key)
                except (apsw.NotADBError, apsw.CantOpenError):
                    continue
        return None
