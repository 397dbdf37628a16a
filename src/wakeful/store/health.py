"""Health of the store: noted with every use, and logged once per outage instead of by each caller."""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager

from wakeful.store.errors import StoreBusy, StoreClosed, StoreUnavailable

log = logging.getLogger(__name__)

# A full disk lets small writes through and refuses others: one that comes through does not mean that it is over.
_QUIET = 2.0  # seconds without a failure, after which a write that works ends the trouble
_STALE = 30.0  # seconds after which a failure says nothing any more, if nobody has tried since
_SAY_AGAIN = 60.0


class StoreHealth:
    """The last trouble with the store, until it is over."""

    def __init__(self) -> None:
        self._error: StoreUnavailable | None = None
        self._since = 0.0
        self._failed_at = 0.0
        self._failures = 0
        self._logged_at: dict[str, float] = {}  # by the error's code

    @property
    def problem(self) -> str | None:
        """Return what is wrong with the store at present, in words for people."""
        if self._error is None or time.monotonic() - self._failed_at > _STALE:
            return None
        return self._error.message

    @contextmanager
    def noted(self, *, is_write: bool) -> Generator[None]:
        """Note how the block ends. Only a write shows that the store works: a read-only one can be read as well."""
        try:
            yield
        except (StoreClosed, StoreBusy):  # a single locked row does not mean that the store is broken
            raise
        except StoreUnavailable as error:
            self._note_failure(error)
            raise
        if is_write and self._error is not None:
            self._note_write()

    def _note_failure(self, error: StoreUnavailable) -> None:
        now = time.monotonic()
        if self._error is None:
            self._since, self._failures = now, 0
        self._error, self._failed_at = error, now
        self._failures += 1
        if now - self._logged_at.get(error.code, -_SAY_AGAIN) >= _SAY_AGAIN:
            self._logged_at[error.code] = now
            log.warning(
                "store unavailable",
                extra={"code": error.code, "problem": error.message, "failures": self._failures},
            )

    def _note_write(self) -> None:
        now = time.monotonic()
        if now - self._failed_at < _QUIET:
            return
        self._error = None
        log.info("store works again", extra={"after_seconds": round(now - self._since, 1), "failures": self._failures})
