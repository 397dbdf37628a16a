"""Delivers notices from the inbox to the channels: after the commit, once, by the node that claims them first."""

import asyncio
import logging
from datetime import datetime, timedelta

from wakeful.clock import Clock
from wakeful.domain.errors import StoreUnavailable
from wakeful.domain.news import NoticeAdded
from wakeful.service.inbox.channels import Channels
from wakeful.service.retrying import insist
from wakeful.store.store import Store

log = logging.getLogger(__name__)

_LEFT_BEHIND = timedelta(minutes=1)  # besides the channels' time: a claim that old has been abandoned
_STALE = timedelta(hours=1)  # an older notice is only shown in the inbox
_MOST_AT_ONCE = 20
_PATIENCE = 5.0  # seconds for what is under way when the node goes down


class Outbox:
    """Claims notices that were not delivered yet."""

    def __init__(self, store: Store, clock: Clock, channels: Channels) -> None:
        self._store = store
        self._clock = clock
        self._channels = channels
        self._delivering: set[asyncio.Task[None]] = set()
        store.on(NoticeAdded, self._take)

    def _take(self, news: NoticeAdded) -> None:
        task = asyncio.ensure_future(self._deliver(news.notice_id))
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)

    async def sweep(self) -> None:
        """Deliver what a node that went down had not."""
        if self._clock.seconds_since_step() < (self._channels.patience + _LEFT_BEHIND).total_seconds():
            return  # what is being delivered right now would look abandoned, and be delivered twice
        before = self._left_behind()
        for notice_id in await self._store.read(lambda tx: tx.notices.untold(before, _MOST_AT_ONCE)):
            await self._deliver(notice_id)

    async def idle(self) -> None:
        """Wait until everything known of is delivered."""
        while self._delivering:
            await asyncio.wait(self._delivering)

    async def aclose(self) -> None:
        """Let what is under way end, but not for long."""
        if self._delivering:
            _, late = await asyncio.wait(self._delivering, timeout=_PATIENCE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _deliver(self, notice_id: str) -> None:
        now, before = self._clock.now(), self._left_behind()
        try:
            notice = await self._store.write(lambda tx: tx.notices.take(notice_id, now, before), is_synced=False)
            if notice is None:
                return
            if now - notice.created_at < _STALE:
                await self._channels.deliver(notice)
            # Delivered by now: no node may claim it again when the store is back.
            settled_at = self._clock.now()
            await insist(
                lambda: self._store.write(lambda tx: tx.notices.settle(notice_id, settled_at), is_synced=False)
            )
        except StoreUnavailable:  # which logs that itself; the next sweep finds the notice
            pass
        except Exception:  # the others are delivered all the same, and this one is in the inbox
            log.exception("notice could not be delivered", extra={"notification_id": notice_id})

    def _left_behind(self) -> datetime:
        return self._clock.now() - self._channels.patience - _LEFT_BEHIND
