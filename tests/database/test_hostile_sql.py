"""A model that has been turned against its owner: hostile statements through every tool that takes SQL.

Whatever a statement answers, afterwards nothing outside its file has changed, nothing that is hidden was shown, every
changed row is in the changelog and nothing else is, and the file opens with its key.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
import sqlcipher3

from databases import AT, KEY, TASKS, fingerprints
from wakeful.agentdb.connection import Request
from wakeful.agentdb.engine import DatabaseEngine, WorkerBroke
from wakeful.core.errors import WakefulError

pytestmark = pytest.mark.security

CANARY = "CANARY-OF-ANOTHER-FILE"
TOMBSTONE = "TOMBSTONE-NOBODY-MAY-SEE"
QUOTA = 3 * 1024 * 1024
SECONDS = 0.4  # enough for anything honest here; a bomb gets no more
MAX_MEMORY = 160 * 1024  # kB of a worker: 64 MB of SQLite's, the rest is Python

TOOLS = {
    "db_query": lambda sql: ("query", {"sql": sql}),
    "db_query, deleted too": lambda sql: ("query", {"sql": sql, "include_deleted": True}),
    "db_execute": lambda sql: ("execute", {"sql": sql}),
    "db_define_view": lambda sql: (
        "define_view",
        {"name": "v", "sql": sql, "description": "", "parameters": [], "render": "table", "pinned": None},
    ),
    "db_run_view": lambda _sql: ("run_view", {"name": "v"}),  # what the line before may have defined
    "db_export": lambda sql: ("export", {"sql": sql, "format": "jsonl"}),
}
WHOLE = {"intact": True, "broken_at": None, "is_cut_off": False}
MAY_SHOW_TOMBSTONES = {"db_query, deleted too", "db_execute"}
RESERVED = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name LIKE '\\_%' ESCAPE '\\' ORDER BY name"
ACTING = "SELECT name FROM sqlite_schema WHERE type IN ('trigger', 'view') OR sql LIKE '%VIRTUAL%'"


CORPUS = (Path(__file__).parents[1] / "data/hostile.sql").read_text(encoding="utf-8")


def read_corpus(outside: Path, other: Path) -> list[str]:
    """Read the statements, with the paths of this test in them."""
    return _read(CORPUS, outside, other)


def read_refused() -> list[str]:
    """Read the statements that every tool must refuse."""
    return _read(CORPUS[CORPUS.index("# MUST BE REFUSED") :], Path("/nowhere"), Path("/nowhere"))


def _read(text: str, outside: Path, other: Path) -> list[str]:
    lines = [line for line in text.split("\n") if line and not line.startswith("#")]
    lines = [line.replace("{outside}", str(outside)).replace("{other}", str(other)) for line in lines]
    repeated = re.compile(r"\{\{(.+?)\*(\d+)\}\}")
    return [repeated.sub(lambda found: found[1] * int(found[2]), line).replace("\\n", "\n") for line in lines]


class Victim:
    """An agent's file with a neighbour, a folder that is none of its business, and real workers."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "victim" / "db.sqlite"
        self.other = folder / "other" / "db.sqlite"
        self.outside = folder / "outside"
        for each in (self.path.parent, self.other.parent, self.outside):
            each.mkdir()
        (self.outside / "canary.txt").write_text(CANARY)
        sqlcipher3.connect(self.outside / "canary.db").execute(f"CREATE TABLE canary AS SELECT '{CANARY}' AS a").close()
        self.engine = DatabaseEngine(2)

    async def ask(self, op: str, args: dict[str, Any], path: Path | None = None) -> Any:
        request = Request(
            op=op,
            path=str(path or self.path),
            key=KEY.hex(),
            seconds=SECONDS,
            quota=QUOTA,
            at=AT,
            actor="agent",
            run_id="run-1",
            args=args,
        )
        answered = await self.engine.ask(request)
        return answered.text.decode() if op == "export" else answered.result

    async def settle(self) -> None:
        for path in (self.path, self.other):
            await self.ask("create_table", dict(TASKS), path)
            rows = [{"title": "Task 1"}, {"title": TOMBSTONE}, {"title": "Task 3"}]
            await self.ask("insert", {"table": "tasks", "rows": rows}, path)
            await self.ask("delete", {"table": "tasks", "where": {"id": 2}}, path)
        await self.engine.close_file(str(self.other))


async def attack(victim: Victim, statements: list[str]) -> list[str]:
    """Try each statement through each tool; return what was shown that may not be."""
    leaks: list[str] = []
    hidden = (CANARY, KEY.hex(), "CREATE TABLE", "CREATE INDEX", "_changelog_by", "thinned_to")
    for sql in statements:
        for tool, spell in TOOLS.items():
            op, args = spell(sql)
            try:
                answer = await victim.ask(op, args)
            except WakefulError as error:
                answer = error.message
                is_refused = True
            else:
                is_refused = False
            text = orjson.dumps(answer).decode() if not is_refused else ""
            shown = [word for word in hidden if word in text and word not in sql]
            if TOMBSTONE in text and tool not in MAY_SHOW_TOMBSTONES:
                shown.append(TOMBSTONE)
            leaks += [f"{tool}: {sql[:200]!r} showed {word!r}" for word in shown]
    return leaks


