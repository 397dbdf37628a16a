"""A model that does small tasks by their names, and its own ledger of what it was asked. It is never killed.

A task stands in the instructions: `task note T7` has the agent add the line T7 to a file. Every task ends with the
answer `Done T7.`, and every booking that a task makes carries a task of its own, `T7b`.
"""

import asyncio
import json
import random
import re
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from crash.server_process import INTERRUPTED
from openai_server import Exchange, call, calls, stream, text, usage

FILE = "effects.txt"
TABLE = "effects"
TASK = re.compile(r"task (\w+) (T\d+b?)\b")
BOOKED = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
BY_TOOLS = ("note", "row", "tell", "recall", "message", "session", "next")


def instruct(kind: str, token: str) -> str:
    """Write instructions that the brief check of agents' bookings accepts: they name a tool."""
    return f"Use write_file or db_insert if you need them: task {kind} {token}"


def answer_to(token: str) -> str:
    return f"Done {token}."


def tool_call(kind: str, token: str) -> tuple[str, dict[str, Any]]:
    """Return the tool that a kind of task calls, and with what."""
    later = instruct("note", f"{token}b")
    return {
        "note": ("write_file", {"path": FILE, "content": f"{token}\n", "append": True}),
        "row": ("db_insert", {"table": TABLE, "rows": [{"token": token}]}),
        "tell": ("notify", {"title": token, "body": f"About {token}"}),
        "recall": (
            "schedule_recall",
            {"call_type": "once", "when": "1 second", "additional_context_message": later},
        ),
        "message": ("scheduler", {"op": "create", "kind": "message", "delay_ms": 1000, "message": later}),
        "session": (
            "scheduler",
            {
                "op": "create",
                "kind": "session",
                "delay_ms": 1000,
                "message": later,
                "session_config": {"session_name": token},
            },
        ),
        "next": ("schedule_next_run", {"in_seconds": 1, "instructions": later}),
        "read": ("read_file", {"path": FILE}),
    }[kind]


@dataclass
class Asked:
    """The requests that the model received for one task."""

    kind: str
    at: list[float] = field(default_factory=list)  # every request
    called: int = 0  # answers with a tool call that were sent to the end
    answered: int = 0  # final answers that were sent to the end
    result: str | None = None  # what the tool said
    after_the_answer: int = 0  # requests whose transcript has the final answer already

    @property
    def is_in_doubt(self) -> bool:
        return self.result is not None and INTERRUPTED.search(self.result) is not None

    @property
    def is_done(self) -> bool:
        return self.result is not None and not self.is_in_doubt and not _is_refusal(self.result)


class TaskModel:
    """Answers every request by the last task in it."""

    def __init__(self, seed: int) -> None:
        self.asked: dict[str, Asked] = {}
        self.strange: list[str] = []
        self.files: dict[str, str] = {}  # what a file was read as, by the token of the task
        self.results: dict[str, set[str]] = defaultdict(set)
        self._chance = random.Random(seed)

    async def __call__(self, exchange: Exchange) -> None:
        body = exchange.request.body
        messages = body["messages"]
        found = [(number, match) for number, each in enumerate(messages) if (match := _task_in(each))]
        if not found:
            await stream(*text("A title"), usage(1, 1))(exchange)
            return
        place, match = found[-1]
        kind, token = match.groups()
        asked = self.asked.setdefault(token, Asked(kind))
        asked.at.append(time.time())
        since = messages[place + 1 :]
        results = [str(each["content"]) for each in since if each["role"] == "tool"]
        if any(each["role"] == "assistant" and answer_to(token) in str(each.get("content")) for each in since):
            asked.after_the_answer += 1
        if results:
            asked.result = results[-1]
            self.results[token].add(results[-1])
        if kind != "say" and not results:
            name, arguments = tool_call(kind, token)
            await asyncio.sleep(self._chance.uniform(0, 0.05))
            await calls(*call(name, json.dumps(arguments), id=f"call_{token}"), usage(10, 5))(exchange)
            asked.called += 1
            return
        if kind == "read":
            self.files[token] = results[-1]
        words = answer_to(token)
        pause = self._chance.uniform(0, 0.1)
        await stream(*text(words[:3]), pause, *text(words[3:]), usage(10, 2))(exchange)
        asked.answered += 1


def _task_in(message: dict[str, Any]) -> re.Match[str] | None:
    content = message.get("content")
    if message["role"] != "user" or not isinstance(content, str):
        return None
    found = list(TASK.finditer(content))
    return found[-1] if found else None


def _is_refusal(result: str) -> bool:
    return '"ok": false' in result or '"ok":false' in result or result.startswith("Error")
