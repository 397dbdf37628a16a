"""Copies the tables of an embedded store to PostgreSQL in small transactions, and compares them."""

from collections.abc import Callable, Sequence

import apsw

from wakeful.domain.errors import Unavailable
from wakeful.store.moving.source import Table, Values, read_rows, read_sorted
from wakeful.store.moving.target import StoreMove, Target

MAX_ROWS = 1_000  # of one transaction
_MAX_BYTES = 8_000_000

# The step, and how many rows of how many are done.
OnStep = Callable[[str, int, int], None]


class RowsDiffer(Unavailable):
    code = "moved_rows_differ"


async def copy_tables(
    connection: apsw.Connection, target: Target, move: StoreMove, tables: Sequence[Table], on_step: OnStep
) -> None:
    """Copy every row that the target does not have yet."""
    total = sum(table.rows for table in tables)
    for table in tables:
        last, _ = move.progress.get(table.name, (-(2**63), 0))
        batch: list[Values] = []
        size = 0
        for row_id, values in read_rows(connection, table, last):
            batch.append(values)
            size += sum(len(value) for value in values if isinstance(value, str | bytes))
            if len(batch) == MAX_ROWS or size >= _MAX_BYTES:
                move = await target.add(move, table, batch, row_id)
                batch, size = [], 0
                _report(on_step, table, move, total)
            last = row_id
        if batch:
            move = await target.add(move, table, batch, last)
            _report(on_step, table, move, total)


async def compare_tables(connection: apsw.Connection, target: Target, tables: Sequence[Table], on_step: OnStep) -> None:
    """Compare every row of every table on both sides, and raise at the first that differs."""
    done, total = 0, sum(table.rows for table in tables)
    for table in tables:
        await _compare(connection, target, table)
        done += table.rows
        on_step(f"compared {table.name}", done, total)


async def _compare(connection: apsw.Connection, target: Target, table: Table) -> None:
    mine = read_sorted(connection, table)
    async for theirs in target.read_sorted(table):
        row = next(mine, None)
        if row != theirs:
            raise _differ(table, row or theirs)
    row = next(mine, None)
    if row is not None:
        raise _differ(table, row)


def _differ(table: Table, row: Values) -> RowsDiffer:
    values = dict(zip(table.columns, row, strict=True))
    # A key that is not a single id may be the row's text.
    where = f" with {table.key[0]} {values[table.key[0]]!r}" if len(table.key) == 1 else ""
    return RowsDiffer(
        f"A row of the table {table.name}{where} is not the same in PostgreSQL as in the embedded store. The move is "
        "not finished, and no server starts on either. Undo it with `wakeful move --undo`, and move to another, empty "
        "database."
    )


def _report(on_step: OnStep, table: Table, move: StoreMove, total: int) -> None:
    on_step(f"copied {table.name}", sum(rows for _, rows in move.progress.values()), total)
