"""An agent's database to test with: the worker's own code in this process."""

import hashlib
from pathlib import Path
from typing import Any

import orjson

from wakeful.agentdb.engine import split
from wakeful.agentdb.worker import Worker

KEY = bytes(range(32))
AT = "2026-03-02T12:00:00+00:00"
QUOTA = 4 * 1024 * 1024

TASKS = {
    "name": "tasks",
    "purpose": "What is to be done.",
    "columns": [
        {"name": "title", "type": "text", "required": True},
        {"name": "state", "type": "text", "default": "open"},
        {"name": "hours", "type": "real"},
    ],
    "indexes": [],
}


class Refused(Exception):
    """An error that a worker answered."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values["message"])
        self.kind: str = values["kind"]
        self.values = values


class Database:
    """One file, and a worker that answers in this process."""

    def __init__(self, path: Path | str, *, key: bytes = KEY, quota: int = QUOTA, worker: Worker | None = None) -> None:
        self.path = Path(path)
        self.key = key
        self._name = str(path)
        self.quota = quota
        self.worker = worker or Worker()
        self.at = AT

    def ask(self, op: str, **options_and_args: Any) -> Any:
        """Run an operation and return its result, or raise Refused."""
        return self.answer(op, **options_and_args)["result"]

    def answer(
        self,
        op: str,
        *,
        actor: str = "agent",
        run: str | None = "run-1",
        seconds: float = 5,
        door: str = "tool",
        **args: Any,
    ) -> Any:
        request = {
            "op": op,
            "path": self._name,
            "key": self.key.hex(),
            "seconds": seconds,
            "quota": self.quota,
            "at": self.at,
            "actor": actor,
            "run_id": run,
            "door": door,
            "args": args,
        }
        answer, result = split(self.worker.answer(orjson.dumps(request)))
        if not answer["ok"]:
            raise Refused(answer)
        return {**answer, "result": {"text": result.decode()} if op == "export" else orjson.loads(result)}

    def query(self, sql: str, **args: Any) -> list[list[Any]]:
        return self.ask("query", sql=sql, **args)["rows"]

    def with_tasks(self, count: int = 0) -> "Database":
        self.ask("create_table", **TASKS)
        if count:
            self.ask("insert", table="tasks", rows=[{"title": f"Task {number}"} for number in range(1, count + 1)])
        return self

    def changes(self, **which: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        is_more = True
        while is_more:
            page = self.ask("changelog", limit=100_000, before=found[-1]["id"] if found else None, **which)
            found += page["changes"]
            is_more = page["is_more"]
        return list(reversed(found))

    def close(self) -> None:
        self.worker.close_all()


def fingerprints(folder: Path) -> dict[str, str]:
    """Return a hash of each file below a folder, to see whether anything changed."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
