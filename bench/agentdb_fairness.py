"""Latency of one agent's queries while another agent floods its own database with slow queries and imports.

Writes bench/out/agentdb_fairness.json and says whether the target is met: p99 at most 50 ms more than alone.
Measure on a quiet machine.
"""

import asyncio
import json
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from wakeful.agentdb.connection import Request
from wakeful.agentdb.engine import DatabaseEngine
from wakeful.agentdb.errors import DataTimeout

OUT = Path(__file__).parent / "out" / "agentdb_fairness.json"
ROUNDS = 300
TARGET_MS = 50
SLOW = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
FILE = "a,b\n" + "\n".join(f"{number},{'x' * 300}" for number in range(20_000))


def request(path: Path, op: str, seconds: float = 30, **args: object) -> Request:
    at = "2026-03-02T12:00:00+00:00"
    return Request(op=op, path=str(path), key="11" * 32, seconds=seconds, quota=2**30, at=at, args=args)


async def measure(engine: DatabaseEngine, path: Path) -> list[float]:
    """Return how long each of many small queries took, in milliseconds."""
    took: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        await engine.ask(request(path, "query", sql="SELECT 1"))
        took.append(1000 * (time.perf_counter() - begun))
        await asyncio.sleep(0.01)
    return took


async def flood(engine: DatabaseEngine, path: Path, number: int) -> None:
    while True:
        with suppress(DataTimeout):
            await engine.ask(request(path, "query", seconds=0.5, sql=SLOW))
        await engine.ask(request(path, "import", table=f"t{number}", text=FILE, format="csv", create=True))


async def main() -> None:
    engine = DatabaseEngine(2)
    with tempfile.TemporaryDirectory() as folder:
        busy, other = Path(folder) / "busy", Path(folder) / "other"
        table = {"name": "t", "purpose": "x", "columns": [{"name": "a", "type": "text"}], "indexes": []}
        for path in (busy, other):
            await engine.ask(request(path, "create_table", **table))
        alone = await measure(engine, other)
        floods = [asyncio.create_task(flood(engine, busy, number)) for number in range(8)]
        await asyncio.sleep(1)
        beside = await measure(engine, other)
        for task in floods:
            task.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
        await engine.aclose()
    found = {
        name: {"median_ms": statistics.median(took), "p99_ms": statistics.quantiles(took, n=100)[98]}
        for name, took in (("alone", alone), ("beside_a_flood", beside))
    }
    more = found["beside_a_flood"]["p99_ms"] - found["alone"]["p99_ms"]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({**found, "more_ms": more, "target_ms": TARGET_MS}, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    print(f"{more:.1f} ms more in the 99th percentile; target {TARGET_MS}: {'met' if more <= TARGET_MS else 'NOT met'}")


if __name__ == "__main__":
    asyncio.run(main())
