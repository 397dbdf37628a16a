"""Ids: UUIDs that begin with a timestamp, so that rows written together are next to each other in every index.

A run's id is made from its wake and planned time, so one occurrence can never become two runs.
"""

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from secrets import token_bytes
from uuid import uuid4

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RANDOM_BYTES = 10


def new_id(now: datetime | None = None) -> str:
    """Return a new unique id; with a time, one that sorts by it."""
    return str(uuid4()) if now is None else _with_time(now, token_bytes(_RANDOM_BYTES), version=7)


def run_id(wake_id: str, nominal_at: datetime) -> str:
    """Return the id of the run of one occurrence: always the same for the same wake and time."""
    digest = blake2b(f"{wake_id}@{nominal_at.isoformat()}".encode(), digest_size=_RANDOM_BYTES).digest()
    return _with_time(nominal_at, digest, version=8)


def session_id_of(run: str, now: datetime) -> str:
    """Return the id of the new session in which a run executes."""
    return _with_time(now, blake2b(f"session of {run}".encode(), digest_size=_RANDOM_BYTES).digest(), version=8)


def outgoing_id(about: str, target: str, now: datetime) -> str:
    """Return the id of a message about something, so that a transaction that is repeated knows the one it added."""
    digest = blake2b(f"{about} to {target}".encode(), digest_size=_RANDOM_BYTES).digest()
    return _with_time(now, digest, version=8)


def first_agent_of(user: str) -> str:
    """Return the id of a user's first agent, so that two nodes that start at once create the same one."""
    return _with_time(_EPOCH, blake2b(f"first agent of {user}".encode(), digest_size=_RANDOM_BYTES).digest(), version=8)


def could_be_id(text: str) -> bool:
    """Return whether a text has the form of an id; other texts may contain characters that a database rejects."""
    return len(text) <= 64 and text.isascii() and text.replace("-", "").isalnum()


def _with_time(at: datetime, rest: bytes, *, version: int) -> str:
    """Return a UUID in the layout of RFC 9562: 48 bits of milliseconds, the version, 74 further bits."""
    milliseconds = max(0, (at - _EPOCH) // _MILLISECOND)
    bits = milliseconds << 80 | int.from_bytes(rest)
    text = f"{bits & ~(0xF000 << 64 | 0xC000 << 48) | version << 76 | 0x8000 << 48:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
