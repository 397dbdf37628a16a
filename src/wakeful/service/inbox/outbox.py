"""Delivers notices to channels and browsers: after the commit, once, by the node that claims them first."""

import asyncio
import logging
from datetime import datetime, timedelta

from wakeful.clock import Clock
from wakeful.domain.errors import StoreUnavailable
from wakeful.domain.news import NoticeAdded
from wakeful.service.inbox.deliverer import Deliverer
from wakeful.store.store import Store

log = logging.getLogger(__name__)

_ABANDONED = timedelta(minutes=1)  # plus the channels' time limit: the age of an abandoned claim
_STALE = timedelta(hours=1)  # an older notice is only shown in the inbox
_MAX_SWEPT = 20
_STOP_WITHIN = 5.0  # seconds for running deliveries when the node stops


class Outbox:
    """Claims and delivers notices that were not delivered yet."""

    def __init__(self, store: Store, clock: Clock, deliverer: Deliverer) -> None:
        self._store = store
        self._clock = clock
        self._deliverer = deliverer
        self._delivering: set[asyncio.Task[None]] = set()
        store.on(NoticeAdded, self._take)

    def _take(self, news: NoticeAdded) -> None:
        task = asyncio.ensure_future(self._deliver(news.notice_id))
        self._delivering.add(task)
        task.add_done_callback(self._delivering.discard)

    async def sweep(self) -> None:
        """Deliver notices that a stopped node has left."""
        if self._clock.seconds_since_step() < (self._deliverer.patience + _ABANDONED).total_seconds():
            return  # running deliveries would look abandoned, and be sent twice
        before = self._abandoned_before()
        for notice_id in await self._store.read(lambda tx: tx.notices.untold(before, _MAX_SWEPT)):
            await self._deliver(notice_id)

    async def idle(self) -> None:
        """Wait until no delivery is running."""
        while self._delivering:
            await asyncio.wait(self._delivering)

    async def aclose(self) -> None:
        """Wait a few seconds for running deliveries, then cancel them."""
        if self._delivering:
            _, late = await asyncio.wait(self._delivering, timeout=_STOP_WITHIN)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _deliver(self, notice_id: str) -> None:
        now, before = self._clock.now(), self._abandoned_before()
        try:
            notice = await self._store.write(lambda tx: tx.notices.take(notice_id, now, before), is_synced=False)
            if notice is None:
                return
            if now - notice.created_at < _STALE:
                await self._deliverer.deliver(notice)
            await self._deliverer.mark_delivered(notice_id)
        except StoreUnavailable:  # the store logs it, and the next sweep finds the notice
            pass
        except Exception:  # the notice is in the inbox, and others must still be delivered
            log.exception("notice could not be delivered", extra={"notification_id": notice_id})

    def _abandoned_before(self) -> datetime:
        return self._clock.now() - self._deliverer.patience - _ABANDONED
