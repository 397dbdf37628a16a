"""`wakeful move`: copies the embedded store to PostgreSQL, so that several nodes can share it.

From the first step on, a record in the data directory keeps the embedded store from being started, and one in
PostgreSQL keeps servers away from there until every row has been compared. So at most one of the two ever runs. After a
crash the same command goes on; `wakeful move --undo` goes back to the embedded store.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from secrets import token_hex
from urllib.parse import parse_qs, unquote, urlsplit

from wakeful.config.settings import Settings
from wakeful.core.clock import Clock, ServerClock, SystemClock
from wakeful.core.errors import Conflict, NotFound, Unavailable
from wakeful.core.files import find_running, sync_folder
from wakeful.datadir.device_key import database_of, device_key_of
from wakeful.datadir.files import MOVED_AGENTS, MOVED_FILE, STORE_FILE, finish_restore
from wakeful.datadir.lost_data import check_device_key
from wakeful.homes import directories
from wakeful.homes.directories import Directories, Move
from wakeful.operations.upkeep import report_loss
from wakeful.store.copying import OnStep, Target, compare_tables, copy_tables, find_tables, open_target
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.drivers.sqlite import SqliteDatabase, hold, size_of
from wakeful.store.errors import StoreInUse
from wakeful.store.rows import from_micros, to_micros
from wakeful.store.store import Store, Tx


class NothingToMove(NotFound):
    code = "nothing_to_move"


class AlreadyMoved(Conflict):
    code = "already_moved"


class OtherTarget(Conflict):
    code = "other_move_target"


class MoveUndone(Conflict):
    code = "move_undone"


class NodesRunning(Conflict):
    code = "nodes_running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A finished move."""

    to: str
    rows: int
    kept: Path  # the embedded store, under another name


def place_of(url: str) -> str:
    """Return host, port and name of a PostgreSQL database, without user and password."""
    parts = urlsplit(url)
    asked = parse_qs(parts.query)
    host = asked.get("host", [parts.hostname or "localhost"])[0]
    port = parts.port or int(asked.get("port", ["5432"])[0])
    return f"{host}:{port}/{unquote(parts.path.lstrip('/'))}"


async def move_store(settings: Settings, url: str, on_step: OnStep) -> Moved:
    """Move the embedded store to an empty PostgreSQL database, or go on with a move that was interrupted."""
    settings = settings.model_copy(update={"database_url": None})
    _refuse_running(settings.data_dir)
    finish_restore(settings)
    begun = _find_move(settings, url)
    if begun is not None and begun.is_done:
        raise AlreadyMoved(
            f"The store was moved to {begun.to} on {begun.at}. Set WAKEFUL_DATABASE_URL (database_url) to that "
            "database, and start the server. `wakeful move --undo` goes back to the embedded store."
        )
    rows = 0
    if begun is None or size_of(settings.data_dir / STORE_FILE):
        begun, rows = await _copy(settings, url, begun, on_step)
    with hold(settings.data_dir):
        _rename(settings.data_dir, STORE_FILE, MOVED_FILE)
        on_step("renamed the embedded store", rows, rows)
        directories.save_move(settings.data_dir, replace(begun, is_done=True))
    return Moved(to=begun.to, rows=rows, kept=settings.data_dir / MOVED_FILE)


async def undo_move(settings: Settings, url: str, confirm: Callable[[str], None]) -> Move:
    """Let the embedded store be started again, and keep servers from the copy in PostgreSQL, which stays as it is.

    `confirm` is called with a question if the copy has been in use, and may raise.
    """
    _refuse_running(settings.data_dir)
    finish_restore(settings)
    begun = _find_move(settings, url)
    if begun is None:
        raise NothingToMove(f"No move was begun in {str(settings.data_dir)!r}, so there is nothing to undo.")
    async with open_target(url) as target:
        if await target.has_schema():
            await _undo_in_target(target, begun, timedelta(seconds=settings.lease_seconds), confirm)
    with hold(settings.data_dir):
        if not size_of(settings.data_dir / STORE_FILE):
            _rename(settings.data_dir, MOVED_FILE, STORE_FILE)
        _bring_back_agents(settings.data_dir)
        directories.save_move(settings.data_dir, None)
    return begun


async def _copy(settings: Settings, url: str, begun: Move | None, on_step: OnStep) -> tuple[Move, int]:
    """Copy, compare and finish; returns the move and the number of rows."""
    path = settings.data_dir / STORE_FILE
    if not size_of(path):
        raise NothingToMove(f"There is no embedded store with content at {str(path)!r}, so there is nothing to move.")
    check_device_key(settings)
    clock, database = SystemClock(), database_of(settings)
    assert isinstance(database, SqliteDatabase)
    store = Store(database)
    await store.open(clock.now())  # takes the lock of the data directory, and brings the schema up to date
    try:
        if begun is None:  # a second attempt must find the rows as the first one did
            await report_loss(store, clock)
            await _end_process_state(store, clock)
        async with open_target(url) as target:
            return await _copy_open(settings, database, target, url, begun, on_step)
    finally:
        await store.close()


