"""What the host throws away when a file gets full: old tombstones, and old images of rows in the changelog."""
# pyright: reportUnknownMemberType=false

from datetime import datetime, timedelta

import orjson

from wakeful.agentdb import files
from wakeful.agentdb.changelog import Who
from wakeful.agentdb.database import Writer, quoted, row_id_of

KEEP = timedelta(days=30)
_MOST_AT_ONCE = 10_000


def make_room(writer: Writer, at: str, quota: int, keep: timedelta = KEEP) -> dict[str, int]:
    """Purge and thin what is older than its time; say how much went. To keep nothing means images, never rows."""
    who = Who(at=at, actor="system")
    before = (datetime.fromisoformat(at) - keep).isoformat()
    with writer.writing(who, quota, op="purge", uses_reserve=True, may_delete=True, most_value=files.HOST_VALUE):
        purged = _purge(writer, before) if keep else 0
        # The names of the rows stay in the changelog; to keep what was in them would free nothing.
        writer.capture.changes = [change._replace(old=None) for change in writer.capture.changes]
        thinned = _thin(writer, who, before)
    return {"purged": purged, "thinned": thinned}


def _purge(writer: Writer, before: str) -> int:
    purged = 0
    for table in writer.connection.tables():
        id_name = row_id_of(writer.columns(table))
        old = writer.raw.execute(
            f"SELECT {id_name} FROM main.{quoted(table)} WHERE _deleted_at < ? LIMIT ?",
            (before, _MOST_AT_ONCE - purged),
        ).fetchall()
        for (row_id,) in old:
            purged += writer.delete_alone(table, row_id)
    return purged


def _thin(writer: Writer, who: Who, before: str) -> int:
    """Drop images from old entries, and close that stretch of the chain with a checkpoint."""
    raw = writer.raw
    last = raw.execute(
        "SELECT max(id) FROM _changelog WHERE at <= ? AND (before IS NOT NULL OR after IS NOT NULL)", (before,)
    ).fetchone()[0]  # pyright: ignore[reportOptionalSubscript]
    if last is None:
        return 0
    raw.execute(
        "UPDATE _changelog SET before = NULL, after = NULL WHERE id <= ? AND (before IS NOT NULL OR after IS NOT NULL)",
        (last,),
    )
    thinned = raw.changes()
    [(stored,)] = raw.execute("SELECT hash FROM _changelog WHERE id = ?", (last,)).fetchall()
    noted = {"thinned_to": last, "hash": stored.hex(), "digest": writer.changelog.digest_up_to(last)}
    writer.changelog.add(who, [("purge", None, None, None, None, orjson.dumps(noted).decode())])
    return thinned
