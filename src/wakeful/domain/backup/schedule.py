"""Scheduled backups: when one is due, how it is named, and which are kept."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

PREFIX, SUFFIX = "wakeful-", ".age"

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_NAME = re.compile(r"wakeful-\d{4}-\d\d-\d\dT\d{6}Z\.age")
_RETRY = timedelta(minutes=10)  # after a failure
_ABANDONED = timedelta(minutes=5)  # since the node that makes a backup was last heard of


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupState:
    """The last scheduled backups."""

    started_at: datetime | None = None  # the last attempt
    renewed_at: datetime | None = None  # when its node was last at it
    node: str | None = None  # that made it
    finished_at: datetime | None = None  # the last success
    file: str | None = None  # its name
    size: int | None = None
    failed_at: datetime | None = None  # the last failure
    error: str | None = None

    @property
    def is_failing(self) -> bool:
        """Return whether the last attempt failed."""
        return self.failed_at is not None and (self.finished_at is None or self.failed_at > self.finished_at)

    @property
    def is_running(self) -> bool:
        """Return whether the last attempt has not ended, as far as the store knows."""
        ends = [at for at in (self.finished_at, self.failed_at) if at is not None]
        return self.started_at is not None and (not ends or max(ends) < self.started_at)


def parse_every(text: str) -> timedelta:
    """Return an interval such as 30m, 6h or 1d."""
    found = re.fullmatch(r"(\d{1,4})([mhd])", text.strip())
    every = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()
    if not timedelta(minutes=15) <= every <= timedelta(days=90):
        raise ValueError("not an interval from 15m to 90d")
    return every


def is_due(state: BackupState, every: timedelta, now: datetime) -> bool:
    """Return whether a backup is to be made now. A clock that was set back does not keep it from being made."""
    if state.started_at is None or state.started_at > now:
        return True
    if state.is_running:  # unless its node is dead
        return state.renewed_at is None or not timedelta() <= now - state.renewed_at < _ABANDONED
    return now - state.started_at >= (min(_RETRY, every) if state.is_failing else every)


def name_of(now: datetime) -> str:
    return f"{PREFIX}{now:%Y-%m-%dT%H%M%SZ}{SUFFIX}"


def find_old(names: Collection[str], keep: int) -> Sequence[str]:
    """Return the names of backups to delete, so that some are kept. Other files are nobody's to delete."""
    return sorted(name for name in names if _NAME.fullmatch(name))[:-keep]
