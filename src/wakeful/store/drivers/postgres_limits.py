"""Timeouts of a node's connections to PostgreSQL, so that a dead node does not block the others.

A node that is frozen or has lost its power inside a transaction keeps its row locks until the server ends that
transaction. Everything is set by SET after connecting: PgBouncer refuses it among the start-up parameters.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg

# PostgreSQL keeps one plan for each statement of a connection, perhaps made while a table was empty, and guesses that
# LIMIT :most is a tenth of all rows and that `rows(…)` are a hundred. With that it would scan and hash whole tables for
# the rows of a batch, and sort all runs of a user for one page. Every statement has an index for its rows and their
# order, so these ways are ruled out. To set this for single statements would cost each of them a round trip.
_PLANS = {"jit": "off", "plan_cache_mode": "force_generic_plan"} | {
    f"enable_{way}": "off" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin")
}

# A peer that has lost its power or its network is noticed within 14 seconds, by the server and by us.
_IDLE_SECONDS, _PROBE_SECONDS, _PROBES, _UNACKNOWLEDGED_MS = 5, 3, 3, 10_000
_KEEPALIVE = {
    "tcp_keepalives_idle": str(_IDLE_SECONDS),
    "tcp_keepalives_interval": str(_PROBE_SECONDS),
    "tcp_keepalives_count": str(_PROBES),
    "tcp_user_timeout": str(_UNACKNOWLEDGED_MS),
}

_NAME = {"application_name": "wakeful"}

# For changes of the schema, and for nodes that wait until another one has made them.
UNLIMITED = (
    "SET idle_in_transaction_session_timeout = 0; SET lock_timeout = 0; SET application_name = wakeful_migrating"
)

# The server itself ends a transaction only while it waits for the next command. A node that stops between preparing a
# statement and running it, or in the middle of a large answer, leaves a backend that counts as active, with its locks.
_END_STUCK = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE
    datname = current_database() AND usename = current_user AND application_name = 'wakeful' AND state = 'active'
    AND (
        wait_event = 'ClientRead' AND state_change < clock_timestamp() - interval '{idle} seconds'
        OR wait_event = 'ClientWrite' AND state_change < clock_timestamp() - interval '{answer} seconds'
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Seconds, made for a lease: within that and five more, another node has taken over."""

    idle: float  # of a transaction between two statements, before the server ends it
    lock: float  # of a statement that waits for a row lock
    answer: float  # until the answer to a statement: the connection may be dead
    reach: float  # until a new connection, or the answer to a heartbeat

    @classmethod
    def of_lease(cls, lease: timedelta) -> "SessionLimits":
        seconds = lease.total_seconds()
        return cls(
            # There are three heartbeats per lease, and one of them may have to wait for a row lock.
            idle=min(5.0, max(1.0, seconds / 3)),
            lock=1.5,  # more than deadlock_timeout: a deadlock is found as such, and its work is run again
            answer=min(20.0, seconds + 3),
            reach=min(10.0, max(2.0, seconds / 3)),
        )

    def sql(self, settings: Mapping[str, str] | None = None) -> str:
        """Return the SET statements for a new connection; the settings win over the limits."""
        limits = {
            "idle_in_transaction_session_timeout": f"{self.idle * 1000:.0f}",
            "lock_timeout": f"{self.lock * 1000:.0f}",
        }
        whole = _NAME | _PLANS | _KEEPALIVE | limits | dict(settings or {})
        return "; ".join(f"SET {name} = {value}" for name, value in whole.items())

    @property
    def end_stuck(self) -> str:
        """Return the query that ends the connections of stopped nodes which the server does not end by itself."""
        return _END_STUCK.format(idle=self.idle, answer=self.answer)


def keep_alive(connection: "asyncpg.Connection[Any]") -> None:
    """Turn on TCP keepalive, so that a dead server is noticed; nothing to do on a UNIX socket."""
    transport: Any = connection._transport  # noqa: SLF001  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    line: socket.socket | None = transport.get_extra_info("socket")
    if line is None or line.family not in (socket.AF_INET, socket.AF_INET6):
        return
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE_SECONDS),
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", _UNACKNOWLEDGED_MS),
    ):
        option: int | None = getattr(socket, name, None)  # not every system has each
        if option is not None:
            line.setsockopt(socket.IPPROTO_TCP, option, value)
