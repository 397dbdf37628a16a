"""Notifies owners that a part of the store is missing."""

import logging

from wakeful.clock import Clock
from wakeful.domain.inbox import notices
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)


async def report_loss(store: Store, clock: Clock) -> None:
    """Add a notice to every owner's inbox if the store is older than at the last start."""
    loss, now = store.loss, clock.now()
    if loss is None:
        return
    since = None if loss.since is None else loss.since.isoformat()
    log.warning(
        "the store is older than it was, a part of it is missing",
        extra={"written_after": since, "written_until": loss.until.isoformat()},
    )

    async def work(tx: Tx) -> None:
        for owner in await tx.accounts.hold_owners():
            await tx.notices.add(notices.store_behind(owner, loss.since, loss.until, loss.number, now))

    await store.write(work)