def fold(changes: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return what `tasks` must hold if the changelog tells all of its changes and no others."""
    rows: dict[int, dict[str, Any]] = {}
    for change in changes:
        if change["table_name"] != "tasks" or change["row_id"] is None:
            continue
        row = {**rows.pop(change["row_id"], {}), **change["after"]}
        rows[(change["detail"] or {}).get("moved_to", change["row_id"])] = row
    return rows


def read_independently(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = sqlcipher3.connect(path)
    try:
        connection.execute(f"PRAGMA key = \"x'{KEY.hex()}'\"")
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])  # pyright: ignore[reportOptionalSubscript]


@pytest.fixture
def victim(tmp_path):
    return Victim(tmp_path)


def test_the_corpus_is_as_large_as_it_says(tmp_path):
    statements = read_corpus(tmp_path, tmp_path)
    assert len(set(statements)) >= 770


async def test_no_hostile_statement_gets_out_or_leaves_a_trace(victim):
    await victim.settle()
    around = {folder: fingerprints(folder) for folder in (victim.outside, victim.other.parent)}
    hosts_own = read_independently(victim.path, RESERVED)
    try:
        leaks = await attack(victim, read_corpus(victim.outside, victim.other))
        assert leaks == []

        # Nothing outside was made, changed or read into an answer; the neighbour is as it was.
        assert {folder: fingerprints(folder) for folder in around} == around
        made = {path.name for path in victim.path.parent.iterdir()}
        assert made <= {"db.sqlite", "db.sqlite-wal", "db.sqlite-shm", "snapshots"}
        assert all(peak_memory(pid) < MAX_MEMORY for pid in victim.engine.pids)

        # The changelog is whole, and tells exactly what the table holds.
        assert await victim.ask("verify", {}) == WHOLE
        changes: list[dict[str, Any]] = []
        is_more = True
        while is_more:
            page = await victim.ask("changelog", {"limit": 10**6, "before": changes[0]["id"] if changes else None})
            changes, is_more = [*reversed(page["changes"]), *changes], page["is_more"]
        found = await victim.ask("rows", {"table": "tasks", "show": "all", "limit": 5000})
        actual = {row[0]: dict(zip(found["columns"][1:], row[1:], strict=True)) for row in found["rows"]}
        told = fold(changes)
        assert actual.keys() == told.keys()
        for row_id, row in actual.items():
            assert {name: value for name, value in row.items() if name in told[row_id]} == told[row_id]
        assert sum(row["_deleted_at"] is not None for row in actual.values()) == 1  # as at the beginning
    finally:
        await victim.engine.aclose()

    # The file opens with its key in another program, and holds nothing that acts by itself.
    assert read_independently(victim.path, "PRAGMA integrity_check") == [("ok",)]
    assert read_independently(victim.path, "PRAGMA cipher_integrity_check") == []
    assert read_independently(victim.path, ACTING) == []
    assert read_independently(victim.path, RESERVED) == hosts_own
    assert victim.path.stat().st_size <= QUOTA


async def test_no_hostile_migration_gets_out_or_leaves_a_trace(victim):
    """A migration may drop the agent's own tables, so each one that succeeds is judged and then taken back."""
    await victim.settle()
    await victim.engine.close_file(str(victim.path))
    around = {folder: fingerprints(folder) for folder in (victim.outside, victim.other.parent)}
    hosts_own, pristine = read_independently(victim.path, RESERVED), victim.path.read_bytes()
    succeeded = 0
    try:
        for sql in read_corpus(victim.outside, victim.other):
            try:
                await victim.ask("migrate", {"up_sql": sql, "down_sql": "", "purpose": "x"})
            except WakefulError:
                continue
            succeeded += 1
            assert await victim.ask("verify", {}) == WHOLE, sql
            tables = (await victim.ask("names", {}))["tables"]
            rows = (await victim.ask("query", {"sql": "SELECT * FROM tasks"}))["rows"] if "tasks" in tables else []
            assert TOMBSTONE not in str(rows), sql
            await victim.engine.close_file(str(victim.path))
            assert read_independently(victim.path, RESERVED) == hosts_own, sql
            assert read_independently(victim.path, ACTING) == [], sql
            shutil.rmtree(victim.path.parent)
            victim.path.parent.mkdir()
            victim.path.write_bytes(pristine)
        assert 0 < succeeded < 100  # most that do only read
        assert {folder: fingerprints(folder) for folder in around} == around
        assert await victim.ask("verify", {}) == WHOLE
        assert all(peak_memory(pid) < MAX_MEMORY for pid in victim.engine.pids)
    finally:
        await victim.engine.aclose()
    assert read_independently(victim.path, "PRAGMA integrity_check") == [("ok",)]


async def refused(victim: Victim, tool: str, op: str, args: dict[str, Any]) -> list[str]:
    """Ask for something that must be refused, and say so if it is not, or not with words of ours."""
    try:
        await victim.ask(op, args)
    except WorkerBroke as error:
        return [f"{tool}: {args} broke the worker: {error}"]
    except WakefulError:
        return []
    return [f"{tool}: {args} was allowed"]


async def test_every_tool_refuses_these_with_words(victim):
    await victim.settle()
    tools = {tool: spell for tool, spell in TOOLS.items() if tool != "db_run_view"}
    tools["db_migrate"] = lambda sql: ("migrate", {"up_sql": sql, "down_sql": "", "purpose": "x"})
    allowed: list[str] = []
    try:
        before = await victim.ask("schema", {"with_system": True})
        for sql in read_refused():
            for tool, spell in tools.items():
                allowed += await refused(victim, tool, *spell(sql))
        assert allowed == []
        assert await victim.ask("schema", {"with_system": True}) == before
        assert await victim.ask("verify", {}) == WHOLE
    finally:
        await victim.engine.aclose()
