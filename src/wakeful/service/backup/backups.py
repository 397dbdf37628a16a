"""Backups of a running server, for its owners."""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from wakeful.domain.backup.schedule import BackupState
from wakeful.domain.errors import Conflict
from wakeful.domain.people.accounts import Identity, OwnersOnly
from wakeful.service.backup.scheduled import BackupPlan, ScheduledBackups
from wakeful.service.backup.source import BackupSource

log = logging.getLogger(__name__)


class BackupRunning(Conflict):
    code = "backup_running"
    text = "Another backup of this server is running. Wait until it has ended, and try again."


class Backups:
    """Streams backups to owners, one at a time."""

    def __init__(self, source: BackupSource, scheduled: ScheduledBackups) -> None:
        self._source = source
        self._scheduled = scheduled
        self._is_running = False

    async def scheduled(self, caller: Identity) -> tuple[BackupPlan | None, BackupState]:
        """Return the settings of scheduled backups and how the last ones ended. Only for owners."""
        if caller.user.role != "owner":
            raise OwnersOnly
        return self._scheduled.plan, await self._scheduled.state()

    def begin(self, caller: Identity) -> AsyncGenerator[bytes]:
        """Return the inside of a backup, not encrypted. Only for owners: it has everyone's data.

        The keys are never in it: they are in files that only programs on the server's machine can read.
        """
        if caller.user.role != "owner":
            raise OwnersOnly
        if self._is_running:
            raise BackupRunning
        return self._stream(caller)

    async def _stream(self, caller: Identity) -> AsyncGenerator[bytes]:
        if self._is_running:
            raise BackupRunning
        self._is_running = True
        size, is_whole = 0, False
        log.info("backup begun", extra={"user_id": caller.user.id, "token_id": caller.token_id})
        try:
            async with aclosing(self._source.stream()) as pieces:
                async for piece in pieces:
                    size += len(piece)
                    yield piece
            is_whole = True
        finally:
            self._is_running = False
            outcome = "sent" if is_whole else "broken off"
            log.info("backup ended", extra={"user_id": caller.user.id, "bytes": size, "outcome": outcome})
