"""Operations about the key of a file, for the host."""

from typing import Any

import apsw

from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.files import files
from wakeful.agentdb.files.open_database import OpenDatabase
from wakeful.agentdb.history import snapshots
from wakeful.agentdb.operation import operation
from wakeful.agentdb.tables.schema import log_schema


@operation("rekey", "upkeep", is_long=True)
def rekey(db: OpenDatabase, new_key: str) -> dict[str, Any]:
    """Encrypt the file and its snapshots with another key, except those that have it already.

    The file comes last: while it has the old key, a rotation that was cut off can be detected and finished.
    """
    db.close()
    key = bytes.fromhex(new_key)
    damaged: list[str] = []
    for each in (*snapshots.of(db.path), db.path):
        if files.opens(each, key):
            continue
        try:
            files.change_key(each, None if files.is_plain(each) else db.key, key)
        except apsw.NotADBError:
            if each == db.path:
                raise Refusal("unreadable", "The database cannot be read with its key.") from None
            damaged.append(each.name)  # a damaged snapshot must not stop the rotation
    db.key = key
    return {"rekeyed": True, "damaged": damaged}


@operation("check")
def check(db: OpenDatabase) -> dict[str, Any]:
    """Check that the file can be read with its key."""
    with db.reader.looking() as connection:
        connection.raw.execute("SELECT count(*) FROM main.sqlite_schema").fetchall()
    return {"readable": True}


@operation("note_key_shown", "write", uses_reserve=True)
def note_key_shown(db: OpenDatabase) -> dict[str, Any]:
    """Record in the changelog that a person was shown the key."""
    log_schema(db.writer, None, {"key_shown": True})
    return {}
