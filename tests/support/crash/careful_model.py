"""A model that writes rows and lines, looks whether they are there, and writes again only what it does not find.

All it knows of a task is the transcript that it is sent. Every entry that it writes has the number of its call, so an
entry of an attempt that was given up differs from the one that replaced it.
"""

import json
import re
from collections import Counter
from typing import Any

from openai_server import Exchange, call, calls, say

TABLE, FILE = "tokens", "notes.txt"
GOALS = (("row", "a"), ("line", "b"), ("row", "c"), ("line", "d"))

_TASK = re.compile(r"task (t[\w-]+)\b")
_ENTRY = re.compile(r"t[\w-]+/[a-d]/\d+")


def instruct(token: str) -> str:
    return f"task {token}"


def answer_to(token: str) -> str:
    return f"Done {token}."


def goal_of(entry: str) -> str:
    return entry.rpartition("/")[0]


class CarefulModel:
    """Answers each request by the last task in it, and records what a transcript tells and a look does not show."""

    def __init__(self) -> None:
        self.requests = 0
        self.faults: list[str] = []
        self.told: dict[str, set[str]] = {}  # by task: entries that a transcript says are there
        self.calls: Counter[str] = Counter()  # by the end that a transcript tells of a write

    async def __call__(self, exchange: Exchange) -> None:
        self.requests += 1
        messages = exchange.request.body["messages"]
        place, token = _last_task(messages)
        task = _Task(token)
        for name, arguments, result in _calls_in(messages[place + 1 :]):
            task.follow(name, arguments, result)
        self.faults += task.faults
        self.told[token] = task.told
        wanted = task.next_call()
        if wanted is None:
            self.calls += task.ends
            await say(answer_to(token))(exchange)
        else:
            name, arguments = wanted
            await calls(*call(name, json.dumps(arguments), id=f"call_{token}_{task.number}"))(exchange)


class _Task:
    """One task, as far as its transcript tells."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.number = 0  # of the next call
        self.told: set[str] = set()
        self.faults: list[str] = []
        self.ends: Counter[str] = Counter()
        self._unsure: set[str] = set()  # kinds with a write that may have happened
        self._looked: set[str] = set()  # kinds that were looked at since the last write

    def follow(self, name: str, arguments: dict[str, Any], result: str) -> None:
        self.number += 1
        kind = "row" if name.startswith("db_") else "line"
        if name in ("db_query", "search_files"):
            self._look(kind, result)
            return
        [entry] = _ENTRY.findall(json.dumps(arguments))
        self._looked.clear()
        if _is_done(result):
            self.told.add(entry)
            self.ends["done"] += 1
        else:
            self._unsure.add(kind)
            self.ends["in doubt" if "may or may not" in result else "refused"] += 1

    def _look(self, kind: str, result: str) -> None:
        if not _is_answer(result):  # the node could not look, so it is asked again
            return
        goals = {f"{self.token}/{name}" for of, name in GOALS if of == kind}
        seen = {entry for entry in _ENTRY.findall(result) if goal_of(entry) in goals}
        missing = {entry for entry in self.told if goal_of(entry) in goals} - seen
        if missing:
            self.faults.append(f"{sorted(missing)} are in the transcript, and are not found: {result[:300]}")
        self.told |= seen
        self._unsure.discard(kind)
        self._looked.add(kind)

    def next_call(self) -> tuple[str, dict[str, Any]] | None:
        """Return the next tool and its arguments; None: everything is there."""
        for kind in self._unsure:
            return self._to_look(kind)
        done = {goal_of(entry) for entry in self.told}
        for kind, name in GOALS:
            if f"{self.token}/{name}" not in done:
                entry = f"{self.token}/{name}/{self.number}"
                if kind == "row":
                    return "db_insert", {"table": TABLE, "rows": [{"token": entry}]}
                return "write_file", {"path": FILE, "content": f"{entry}\n", "append": True}
        for kind in ("row", "line"):
            if kind not in self._looked:
                return self._to_look(kind)
        return None

    def _to_look(self, kind: str) -> tuple[str, dict[str, Any]]:
        if kind == "row":
            return "db_query", {"sql": f"SELECT token FROM {TABLE} WHERE token LIKE '{self.token}/%'"}
        return "search_files", {"pattern": f"{self.token}/", "name": FILE}


def _last_task(messages: list[dict[str, Any]]) -> tuple[int, str]:
    found = [
        (place, match[1])
        for place, each in enumerate(messages)
        if each["role"] == "user" and (match := _TASK.search(str(each["content"])))
    ]
    return found[-1]


def _calls_in(messages: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any], str]]:
    results = {each["tool_call_id"]: str(each["content"]) for each in messages if each["role"] == "tool"}
    return [
        (made["function"]["name"], json.loads(made["function"]["arguments"]), results[made["id"]])
        for each in messages
        for made in each.get("tool_calls") or ()
    ]


def _is_done(result: str) -> bool:
    return result.startswith("Added ") or '"inserted"' in result


def _is_answer(result: str) -> bool:
    return '"rows"' in result or result.startswith(("No line has", f"{FILE}:"))
