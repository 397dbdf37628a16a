"""A year of 1,000 wakes a day in the embedded store: its size, the start of a node, agenda, lists and search; then
retention and vacuum, with bookings meanwhile.

Writes bench/out/year.json. The wakes are rows as the engine leaves them, with an answer each; `--days 30` makes fewer.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from search import Texts
from wakeful.app.building import Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.clock import ManualClock
from wakeful.core.identity import Identity
from wakeful.core.types import Agent, Message, Run, RunUsage, User, Wake
from wakeful.core.values import replace
from wakeful.operations.storage import OldData, Retention, Vacuum
from wakeful.store.store import Tx
from wakeful.timing import recurrence
from wakeful.timing.bounds import PRESETS
from wakeful.timing.fire_rule import fresh_session, make_run
from wakeful.timing.lifecycle import create

OUT = Path(__file__).parent / "out" / "year.json"
WAKES_A_DAY, AGENTS, ROUNDS = 1_000, 20, 20
NEW_SESSION = 3  # every third wake opens a session; the others are recalls in the session of their agent
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
KEPT = timedelta(days=31)


class Year:
    """Fills a store."""

    def __init__(self, node: Wakeful) -> None:
        self._node = node
        self._texts = Texts()
        self.user = User(id=ids.new_id(), name="Ada", role="owner", created_at=BEGIN)
        self.agents: list[Agent] = []
        self._sessions: list[str] = []

    async def settle_in(self) -> None:
        await self._node.agents.add_user(self.user)
        for number in range(AGENTS):
            agent = Agent(
                id=ids.new_id(),
                user_id=self.user.id,
                name=f"Agent {number}",
                timezone="Europe/Berlin",
                self_scheduling=True,
                bounds=PRESETS["reactive"],
                run_limit=timedelta(minutes=30),
                created_at=BEGIN,
                updated_at=BEGIN,
            )
            self.agents.append(await self._node.agents.add(agent))
            self._sessions.append((await self._node.sessions.open(agent.id, self.user.id)).id)

    async def live(self, day: int) -> None:
        """Add the wakes of a day, their runs, and two messages for each."""
        at = BEGIN + timedelta(days=day)
        made = [self.make(number, at + number * timedelta(days=1) / WAKES_A_DAY) for number in range(WAKES_A_DAY)]

        async def work(tx: Tx) -> None:
            await tx.wakes.add([wake for wake, _ in made])
            await tx.sessions.add(
                [fresh_session(wake, run, run.queued_at) for wake, run in made if run.session_id != wake.session_id]
            )
            await tx.runs.add([run for _, run in made])
            for number, (wake, run) in enumerate(made):
                await self._say(tx, wake, run, number)

        await self._node.store.write(work, is_synced=False)

    def make(self, number: int, at: datetime) -> tuple[Wake, Run]:
        agent = self.agents[number % AGENTS]
        wake = create(
            kind="session" if number % NEW_SESSION == 0 else "recall",
            agent_id=agent.id,
            user_id=self.user.id,
            session_id=self._sessions[number % AGENTS],
            call_type="once",
            at=at,
            instructions="Read notes.txt with read_file and write what changed to report.md. " * 3,
            timezone="Europe/Berlin",
            scheduled_by="user",
            now=at,
            rules=self._node.rules,
        )
        run = make_run(wake, recurrence.Piece(at, 1), "queued", None, at)
        ended = {"status": "success", "started_at": at, "finished_at": at + timedelta(seconds=9), "fence": 1}
        return replace(wake, status="fired", slot=None), replace(run, attempt=1, owner="bench", **ended)

    async def _say(self, tx: Tx, wake: Wake, run: Run, number: int) -> None:
        for role, text in (("user", wake.instructions), ("assistant", self._texts.make(number))):
            message = Message(
                id=ids.new_id(run.queued_at),
                session_id=run.session_id or "",
                position=0,
                role=role,
                content=text,
                created_at=run.queued_at,
                run_id=run.id,
                wake_id=wake.id,
            )
            await tx.sessions.append(message)
        usage = RunUsage(run_id=run.id, agent_id=run.agent_id, user_id=run.user_id, at=run.queued_at, model="fast")
        await tx.usage.save(usage)


async def take_ms(act: Callable[[], Awaitable[Any]], rounds: int = ROUNDS) -> float:
    """Return the median time, in milliseconds."""
    taken: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        await act()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


async def look(node: Wakeful, year: Year) -> dict[str, float]:
    """Measure what people wait for."""
    services, user = node.services, year.user.id
    queries = year._texts.queries()  # noqa: SLF001  (its helper here)
    found = {
        "agenda_ms": await take_ms(lambda: services.agenda.between(user, None, None)),
        "runs_ms": await take_ms(lambda: services.runs.find(user)),
        "wakes_ms": await take_ms(lambda: services.wakes.find(user)),
    }
    for name, words in queries.items():
        found[f"search, {name}, ms"] = await take_ms(lambda words=words: services.search.find(user, words, 20), 5)
    owner = Identity(user=year.user, scope="admin", token_id="")
    began = time.perf_counter()
    used = await services.storage.measure(owner)
    found["measure_sizes_ms"] = (time.perf_counter() - began) * 1000
    found["store_mb"] = used.store / 1e6
    for table, size in list(used.sizes.tables.items())[:8]:
        found[f"table {table}, mb"] = size / 1e6
    return found


async def delete_old(node: Wakeful, year: Year) -> dict[str, float]:
    """Delete all but the last month and free the space, while someone books."""
    kept = Retention(events=KEPT, skipped=KEPT, forget_recalls_after_days=0, runs=KEPT, sessions=KEPT)
    waits = {"before": await _book(node, year, asyncio.sleep(2))}
    old = OldData(node.store, node.clock, kept, node.sessions)
    began = time.perf_counter()
    waits["deleting"] = await _book(node, year, old.delete())
    deleted = time.perf_counter() - began
    waits["vacuum"] = await _book(node, year, Vacuum(node.store, node.clock).run())
    vacuumed = time.perf_counter() - began - deleted
    await node.store.checkpoint()
    p99 = {f"booking_p99_ms, {what}": quantiles(taken, n=100)[98] for what, taken in waits.items() if len(taken) > 1}
    size = node.store.database.path.stat().st_size / 1e6  # type: ignore[attr-defined]  (an embedded store)
    return {"delete_s": deleted, "vacuum_s": vacuumed, "store_mb_after": size} | p99


async def _book(node: Wakeful, year: Year, work: Awaitable[Any]) -> list[float]:
    """Book every 10 ms until some work is done, and return how long each booking took, in milliseconds."""
    doing, taken, number = asyncio.ensure_future(work), list[float](), 0
    while not doing.done():
        number += 1
        wake, _ = year.make(3 * number, node.clock.now() + timedelta(days=300))
        began = time.perf_counter()
        await node.store.add_wakes([replace(wake, status="cancelled")])
        taken.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.01)
    await doing
    return taken


async def simulate(folder: Path, days: int, *, deletes: bool) -> dict[str, float]:
    settings = Settings.model_validate({"data_dir": folder / "data", "config_dir": folder / "config"})
    end = BEGIN + timedelta(days=days)
    node = build(settings, clock=ManualClock(BEGIN))
    async with node.opened():
        year = Year(node)
        await year.settle_in()
        began = time.perf_counter()
        for day in range(days):
            await year.live(day)
        print(f"filled in {time.perf_counter() - began:.0f} s")
    began = time.perf_counter()
    node = build(settings, clock=ManualClock(end))
    async with node.opened():
        await node.engine.start()
        started = time.perf_counter() - began
        await node.engine.stop()
        found = {"wakes": float(days * WAKES_A_DAY), "start_ms": started * 1000} | await look(node, year)
        return found | (await delete_old(node, year) if deletes else {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--keep", action="store_true", help="delete nothing, which takes as long as filling it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wakeful-bench-") as folder:
        figures = asyncio.run(simulate(Path(folder), args.days, deletes=not args.keep))
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(figures, indent=2) + "\n")
    for name, value in figures.items():
        print(f"{name} {value:,.1f}")


if __name__ == "__main__":
    main()
