"""A program that gives itself a small disk, uses it up or makes it read-only, and says as JSON how the store took it.

It is started in a mount namespace of its own, so the disk goes when it ends.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness import HOUR, Harness
from wakeful.core.errors import WakefulError
from wakeful.database.files import By
from wakeful.http.errors import status_of

DISK = "3m"
BALLAST = 300_000
LONG = "Read notes.txt with read_file. " * 600


def mount(disk: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], check=True)


async def fill(disk: Path, config_dir: Path) -> dict[str, Any]:
    """Book until the disk is full, free some space, go on, and open the store once more."""
    mount(disk, f"size={DISK}")
    ballast = disk / "ballast"
    ballast.write_bytes(b"." * BALLAST)
    harness = Harness({"data_dir": disk / "data", "config_dir": config_dir})
    acknowledged: list[str] = []
    said: dict[str, Any] = {}
    async with harness.opened():
        session = await harness.session()
        try:
            while len(acknowledged) < 1_000:
                wake = await harness.book(session=session, kind="session", instructions=LONG)
                acknowledged.append(wake.id)
                if len(acknowledged) % 40 == 0:  # a session may hold 50
                    session = await harness.session()
        except WakefulError as error:
            said |= {"error": type(error).__name__, "message": str(error)}
        said["filled"] = len(acknowledged)
        said["readable_while_full"] = await count(harness, acknowledged)
        try:
            await harness.book(session=session, kind="session", instructions=LONG)
        except WakefulError as error:
            said["again"] = type(error).__name__
        ballast.unlink()
        acknowledged.append((await harness.book(at=harness.clock.now() + HOUR)).id)
    again = Harness({"data_dir": disk / "data", "config_dir": config_dir})
    again.user = harness.user
    async with again.node.opened():
        said["acknowledged"], said["found"] = len(acknowledged), await count(again, acknowledged)
    return said


async def fill_database(disk: Path, config_dir: Path) -> dict[str, Any]:
    """Write to an agent's database until the disk is full, then migrate with no room for the snapshot."""
    mount(disk, "size=16m")
    ballast = disk / "ballast"
    ballast.write_bytes(b"." * 12_000_000)
    harness = Harness({"data_dir": disk / "data", "config_dir": config_dir})
    said: dict[str, Any] = {"written": 0, "errors": []}
    async with harness.opened():
        data, by = harness.node.services.data, By(agent=harness.agent)
        column = {"name": "text", "type": "text"}
        await data.run(by, "create_table", name="notes", purpose="What was heard.", columns=[column], indexes=[])
        await data.run(by, "insert", table="notes", rows=[{"text": "deleted"}] * 50)
        await data.run(by, "delete", table="notes", where={"text": "deleted"})

        async def attempt(asking: Awaitable[Any]) -> bool:
            try:
                await asking
            except WakefulError as error:
                said["errors"].append([error.code, error.message, status_of(error)])
                return False
            return True

        async def count(what: str) -> int:
            return (
                await data.run(
                    by, "query", sql=f"SELECT count(*) FROM notes WHERE {what}", params=None, include_deleted=True
                )
            )["rows"][0][0]

        while said["written"] < 200 and await attempt(
            data.run(by, "insert", table="notes", rows=[{"text": "x" * 20_000}] * 4)
        ):
            said["written"] += 1
        said["rows_while_full"] = await count("text <> 'deleted'")
        said["tombstones_while_full"] = await count("text = 'deleted'")
        ballast.unlink()
        said["again"] = await attempt(data.run(by, "insert", table="notes", rows=[{"text": "after"}]))
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        ballast.write_bytes(b"." * max(0, free - 300_000))
        said["migrated_while_full"] = await attempt(
            data.run(
                by,
                "migrate",
                purpose="Sort them.",
                up_sql="CREATE INDEX by_text ON notes (text)",
                down_sql="DROP INDEX by_text",
            )
        )
        said["copies"] = snapshots_in(disk)
        ballast.unlink()
        said["migrated"] = await attempt(
            data.run(
                by,
                "migrate",
                purpose="Sort them.",
                up_sql="CREATE INDEX by_text ON notes (text)",
                down_sql="DROP INDEX by_text",
            )
        )
        said["rows"] = await count("text <> 'deleted'")
        said["is_intact"] = (await data.run(by, "verify"))["intact"]
    return said


async def forbid(disk: Path, config_dir: Path) -> dict[str, Any]:
    """Book, make the disk read-only, try to open, make it writable, and look."""
    mount(disk, f"size={DISK}")
    settings: dict[str, object] = {"data_dir": disk / "data", "config_dir": config_dir}
    async with Harness(settings).opened() as harness:
        wake = await harness.book()
    before = digests(disk)
    mount(disk, "remount,ro")
    said: dict[str, Any] = {}
    try:
        async with harness.another_node().opened():
            said["opened"] = True
    except WakefulError as error:
        said |= {"error": type(error).__name__, "message": str(error)}
    said["is_unchanged"] = digests(disk) == before
    mount(disk, "remount,rw")
    harness.node = harness.another_node()
    async with harness.node.opened():
        said["found"] = await count(harness, [wake.id])
    return said


async def count(harness: Harness, ids: list[str]) -> int:
    return len([await harness.node.wakes.get(wake_id, harness.user.id) for wake_id in ids])


def snapshots_in(disk: Path) -> list[str]:
    return [path.name for path in disk.glob("data/agents/*/snapshots/*")]


def digests(folder: Path) -> dict[str, str]:
    return {str(file): sha256(file.read_bytes()).hexdigest() for file in folder.rglob("*") if file.is_file()}


WHAT = {"fill": fill, "fill_database": fill_database, "forbid": forbid}

if __name__ == "__main__":
    what, disk, config_dir = sys.argv[1:]
    print(json.dumps(asyncio.run(WHAT[what](Path(disk), Path(config_dir)))))
