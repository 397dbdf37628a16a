"""Tells the channels what the host has put into the inbox: after the commit, once, whichever node hears of it first."""

import asyncio
import logging
from datetime import datetime, timedelta

from wakeful.clock import Clock
from wakeful.domain.errors import StoreUnavailable
from wakeful.service.inbox.channels import Channels
from wakeful.service.retrying import insist
from wakeful.store.store import Store

log = logging.getLogger(__name__)

_LEFT_BEHIND = timedelta(minutes=1)  # and what the channels take: then nobody is at it any more
_STALE = timedelta(hours=1)  # what is older is no news; it stands in the inbox
_MOST_AT_ONCE = 20
_PATIENCE = 5.0  # seconds for what is under way when the node goes down


class Outbox:
    """Takes on notices that no channel was told yet."""

    def __init__(self, store: Store, clock: Clock, channels: Channels) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._telling: set[asyncio.Task[None]] = set()

    def hear(self, news: str) -> None:
        """Take a hint from the store."""
        word, _, notice_id = news.partition(" ")
        if word == "notice":
            task = asyncio.ensure_future(self._tell(notice_id))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def sweep(self) -> None:
        """Take on what a node that went down had not."""
        if self._clock.seconds_since_step() < (self._channels.patience + _LEFT_BEHIND).total_seconds():
            return  # what is being told right now would look left behind, and be told twice
        before = self._left_behind()
        for notice_id in await self._store.read(lambda tx: tx.notices.untold(before, _MOST_AT_ONCE)):
            await self._tell(notice_id)

    async def idle(self) -> None:
        """Wait until everything that was heard of is told."""
        while self._telling:
            await asyncio.wait(self._telling)

    async def aclose(self) -> None:
        """Let what is under way end, but not for long."""
        if self._telling:
            _, late = await asyncio.wait(self._telling, timeout=_PATIENCE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _tell(self, notice_id: str) -> None:
        now, before = self._clock.now(), self._left_behind()
        try:
            notice = await self._store.write(lambda tx: tx.notices.take(notice_id, now, before), is_synced=False)
            if notice is None:
                return
            if now - notice.created_at < _STALE:
                await self._channels.deliver(notice)
            # The channels are told by now: nobody may take it for untold when the store is back.
            settled_at = self._clock.now()
            await insist(
                lambda: self._store.write(lambda tx: tx.notices.settle(notice_id, settled_at), is_synced=False)
            )
        except StoreUnavailable:  # which logs that itself; the next sweep finds the notice
            pass
        except Exception:  # one notice's trouble is no other's; it stands in the inbox
            log.exception("notice could not be told", extra={"notification_id": notice_id})

    def _left_behind(self) -> datetime:
        return self._clock.now() - self._channels.patience - _LEFT_BEHIND
