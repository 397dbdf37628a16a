"""What a worker can be asked to do, by name."""
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import orjson

from wakeful.agentdb.database import Writer, no_such_table
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files import files, quota, upgrade
from wakeful.agentdb.files.open_database import Opened, Request
from wakeful.agentdb.files.quota import NoRoom
from wakeful.agentdb.files.reclaim import Room
from wakeful.agentdb.history import changelog, recover, snapshots, undo
from wakeful.agentdb.history.changelog import Changelog
from wakeful.agentdb.process import deadline
from wakeful.agentdb.tables import browse, migrate, query, rows, schema, transfer, views
from wakeful.domain.errors import DiskFull
from wakeful.domain.resources import OutOfResources, find_shortage, lacking

TOO_MUCH_MEMORY = Refusal(
    "limit", "That needs more memory than an agent's database may have (64 MB). Ask for less at a time."
)
_FULL = (
    "The database is full: of {quota:,} bytes, 5 % are kept for deleting. Nothing of this was written. Delete rows "
    "that are no longer needed with db_delete, then write again: the host purges deleted rows when it needs their "
    "room. Or ask your user for more room."
)
_FULL_FOR_DELETING = (
    "The database is full: of {quota:,} bytes, too few are left to note in the changelog that so many rows are "
    "deleted. Nothing was deleted. Delete fewer rows at a time: about {count:,}."
)
MOST_EXPORTED = 40 * 1024 * 1024  # bytes of a file; JSON names every column in every row
_IN_DOUBT = "So this may or may not have been done: look before you try again."
USE_RESERVE = frozenset({"delete", "drop_view", "undo", "note_key_shown"})

Answer = dict[str, Any]
Reading = Callable[[Opened, Request], Answer | bytes]


def carry_out(opened: Opened, request: Request) -> Answer:
    """Do what is asked; what is written says how full the file is now."""
    if request.op in READS:
        return {"result": READS[request.op](opened, request)}
    if request.op in KEEPING:
        return {"result": KEEPING[request.op](opened, request)}
    try:
        return _write(opened, request)
    except NoRoom:
        pass
    except apsw.FullError:
        _refuse_full_disk(opened)
    return _make_room_and_write(opened, request)


def _refuse_full_disk(opened: Opened) -> None:
    """Tell a full disk from a full quota, both SQLITE_FULL. Rows must not be purged because of a disk."""
    if opened.path and files.is_disk_full(Path(opened.path).parent):
        raise Refusal("disk_full", DiskFull().message)


