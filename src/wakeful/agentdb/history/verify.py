"""Operations that read the changelog and check that it is complete and unchanged."""

from typing import Any

from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history.changelog import Changelog
from wakeful.agentdb.operation import operation

Head = tuple[int, str]  # number and hash, in hexadecimal, of the last entry that the server knows


@operation("changelog", path="GET /changelog", command="log")
def read(
    db: OpenDatabase,
    run_id: str | None = None,
    table: str | None = None,
    row_id: int | None = None,
    before: int | None = None,
    limit: int = 100,
) -> dict[str, Any]:
    """Return entries, newest first, older than the entry `before`; a page of very large entries has fewer."""
    with db.reader.looking() as connection:
        changes, is_more = Changelog(connection.raw).read(run_id, table, row_id, before, limit)
    return {"changes": changes, "is_more": is_more}


@operation("verify", is_long=True, path="GET /verify", command="verify")
def verify(db: OpenDatabase, known: Head | None = None) -> dict[str, Any]:
    """Check the hash chain, and that it reaches the last entry that the server knows."""
    with db.reader.looking() as connection:
        log = Changelog(connection.raw)
        broken_at, last = log.find_break(), log.last()[0]
        is_cut_off = known is not None and last < known[0]
        if broken_at is None and is_cut_off:
            broken_at = last + 1
        elif broken_at is None and known is not None and not log.has(known[0], bytes.fromhex(known[1])):
            broken_at = 1  # an intact chain, but another one
    return {"intact": broken_at is None, "broken_at": broken_at, "is_cut_off": is_cut_off}


@operation("reaches")
def reaches(db: OpenDatabase, known: Head) -> dict[str, Any]:
    """Return whether the changelog has the last entry that the server knows, and its own last entry."""
    number, digest = known
    with db.reader.looking() as connection:
        log = Changelog(connection.raw)
        last, head = log.last()
        at = connection.raw.execute("SELECT at FROM _changelog WHERE id = ?", (last,)).get
        has = log.has(number, bytes.fromhex(digest))
        return {"reaches": last > number or has, "has": has, "last": last, "hash": head.hex(), "at": at}
