"""PgQueuer, tuned: how many due no-op jobs a second it runs and marks as done. Run by peers.py in a venv of its own."""

import asyncio
import json
import sys
import time

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

PAYLOAD = b"Read notes.txt with read_file and write what changed to report.md. " * 3


async def fires(url: str, count: int, batch: int) -> float:
    async with asyncpg.create_pool(url, min_size=4, max_size=8) as pool:
        driver = AsyncpgPoolDriver(pool)
        queries = Queries(driver)
        await queries.install()
        await queries.enqueue(["nothing"] * count, [PAYLOAD] * count, [0] * count)
        worker = PgQueuer(driver)
        done = 0

        @worker.entrypoint("nothing")
        async def nothing(_job: object) -> None:
            nonlocal done
            done += 1

        began = time.perf_counter()
        await worker.run(batch_size=batch, mode=QueueExecutionMode.drain)
        spent = time.perf_counter() - began
        assert done == count, done
        return count / spent


if __name__ == "__main__":
    url, count, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(json.dumps({"fires_per_s": round(asyncio.run(fires(url, count, batch)))}))