def _make_room_and_write(opened: Opened, request: Request) -> Answer:
    """Throw away what is needed least until the write fits; refuse it when too little is left to throw away."""
    deadline.begin(request.room_seconds)
    may_use_reserve = request.op in USE_RESERVE
    room = Room(opened.writer, Path(opened.path), request.at, request.quota, spares_changelog=not may_use_reserve)
    need = request.quota // room.SHARE
    while room.make(need) >= (1 if may_use_reserve else request.quota // room.LEAST_SHARE):
        try:
            return _write(opened, request)
        except (apsw.FullError, NoRoom) as error:
            if isinstance(error, apsw.FullError):
                _refuse_full_disk(opened)
            need *= 2  # each try writes everything anew, so there must be few of them
    raise _full(opened, request, room)


def _full(opened: Opened, request: Request, room: Room) -> Refusal:
    if request.op == "delete":
        left = request.quota - quota.used_bytes(opened.writer.raw)
        said = _FULL_FOR_DELETING.format(quota=request.quota, count=max(1, left // changelog.ENTRY_BYTES))
    else:
        said = _FULL.format(quota=request.quota)
    if room.obstacle is not None:
        said += f" Rows that were deleted lately could not be purged: {room.obstacle}"
    return Refusal("quota", said)


def _write(opened: Opened, request: Request) -> Answer:
    writer = opened.writer
    with _writing(opened, request):
        result = WRITES[request.op](writer, opened, request)
    return {
        "result": result,
        "usage": writer.usage and tuple(writer.usage),
        "last_change": writer.last_change,
        "last_hash": writer.last_hash.hex(),
    }


@contextmanager
def _writing(opened: Opened, request: Request) -> Generator[None]:
    op = {"execute": "execute", "import": "import", "undo": "undo", "migrate": "schema", "down": "schema"}.get(
        request.op
    )
    noted = {
        "execute": {"sql": str(request.args.get("sql"))[:4_000]},
        "undo": {"undoes": request.args.get("run_id")},
        "import": {"table": request.args.get("table"), "source": request.args.get("source")},
    }.get(request.op)
    detail = None if noted is None else orjson.dumps(noted).decode()
    if request.op in ("migrate", "down"):
        opened.writer.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    with opened.writer.writing(
        request.who,
        request.quota,
        op=op,
        detail=detail,
        reserve=quota.FOR_HOST if request.op in USE_RESERVE else quota.FOR_DELETING,
        is_bounded=request.op in ("insert", "import"),
        most_value=files.HOST_VALUE if request.op == "undo" else files.MOST_VALUE,
    ):
        yield


def explain(error: apsw.Error, opened: Opened, op: str) -> Refusal:
    """Say in words a model can use what SQLite has refused."""
    for side in opened.sides:
        reason = side.guard.reason
        if reason is not None and isinstance(error, apsw.AuthError | apsw.SQLError):
            return Refusal("refused", reason)
    text = str(error)
    match error:
        case apsw.SQLError() if text.startswith("no such table: "):
            return no_such_table(text.removeprefix("no such table: "), opened.reader.connection.tables())
        case apsw.SQLError() if text.startswith("cannot modify "):
            return Refusal("refused", "Only SELECT is allowed here. Use the db_* tools to write.", field="sql")
        case apsw.ConstraintError():
            return Refusal("conflict", f"{text}. Nothing was changed.")
        case apsw.InterruptError():
            return deadline.too_late()
        case apsw.NoMemError():
            return TOO_MUCH_MEMORY
        case apsw.TooBigError():
            return Refusal(
                "limit", f"A value, a row or the statement is too big: a value may have {files.MOST_VALUE:,} bytes."
            )
        case apsw.BusyError() | apsw.LockedError():
            return Refusal("unavailable", "The database is busy. Nothing was changed. Try again.")
        case apsw.NotADBError() | apsw.CorruptError():
            # An I/O error in the middle of a statement is SQLITE_CORRUPT, too.
            return Refusal(
                "unavailable",
                f"The database could not be read ({text}): the server's disk fails, or the file is damaged. Try again, "
                "and tell your user if it goes on.",
            )
        case apsw.FullError() | apsw.CantOpenError() | apsw.IOError():
            return _explain_disk(error, opened, op)
        case apsw.ReadOnlyError():
            return Refusal("unavailable", f"The file cannot be written ({text}). Nothing was changed.")
        case _:
            return Refusal("invalid", f"{text}.")


def explain_system(error: OSError) -> Refusal | None:
    """Say what has run out, without the path that the system names; None: something else is wrong."""
    match find_shortage(error):
        case DiskFull() as full:
            return Refusal("disk_full", full.message)
        case OutOfResources() as lacks:
            return Refusal("exhausted", lacks.message)
        case _:
            return None


def _explain_disk(error: apsw.Error, opened: Opened, op: str) -> Refusal:
    """Say what the disk has. SQLite does not always say why it could not, so that is tried."""
    if not files.has_descriptor():
        return Refusal("exhausted", lacking("file descriptors").message)
    if opened.path and files.is_disk_full(Path(opened.path).parent):
        return Refusal("disk_full", DiskFull().message)
    if isinstance(error, apsw.FullError):
        return Refusal("unavailable", f"The file cannot be written ({error}). Nothing was changed.")
    # A commit whose fsync failed may be found complete when the file is opened again.
    done = "Nothing was changed. Try again." if op in READS else _IN_DOUBT
    return Refusal("unavailable", f"The server's disk could not be read or written ({error}). {done}")


def _schema(opened: Opened, request: Request) -> Answer:
    with opened.reader.looking() as connection:
        described: Answer = {
            "tables": schema.describe(connection, with_counts=request.args.get("with_counts", True)),
            "views": views.listed(connection),
            "storage": {"used_bytes": quota.used_bytes(connection.raw), "quota_bytes": request.quota},
        }
        if request.args.get("with_system"):
            described["system_tables"] = schema.system_tables(connection)
    return described


def _names(opened: Opened, _request: Request) -> Answer:
    with opened.reader.looking() as connection:
        found = views.listed(connection)
        return {
            "tables": connection.tables(),
            "views": {view["name"]: view["required_parameters"] for view in found},
        }


def _query(opened: Opened, request: Request) -> Answer:
    args = request.args
    return query.query(
        opened.reader,
        args["sql"],
        args.get("params"),
        limit=args.get("limit") or query.USUAL_ROWS,
        include_deleted=args.get("include_deleted", False),
    )


def _run_view(opened: Opened, request: Request) -> Answer:
    args = request.args
    return views.run(
        opened.reader,
        args["name"],
        args.get("params") or {},
        args.get("limit") or query.USUAL_ROWS,
        args.get("most_bytes") or query.MOST_BYTES,
    )


def _list_views(opened: Opened, _request: Request) -> Answer:
    with opened.reader.looking() as connection:
        return {"views": views.listed(connection)}


def _rows(opened: Opened, request: Request) -> Answer:
    with opened.reader.looking() as connection:
        return browse.rows(connection, **request.args)


def _changelog(opened: Opened, request: Request) -> Answer:
    with opened.reader.looking() as connection:
        changes, is_more = Changelog(connection.raw).read(**request.args)
    return {"changes": changes, "is_more": is_more}


def _verify(opened: Opened, request: Request) -> Answer:
    """Look whether the chain holds, and whether it reaches as far as the server has seen it reach."""
    known: list[Any] | None = request.args.get("known")
    with opened.reader.looking() as connection:
        log = Changelog(connection.raw)
        broken_at, last = log.find_break(), log.last()[0]
        is_cut_off = known is not None and last < known[0]
        if broken_at is None and is_cut_off:
            broken_at = last + 1
        elif broken_at is None and known is not None and not log.has(known[0], bytes.fromhex(known[1])):
            broken_at = 1  # a whole chain, and not the one that was written here
    return {"intact": broken_at is None, "broken_at": broken_at, "is_cut_off": is_cut_off}


def _reaches(opened: Opened, request: Request) -> Answer:
    """Say whether the changelog has the last entry that the server knows of, and which is its own last one."""
    number, digest = request.args["known"]
    with opened.reader.looking() as connection:
        log = Changelog(connection.raw)
        last = log.last()[0]
        at = connection.raw.execute("SELECT at FROM _changelog WHERE id = ?", (last,)).get
        return {"reaches": last > number or log.has(number, bytes.fromhex(digest)), "last": last, "at": at}


def _export(opened: Opened, request: Request) -> bytes:
    args = request.args
    if args.get("table"):
        with opened.reader.looking() as connection:
            columns, found = browse.whole(connection, args["table"], args.get("show") or "active")
            with closing(found):
                text = transfer.write(args["format"], columns, found)
    else:
        with opened.reader.reading() as connection:
            statement = connection.prepare_only(args["sql"])
            query.need_reading(statement)
            with closing(connection.run(statement, query.bindings(statement, args.get("params")))) as found:
                text = transfer.write(args["format"], statement.columns, found)
    if len(written := text.encode()) > MOST_EXPORTED:
        raise Refusal(
            "limit",
            f"As {args['format']} the file would have {len(written):,} bytes, and {MOST_EXPORTED:,} is the most. "
            "Export less at a time.",
        )
    return written


def _insert(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return rows.insert(writer, request.who, request.args["table"], request.args["rows"])


def _upsert(writer: Writer, _opened: Opened, request: Request) -> Answer:
    args = request.args
    return rows.upsert(writer, request.who, args["table"], args["rows"], args["conflict_columns"])


def _update(writer: Writer, _opened: Opened, request: Request) -> Answer:
    args = request.args
    return rows.update(writer, request.who, args["table"], args["set"], args.get("where"), args.get("row_ids"))


def _delete(writer: Writer, _opened: Opened, request: Request) -> Answer:
    args = request.args
    return rows.delete(writer, request.who, args["table"], args.get("where"), args.get("row_ids"))


def _restore(writer: Writer, _opened: Opened, request: Request) -> Answer:
    args = request.args
    return rows.restore(writer, request.who, args["table"], args.get("where"), args.get("row_ids"))


def _execute(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return query.execute(writer, request.who, request.args["sql"], request.args.get("params"))


def _create_table(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return schema.create_table(writer, request.who, **request.args)


def _alter_table(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return schema.alter_table(writer, request.who, **request.args)


def _migrate(writer: Writer, opened: Opened, request: Request) -> Answer:
    path = Path(opened.path)
    is_new = not writer.connection.tables()
    copy = None if is_new else snapshots.FirstCopy(path, opened.key, request.at, request.quota)
    try:
        done = migrate.migrate(writer, request.who, **request.args, copy=copy)
    except BaseException:
        if copy is not None:
            copy.discard()
        raise
    snapshots.forget_old(path)
    snapshots.forget_expired(path, request.at)
    return done


def _down(writer: Writer, opened: Opened, request: Request) -> Answer:
    """Take a migration back with the statements the agent wrote for that; for people only."""
    number = request.args["change_id"]
    noted = writer.raw.execute("SELECT detail FROM _changelog WHERE id = ? AND op = 'schema'", (number,)).fetchone()
    values: dict[str, Any] = orjson.loads(noted[0]) if noted and noted[0] else {}
    if not values.get("down_sql"):
        raise Refusal("not_found", f"Change {number} is no migration that can be taken back.", field="change_id")
    args = {"up_sql": values["down_sql"], "down_sql": values["up_sql"], "purpose": f"Took back change {number}."}
    return _migrate(writer, opened, replace(request, args=args))


def _define_view(writer: Writer, opened: Opened, request: Request) -> Answer:
    return views.define(writer, opened.reader, request.who, **request.args)


def _pin_view(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return views.pin(writer, request.who, request.args["name"], request.args["is_pinned"])


def _drop_view(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return views.drop(writer, request.who, request.args["name"])


def _import(writer: Writer, _opened: Opened, request: Request) -> Answer:
    args = request.args
    read = transfer.read(args["format"], args["text"])
    return rows.take_in(writer, request.who, args["table"], read, may_create=args["create"])


def _undo(writer: Writer, _opened: Opened, request: Request) -> Answer:
    return undo.undo_run(writer, request.who, request.args["run_id"])


def _snapshots(opened: Opened, _request: Request) -> Answer:
    return {"snapshots": snapshots.listed(Path(opened.path)) if opened.path else []}


def _recover(writer: Writer, opened: Opened, request: Request) -> Answer:
    return recover.recover(writer, Path(opened.path), opened.key, request.who, **request.args)


def _note_key_shown(writer: Writer, _opened: Opened, request: Request) -> Answer:
    schema.note(writer, request.who, None, {"key_shown": True})
    return {}


def _purge(opened: Opened, request: Request) -> Answer:
    snapshots.forget_expired(Path(opened.path), request.at)
    return dict(Room(opened.writer, Path(opened.path), request.at, request.quota).clean())


def _rekey(opened: Opened, request: Request) -> Answer:
    """Encrypt the file and its snapshots with another key; those that have it already are left as they are.

    The file comes last: while it has the old key, what was cut off can be found by it and be finished.
    """
    opened.close()
    key = bytes.fromhex(request.args["new_key"])
    path = Path(opened.path)
    damaged: list[str] = []
    for each in (*snapshots.of(path), path):
        if files.opens(each, key):
            continue
        try:
            connection = files.connect(str(each), opened.key)
        except apsw.NotADBError:
            if each == path:
                raise Refusal("unreadable", "The database cannot be read with its key.") from None
            damaged.append(each.name)  # a copy that is of no use does not keep the others from a new key
            continue
        try:
            files.encrypt(connection, key)
        finally:
            connection.close()
    opened.key = key
    return {"rekeyed": True, "damaged": damaged}


def _check(opened: Opened, _request: Request) -> Answer:
    """Say whether the file can be read with this key."""
    with opened.reader.looking() as connection:
        connection.raw.execute("SELECT count(*) FROM main.sqlite_schema").fetchall()
    return {"readable": True}


READS: dict[str, Reading] = {
    "schema": _schema,
    "names": _names,
    "query": _query,
    "run_view": _run_view,
    "list_views": _list_views,
    "rows": _rows,
    "changelog": _changelog,
    "verify": _verify,
    "reaches": _reaches,
    "export": _export,
    "check": _check,
    "snapshots": _snapshots,
}
KEEPING: dict[str, Reading] = {"purge": _purge, "rekey": _rekey, "upgrade": upgrade.upgrade}
WRITES: dict[str, Callable[[Writer, Opened, Request], Answer]] = {
    "insert": _insert,
    "upsert": _upsert,
    "update": _update,
    "delete": _delete,
    "restore": _restore,
    "execute": _execute,
    "create_table": _create_table,
    "alter_table": _alter_table,
    "migrate": _migrate,
    "down": _down,
    "define_view": _define_view,
    "pin_view": _pin_view,
    "drop_view": _drop_view,
    "import": _import,
    "undo": _undo,
    "recover": _recover,
    "note_key_shown": _note_key_shown,
}
MAKES = frozenset({"create_table", "migrate", "define_view", "import", "recover"})  # what may bring a file into being
