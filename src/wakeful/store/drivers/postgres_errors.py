"""PostgreSQL's errors as errors of the store, with a text that says what to do."""

from collections.abc import Generator
from contextlib import contextmanager

import asyncpg

from wakeful.store.errors import (
    BrokenReference,
    ConnectionLost,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

# The connection was lost, or none could be opened.
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # raised when a connection is lost between two messages of one request
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
    OSError,
)

_ENDED_BY_SERVER = (
    asyncpg.AdminShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
)
_TRY_AGAIN = "Try again in a moment"
_REFUSALS: dict[type[Exception], str] = {
    asyncpg.OutOfMemoryError: "PostgreSQL is out of memory. Nothing was changed. Give its machine more memory, or "
    "lower work_mem and max_connections",
    asyncpg.TooManyConnectionsError: "PostgreSQL has no connection left for this server. Nothing was changed. Raise "
    "max_connections, or close other clients of it",
    asyncpg.InsufficientResourcesError: "PostgreSQL has run out of a resource. Nothing was changed. Its log says which",
    asyncpg.QueryCanceledError: "PostgreSQL cut off a statement that took too long, or that someone cancelled. Nothing "
    "was changed. Look at statement_timeout and at what keeps the server busy",
    asyncpg.PostgresSystemError: "PostgreSQL cannot use its files. Look at its disk and its log",
    asyncpg.InvalidAuthorizationSpecificationError: "PostgreSQL refuses the login of this server. Check the user and "
    "the password in WAKEFUL_DATABASE_URL",
    asyncpg.InvalidCatalogNameError: "PostgreSQL does not have the database that WAKEFUL_DATABASE_URL names. "
    "Create it, or correct the name",
    asyncpg.InsufficientPrivilegeError: "PostgreSQL does not let the user of this server do this. Nothing was changed. "
    "Make it the owner of its tables",
}


@contextmanager
def errors_named(*, may_be_done: bool = False) -> Generator[None]:
    """Translate errors of the block; `may_be_done` if it commits, so that a lost answer leaves the commit in doubt."""
    try:
        yield
    except asyncpg.ForeignKeyViolationError as error:
        raise BrokenReference(str(error)) from error
    except asyncpg.LockNotAvailableError as error:
        raise StoreBusy from error
    except LOST as error:
        raise _lost(error, may_be_done) from error
    except asyncpg.DiskFullError as error:
        raise StoreFull("PostgreSQL's data") from error
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise StoreReadOnly(
            "PostgreSQL is read-only, so nothing was changed. If it is a standby, point WAKEFUL_DATABASE_URL at the "
            f"primary; otherwise turn default_transaction_read_only off. It said: {error}."
        ) from error
    except tuple(_REFUSALS) as error:
        words = next(words for kind, words in _REFUSALS.items() if isinstance(error, kind))
        raise StoreUnavailable(f"{words}. It said: {error}.") from error


def _lost(error: Exception, may_be_done: bool) -> StoreUnavailable:
    said = f"PostgreSQL does not answer ({type(error).__name__}: {error})."
    # Before the server ends a connection with one of these errors, it has confirmed every commit: anything else was
    # rolled back. After any other loss, a commit may have been made.
    if any(isinstance(each, _ENDED_BY_SERVER) for each in (error, error.__cause__)):
        may_be_done = False
    # After a timeout, waiting for another one would not help.
    kind = StoreUnavailable if isinstance(error, TimeoutError) else ConnectionLost
    if may_be_done:
        return kind(f"{said} {_TRY_AGAIN}, but look first: the change may have been made.", is_in_doubt=True)
    return kind(f"{said} Nothing was changed. {_TRY_AGAIN}.")
