"""Pings: of the address that a person gave a wake, for each of its runs, and of the server's own heartbeat address."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

import orjson

from wakeful.core.addresses import PingEvent, check_ping_url, host_of, show_ping_url, to_ping
from wakeful.core.clock import Clock
from wakeful.core.errors import Unavailable
from wakeful.core.outgoing import check_public
from wakeful.core.records import Outgoing
from wakeful.core.types import Wake
from wakeful.outgoing import rules
from wakeful.outgoing.outbox import Kind
from wakeful.outgoing.rules import CANCELLED, Answer, Request, Result
from wakeful.outgoing.sender import Sender
from wakeful.store.base import Base, SendCounters
from wakeful.store.store import Store, Tx
from wakeful.timing.lifecycle import check_live

log = logging.getLogger(__name__)

_SECONDS = 20.0  # for a batch, retries included
_TRY_SECONDS = 8.0
_HEADERS = {"Content-Type": "text/plain; charset=utf-8"}


class PingKind(Kind[str]):
    """Pings for runs of wakes: start, ok or failed, in order. One that fails never touches the run."""

    name = "ping"
    problem = "ping of a wake not sent"
    seconds = _SECONDS
    fresh = timedelta(minutes=5)  # one that is late would mislead

    async def find_target(self, tx: Tx, message: Outgoing, now: datetime) -> str | Result:  # noqa: ARG002
        urls = await tx.wakes.ping_urls({message.target})
        return urls.get(message.target, CANCELLED)  # a person may have removed it

    def to_request(self, message: Outgoing, target: str, now: datetime) -> Request:  # noqa: ARG002
        about = orjson.loads(message.body)
        return to_ping_request(to_ping(target, cast("PingEvent", message.event), about["run_id"]), about["code"])

    def read_answer(self, answer: Answer) -> Result:
        return read_ping_answer(answer)

    def log_fields(self, message: Outgoing) -> Mapping[str, str]:
        return {"wake_id": message.target, "run_id": orjson.loads(message.body)["run_id"], "event": message.event}


def to_ping_request(url: str, code: str) -> Request:
    return Request(url=url, headers=_HEADERS, body=code.encode(), seconds=_TRY_SECONDS, pauses=rules.SHORT_PAUSES)


def read_ping_answer(answer: Answer) -> Result:
    """Return a code of what went wrong: the address must not get into logs, so neither does a text of the service."""
    if answer.is_good:
        return Result(outcome="sent")
    is_redirect = answer.status is not None and 300 <= answer.status < 400
    return Result(outcome=answer.problem or ("redirect" if is_redirect else "refused"), status=answer.status)


class Pings:
    """Manages the addresses to ping."""

    def __init__(self, base: Base) -> None:
        self._store = base.store
        self._clock = base.clock
        self._private_hosts = frozenset(base.private_hosts)

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
        sender: Sender,
        url: str,
        counters: SendCounters,
    ) -> None:
        self._clock = base.clock
        self._sender = sender
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
        # Not through the table: it has to say that the store does not answer, and one that is late would mislead.
        request = to_ping_request(to_ping(self._url, event), body)
        answers = await self._sender.send([{event: request}], _SECONDS)
        outcome = read_ping_answer(answers.get(event, rules.timed_out(_SECONDS))).outcome
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
