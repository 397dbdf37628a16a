"""Pings the owner's `heartbeat_url` while wakes are fired, so that a service outside notices when nothing does."""

import logging
from collections.abc import Callable, Sequence

from wakeful.clock import Clock
from wakeful.domain.errors import Unavailable
from wakeful.domain.pings import PingEvent, to_ping
from wakeful.service.inbox.channel_process import ChannelProcess, PingRequest
from wakeful.service.pings.shares import PingShare
from wakeful.store.store import Store

log = logging.getLogger(__name__)

LOOK_EVERY = 15.0  # seconds
_EVERY = 55.0  # a ping a minute, whichever node sends it
_FAIL_AFTER = 30.0  # seconds without being ready: a store that restarts must not wake anyone


class HeartbeatPings:
    """Sends a ping a minute: the address itself while this node is ready, `/fail` with reason codes if not.

    Several nodes ping once: the first that is ready and finds the last ping a minute old. Nodes that are not ready
    leave it to the others, and only say so if no ready node has pinged for another minute.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        process: ChannelProcess,
        url: str,
        on_sent: Callable[[str, str], None] = lambda _kind, _outcome: None,
    ) -> None:
        self._clock = clock
        self._process = process
        self._url = url
        self._on_sent = on_sent
        self._share = PingShare(store, clock)
        self._unready_since: float | None = None
        self._last_outcome = "sent"

    async def beat(self, reasons: Sequence[str]) -> None:
        """Ping if it is time; `reasons` are the codes of why wakes are not fired, empty if they are."""
        now = self._clock.monotonic()
        if not reasons:
            self._unready_since = None
        elif self._unready_since is None:
            self._unready_since = now
        if self._unready_since is not None and now - self._unready_since < _FAIL_AFTER:
            return
        try:
            is_ours = await self._share.take(is_ready=not reasons, every=_EVERY)
        except Unavailable:  # no node can ask the store whose turn it is, so each says that it is not ready
            is_ours = bool(reasons)
        if is_ours:
            await self._send("unready" if reasons else "alive", " ".join(reasons))

    async def _send(self, event: PingEvent, body: str) -> None:
        request = PingRequest(id="0", group="", url=to_ping(self._url, event), body=body)
        outcome = (await self._process.ping([request])).get("0", "timed_out")
        self._on_sent("heartbeat", outcome)
        if outcome != self._last_outcome:  # once per change, not once a minute
            level = logging.INFO if outcome == "sent" else logging.WARNING
            log.log(level, "heartbeat ping", extra={"outcome": outcome})
        self._last_outcome = outcome
