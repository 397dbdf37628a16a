"""Pings for runs of wakes: start, ok or failed, to the address that a person gave the wake."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from wakeful.core.addresses import PingEvent, check_ping_url, host_of, show_ping_url, to_ping
from wakeful.core.clock import Clock
from wakeful.core.counters import SendCounters
from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.core.outgoing import check_public
from wakeful.core.records import Outcome
from wakeful.core.types import Run, Wake
from wakeful.outgoing.process import ChannelProcess, PingRequest
from wakeful.store.base import Base
from wakeful.store.store import Store, Tx
from wakeful.timing.lifecycle import check_live

log = logging.getLogger(__name__)

_MAX_QUEUED = 1_000  # beyond, new ones are dropped and counted
_BATCH = 32
PING_SECONDS = 20.0  # for a batch, retries included
_STOP_WITHIN = 5.0  # seconds for the queued pings when the node stops


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ping:
    wake_id: str
    run_id: str
    event: PingEvent
    code: str = ""  # why a run failed, or what is worth knowing about one that succeeded


class Pings:
    """Queues pings and sends them in order. A failure is logged and counted; it never touches the run."""

    def __init__(
        self,
        base: Base,
        process: ChannelProcess,
        counters: SendCounters,
    ) -> None:
        self._store = base.store
        self._clock = base.clock
        self.process = process
        self._private_hosts = frozenset(base.private_hosts)
        self._counters = counters
        self._queue: deque[_Ping] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def set_address(self, wake_id: str, user_id: str, url: str | None) -> Wake:
        """Give a live wake of a user an address to ping, or remove it."""
        await self._store.read(lambda tx: tx.wakes.read(wake_id, user_id))  # before the address is looked at
        if url is not None:
            url = check_ping_url(url)
            await check_public(host_of(url), self._private_hosts, "ping_url")
        now = self._clock.now()

        async def work(tx: Tx) -> Wake:
            check_live(await tx.wakes.get(wake_id, user_id))
            return await tx.wakes.set_ping(wake_id, url, None if url is None else show_ping_url(url), now)

        return await self._store.write(work)

    def note_started(self, run: Run) -> None:
        """Ping the start of a run, once: not again when another process takes it over."""
        if run.has_ping and run.fence == 1:
            self._add(run, "start")

    def note_finished(self, run: Run, outcome: Outcome) -> None:
        if run.has_ping:
            self._add(run, "ok" if outcome.status == "success" else "failed", outcome.reason)

    def note_recovered(self, run: Run) -> None:
        """Ping the failure of a run that is not resumed after a crash."""
        if run.has_ping and run.status != "queued":
            self._add(run, "failed", run.reason)

    async def idle(self) -> None:
        """Wait until everything queued was sent or given up."""
        while self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending])

    async def aclose(self) -> None:
        """Wait a few seconds for queued pings, then give them up."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=_STOP_WITHIN)
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _add(self, run: Run, event: PingEvent, code: str | None = None) -> None:
        if run.wake_id is None:
            return
        if len(self._queue) >= _MAX_QUEUED:
            self._counters.count_outgoing("wake", "dropped")
            return
        self._queue.append(_Ping(wake_id=run.wake_id, run_id=run.id, event=event, code=code or ""))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all(), name="wakeful-pings")

    async def _send_all(self) -> None:
        while self._queue:
            # One batch after the other: the end of a run must not arrive before its start.
            batch = [self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))]
            try:
                await self._send(batch)
            except StoreUnavailable:  # the store logs it; a ping that is late would mislead
                self._note(batch, {})
            except Exception:
                log.exception("pings not sent")

    async def _send(self, batch: Sequence[_Ping]) -> None:
        urls = await self._store.read(lambda tx: tx.wakes.ping_urls({ping.wake_id for ping in batch}))
        requests = [
            PingRequest(id=str(number), group=ping.wake_id, url=to_ping(url, ping.event, ping.run_id), body=ping.code)
            for number, ping in enumerate(batch)
            if (url := urls.get(ping.wake_id)) is not None  # else a person has removed it
        ]
        outcomes = await self.process.ping(requests) if requests else {}
        asked = [ping for ping in batch if ping.wake_id in urls]
        self._note(asked, {batch[int(number)]: outcome for number, outcome in outcomes.items()})

    def _note(self, asked: Sequence[_Ping], outcomes: Mapping[_Ping, str]) -> None:
        for ping in asked:
            outcome = outcomes.get(ping, "timed_out")
            self._counters.count_outgoing("wake", outcome)
            if outcome != "sent":
                fields = {"wake_id": ping.wake_id, "run_id": ping.run_id, "event": ping.event, "outcome": outcome}
                log.warning("ping of a wake not sent", extra=fields)


# ── The heartbeat address ────────────────────────────────────────────────────────────────────────────────────────────

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
        base: Base,
        process: ChannelProcess,
        url: str,
        counters: SendCounters,
    ) -> None:
        self._clock = base.clock
        self._process = process
        self._url = url
        self._counters = counters
        self._share = PingShare(base.store, base.clock)
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
        self._counters.count_outgoing("heartbeat", outcome)
        if outcome != self._last_outcome:  # once per change, not once a minute
            level = logging.INFO if outcome == "sent" else logging.WARNING
            log.log(level, "heartbeat ping", extra={"outcome": outcome})
        self._last_outcome = outcome


class PingShare:
    """Decides which node pings next. An embedded store has one node, so that it needs no row."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pinged_at = float("-inf")
        self._was_ready: bool = True

    async def take(self, *, is_ready: bool, every: float) -> bool:
        """Return whether this node pings now, and note that it does.

        The first ping after a change is due at once; one that is not ready waits until no ready node has pinged.
        """
        if self._store.is_shared:
            now, wait = self._clock.now(), timedelta(seconds=every if is_ready else 2 * every)
            return await self._store.write(
                lambda tx: tx.pings.take(now, now - wait, is_ready=is_ready), is_synced=False, is_single=True
            )
        seconds = self._clock.monotonic()
        if seconds - self._pinged_at < every and is_ready == self._was_ready:
            return False
        self._pinged_at, self._was_ready = seconds, is_ready
        return True