async def _copy_open(
    settings: Settings, database: SqliteDatabase, target: Target, url: str, begun: Move | None, on_step: OnStep
) -> tuple[Move, int]:
    store = Store(PostgresDatabase(url))
    clock = ServerClock(store.read_clock)
    await store.open(clock.now())
    connection = database.connect()
    try:
        await clock.measure()
        if begun is None:
            await target.refuse_used()  # before anything is recorded here
            begun = Move(id=token_hex(8), to=place_of(url), at=clock.now().isoformat(timespec="seconds"))
            directories.save_move(settings.data_dir, begun)
        tables = find_tables(connection)
        rows = sum(table.rows for table in tables)
        on_step("recorded the move here", 0, rows)
        found = await target.begin(
            begun.id, directories.load_directory(settings.data_dir).id, to_micros(clock.now()), tables
        )
        if found.undone_at is not None:
            raise MoveUndone("This move is being undone. Finish that with `wakeful move --undo`.")
        if found.finished_at is None:
            on_step("recorded the move in PostgreSQL", 0, rows)
            await copy_tables(connection, target, found, tables, on_step)
            await compare_tables(connection, target, tables, on_step)
            await _bind_agents(settings, store, clock)
            on_step("recorded where agents' files are", rows, rows)
            await target.finish(found, to_micros(clock.now()))
        on_step("finished in PostgreSQL", rows, rows)
        return begun, rows
    finally:
        connection.close()
        await store.close()


async def _end_process_state(store: Store, clock: Clock) -> None:
    """End what lasts only as long as a server, as its next start would."""

    async def work(tx: Tx) -> None:
        await tx.wakes.cancel_ephemeral(clock.now())
        await tx.presence.end_all_of_nodes()

    await store.write(work)


async def _bind_agents(settings: Settings, store: Store, clock: Clock) -> None:
    """Record that agents' databases and files are in this data directory, so that no other node creates new ones."""
    lease = timedelta(seconds=settings.lease_seconds)
    await Directories(store, clock, settings.data_dir, device_key_of(settings), token_hex(8), lease).enter()


async def _undo_in_target(target: Target, begun: Move, lease: timedelta, confirm: Callable[[str], None]) -> None:
    found = await target.find_move(begun.id)
    if found is None:
        return
    now = await target.now()
    if await target.count_nodes(now - lease // timedelta(microseconds=1)):
        raise NodesRunning(
            f"A server runs on {begun.to}. Stop all of them first; one that was killed counts as running for "
            f"{lease.total_seconds():.0f} seconds."
        )
    if found.finished_at is not None:
        runs = await target.count_runs(found.finished_at)
        if runs:
            confirm(
                f"Servers have used {begun.to} since {from_micros(found.finished_at):%Y-%m-%d %H:%M} UTC: there are "
                f"{runs} newer runs. The embedded store knows nothing of them, and its wakes are due again since then. "
                "Go back?"
            )
    await target.undo(found, now)


def _find_move(settings: Settings, url: str) -> Move | None:
    file = directories.find_directory(settings.data_dir)
    if file is None or file.move is None:
        return None
    if file.move.to != place_of(url):
        raise OtherTarget(
            f"A move to {file.move.to} was begun here on {file.move.at}, and this is another database. Go on with that "
            "one, or undo it with `wakeful move --undo` and its address."
        )
    return file.move


def _refuse_running(data_dir: Path) -> None:
    running = find_running(data_dir)
    if running is not None:
        raise StoreInUse(data_dir, str(running.pid))


def _bring_back_agents(data_dir: Path) -> None:
    """Put the files of agents back that a server has moved into PostgreSQL."""
    kept = data_dir / MOVED_AGENTS
    if not kept.is_dir():
        return
    for folder in sorted(kept.iterdir()):
        folder.rename(data_dir / "agents" / folder.name)
    kept.rmdir()
    sync_folder(data_dir / "agents")


def _rename(data_dir: Path, old: str, new: str) -> None:
    if size_of(data_dir / old):
        (data_dir / old).rename(data_dir / new)
        sync_folder(data_dir)


# Keeps servers from a PostgreSQL store that `wakeful move` has not finished, or has undone.


_WORDS = {
    "unfinished": "A move of an embedded store to this PostgreSQL database was begun and is not finished. Nothing was "
    "changed. Go on with `wakeful move` where it was begun, or undo it there with `wakeful move --undo`.",
    "undone": "This PostgreSQL database is a copy of an embedded store that is in use again: the move was undone, and "
    "here the same wakes would fire a second time. Nothing was changed. Unset WAKEFUL_DATABASE_URL (database_url), or "
    "use another database.",
}


class StoreMoving(Unavailable):
    code = "store_moving"


async def check_moves(store: Store) -> None:
    """Raise if this store is not a whole copy, or not the one in use."""
    if store.is_shared:
        await store.read(refuse_moving)


async def refuse_moving(tx: Tx) -> None:
    """Raise as part of a transaction."""
    found = await tx.moves.find_blocking()
    if found is not None:
        raise StoreMoving(_WORDS[found])
