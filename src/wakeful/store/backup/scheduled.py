"""Scheduled backups in the store: which node makes the next one, and how the last ones ended."""

from dataclasses import replace
from datetime import datetime

from wakeful.domain.backup.schedule import BackupState
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import Table, to_micros

_STATES = Table(BackupState)


class BackupRows:
    """Statements about scheduled backups, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def state(self) -> BackupState:
        return _STATES.read_first(await self._statements.fetch("scheduled_backups", {})) or BackupState()

    async def take(self, before: BackupState, node: str, now: datetime) -> BackupState | None:
        """Begin a backup on a node; None: another node has begun one since this state was read."""
        earlier, renewed = (0 if at is None else to_micros(at) for at in (before.started_at, before.renewed_at))
        params = {"now": to_micros(now), "node": node, "before": earlier, "renewed_before": renewed}
        if not await self._statements.fetch("take_scheduled_backup", params):
            return None
        return replace(before, started_at=now, renewed_at=now, node=node)

    async def renew(self, started_at: datetime, now: datetime) -> None:
        await self._statements.fetch(
            "renew_scheduled_backup", {"started_at": to_micros(started_at), "now": to_micros(now)}
        )

    async def finish(self, started_at: datetime, now: datetime, file: str, size: int) -> None:
        params = {"started_at": to_micros(started_at), "now": to_micros(now), "file": file, "size": size}
        await self._statements.fetch("finish_scheduled_backup", params)

    async def fail(self, started_at: datetime, now: datetime, error: str) -> None:
        params = {"started_at": to_micros(started_at), "now": to_micros(now), "error": error}
        await self._statements.fetch("fail_scheduled_backup", params)
