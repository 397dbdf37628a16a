"""Run operations in a worker: transactions, space in a full file, and error texts."""

from dataclasses import replace
from typing import Any

import apsw
import orjson

from wakeful.agentdb import changelog, deadline, file, history, rows, schema, space
from wakeful.agentdb import migrate as upgrade
from wakeful.agentdb import query as browse
from wakeful.agentdb.connection import OpenDatabase, Request, no_such_table
from wakeful.agentdb.errors import Refusal, kind_of
from wakeful.agentdb.file import NoRoom
from wakeful.agentdb.operation import OPERATIONS, Operation, name_of
from wakeful.agentdb.space import Reclaim
from wakeful.core.errors import DiskFull
from wakeful.core.resources import find_shortage, has_descriptor, lacking

# Imported because each declares operations, as do `query` and `reclaim`, which are used below.
DECLARED_IN = (browse, history, rows, schema, space, upgrade)

TOO_MUCH_MEMORY = Refusal("limit", "This needs more memory than allowed (64 MB). Ask for less at a time.")
_IN_DOUBT = "So this may or may not have been done: check before you try again."

Answer = dict[str, Any]


def carry_out(db: OpenDatabase, request: Request) -> Answer:
    """Run an operation. The answer to a write also has the file's usage and the head of the changelog."""
    operation = OPERATIONS[request.op]
    if operation.kind != "write":
        return {"result": operation.run(db, **request.args)}
    try:
        return _write(db, operation, request)
    except NoRoom:
        pass
    except apsw.FullError:
        _refuse_full_disk(db)
    return _make_room_and_write(db, operation, request)


def _refuse_full_disk(db: OpenDatabase) -> None:
    """Distinguish a full disk from a full quota; both are SQLITE_FULL. A full disk must not purge rows."""
    if not db.is_new and file.is_disk_full(db.path.parent):
        raise Refusal("disk_full", DiskFull().message)


def _make_room_and_write(db: OpenDatabase, operation: Operation, request: Request) -> Answer:
    """Reclaim space until the write fits; refuse it when too little can be reclaimed."""
    deadline.begin(request.room_seconds)
    reclaim = Reclaim(db.writer, db.path, db.who.at, db.quota, spares_changelog=not operation.uses_reserve)
    need = db.quota // reclaim.SHARE
    while reclaim.make_room(need) >= (1 if operation.uses_reserve else db.quota // reclaim.MIN_SHARE):
        try:
            return _write(db, operation, request)
        except (apsw.FullError, NoRoom) as error:
            if isinstance(error, apsw.FullError):
                _refuse_full_disk(db)
            need *= 2  # each retry writes everything again, so there must be few of them
    raise _full(db, operation, reclaim)


def _full(db: OpenDatabase, operation: Operation, reclaim: Reclaim) -> Refusal:
    if operation.name == "delete":
        count = max(1, (db.quota - file.used_bytes(db.writer.raw)) // changelog.ENTRY_BYTES)
        text = (
            f"The database is full: of {db.quota:,} bytes, too few are left for the changelog entries of this "
            f"delete. Nothing was deleted. Delete fewer rows at a time: about {count:,}."
        )
    else:
        text = (
            f"The database is full: of {db.quota:,} bytes, 5 % are reserved for deleting. Nothing of this was written. "
            f"Delete rows that are no longer needed with {name_of('delete')}, then write again: the host purges "
            "deleted rows when it needs their space. Or have the agent's limit raised (database_mb)."
        )
    if reclaim.obstacle is not None:
        text += f" Recently deleted rows could not be purged: {reclaim.obstacle}"
    return Refusal("quota", text)


def _write(db: OpenDatabase, operation: Operation, request: Request) -> Answer:
    writer, logged = db.writer, operation.logged_arguments
    detail = {name: (request.args.get(argument) or "")[:4_000] for name, argument in (logged or {}).items()}
    if operation.copies_file:
        writer.connection.empty_journal()
    with writer.writing(
        replace(db.who, actor=operation.agent_actor) if db.who.actor == "agent" else db.who,
        db.quota,
        op=operation.logged_as,
        detail=orjson.dumps(detail).decode() if detail else None,
        reserve=file.FOR_HOST if operation.uses_reserve else file.FOR_DELETING,
        is_bounded=operation.is_bounded,
        max_value=file.MAX_HOST_VALUE if operation.keeps_host_values else file.MAX_VALUE,
    ):
        result = operation.run(db, **request.args)
    head = {"last_change": writer.last_change, "last_hash": writer.last_hash.hex()}
    return {"result": result, **writer.usage._asdict(), **head}


def explain(error: Exception, db: OpenDatabase, op: str) -> Refusal | None:
    """Turn an error of SQLite or of the system into a refusal that a model can act on; None: a fault of the server."""
    for side in db.sides:
        reason = side.guard.reason
        if reason is not None and isinstance(error, apsw.AuthError | apsw.SQLError):
            return Refusal("refused", reason)
    text = str(error)
    match error:
        case apsw.SQLError() if text.startswith("no such table: "):
            return no_such_table(text.removeprefix("no such table: "), db.reader.connection.tables())
        case apsw.SQLError() if text.startswith("cannot modify "):
            return browse.only_select()
        case apsw.ConstraintError():
            return Refusal("conflict", f"{text}. Nothing was changed.")
        case apsw.InterruptError():
            return deadline.too_late()
        case apsw.NoMemError():
            return TOO_MUCH_MEMORY
        case apsw.TooBigError():
            return Refusal("limit", f"A value, a row or the statement is too long: at most {file.MAX_VALUE:,} bytes.")
        case apsw.BusyError() | apsw.LockedError():
            return Refusal("unavailable", "The database is busy. Nothing was changed. Try again.")
        case apsw.NotADBError() | apsw.CorruptError():
            # An I/O error in the middle of a statement is SQLITE_CORRUPT, too.
            return Refusal(
                "malformed",
                f"The database could not be read ({text}): the server's disk fails, or the file is damaged. Try again; "
                "if it happens again, the server's operator must look at it.",
            )
        case apsw.FullError() | apsw.CantOpenError() | apsw.IOError():
            return _explain_disk(error, db, op)
        case apsw.ReadOnlyError():
            return Refusal("unavailable", f"The file cannot be written ({text}). Nothing was changed.")
        case OSError():
            lacks = find_shortage(error)  # its text has no path, unlike the error's
            return None if lacks is None else Refusal(kind_of(lacks), lacks.message)
        case OverflowError():
            return Refusal("invalid", "A whole number must have at most 64 bits. Store a longer one as a text.")
        case UnicodeDecodeError():
            return Refusal("invalid", "A text must be UTF-8. Store other bytes as a BLOB.")
        case _:
            return Refusal("invalid", f"{text}.")


def _explain_disk(error: apsw.Error, db: OpenDatabase, op: str) -> Refusal:
    """Find out what is wrong with the disk by trying; SQLite's error does not always say it."""
    if not has_descriptor():
        return Refusal("exhausted", lacking("file descriptors").message)
    if not db.is_new and file.is_disk_full(db.path.parent):
        return Refusal("disk_full", DiskFull().message)
    if isinstance(error, apsw.FullError):
        return Refusal("unavailable", f"The file cannot be written ({error}). Nothing was changed.")
    # A commit whose fsync failed may be complete when the file is opened again.
    done = "Nothing was changed. Try again." if OPERATIONS[op].kind == "read" else _IN_DOUBT
    return Refusal("unavailable", f"The server's disk could not be read or written ({error}). {done}")
