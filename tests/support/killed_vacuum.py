"""A program that is killed while it makes the store smaller: before, in, or after a step, or in the first rewrite."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from harness import Harness
from wakeful.operations import storage
from wakeful.operations.storage import Vacuum
from wakeful.store.drivers.sqlite import SqliteDatabase
from wakeful.store.store import Store

STEPS = 3  # done before the one in which it dies
FILL = (
    "CREATE TABLE large (a); INSERT INTO large WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
    "WHERE i < 2000) SELECT zeroblob(4000) FROM n; DROP TABLE large"
)


def die(*_: object) -> bool:
    os.kill(os.getpid(), signal.SIGKILL)
    return True


def die_in_step(aim: str) -> None:
    real, done = Store.cut_off, [0]

    async def cut_off(store: Store, pages: int) -> None:
        done[0] += 1
        if done[0] <= STEPS:
            await real(store, pages)
            return
        if aim == "before":
            die()
        if aim == "in":
            assert isinstance(store.database, SqliteDatabase)
            await store.database.run_script("SELECT 1")  # the writer's connection is open
            await _kill_at_commit(store.database)
        await real(store, pages)
        die()

    Store.cut_off = cut_off


async def _kill_at_commit(database: SqliteDatabase) -> None:
    """Die when the transaction of the step has changed its pages and is about to be committed."""

    async def work(statements: Any) -> None:
        statements.connection.set_commit_hook(die)

    await database.write(work)


async def main(folder: Path, aim: str) -> None:
    storage._SLACK_BYTES, storage._MIN_VACUUM_REST_SECONDS = 1_000_000, 0.0  # noqa: SLF001  (else there is little to do)
    async with Harness({"data_dir": folder / "data", "config_dir": folder / "config"}).opened() as harness:
        for _ in range(50):
            await harness.session()
        await harness.sql(FILL)
        print(harness.user.id, flush=True)
        die_in_step(aim)
        await Vacuum(harness.node.store, harness.clock).run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
