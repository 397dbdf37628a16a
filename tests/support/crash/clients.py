"""Clients of every API of servers that are killed repeatedly, and what was acknowledged to them."""

import asyncio
import contextlib
import itertools
import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

import forked_process
from crash.server_process import TOKEN, ServerProcess
from crash.task_model import BY_TOOLS, TABLE, instruct

SESSIONS = 6
_GONE = (httpx.TransportError, OSError, WebSocketException, EOFError)


@dataclass
class Promises:
    """Acknowledged requests, by the token of their task."""

    messages: dict[str, str] = field(default_factory=dict)  # to the run's id
    wakes: dict[str, str] = field(default_factory=dict)  # to the wake's id
    rows: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)  # the server said no, so there must be nothing
    tried: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)  # final answers that came over a socket
    doors: Counter[str] = field(default_factory=Counter)
    unavailable: Counter[str] = field(default_factory=Counter)  # 503, by code
    faults: list[str] = field(default_factory=list)


class House:
    """The nodes of one store. A dead one is restarted, on the same data and another port."""

    def __init__(self, nodes: list[ServerProcess], environment: dict[str, str], folder: Path) -> None:
        self._nodes = nodes
        self._environment = environment
        self._folder = folder
        self._up: list[ServerProcess] = []
        self.kills = 0
        self.start_seconds = 0.0  # of the last start

    async def open(self) -> None:
        for node in self._nodes:
            await node.start()
        self._up = list(self._nodes)

    async def kill_one(self, chance: random.Random) -> None:
        node = chance.choice(self._nodes)
        self._up.remove(node)
        assert await node.end(signal.SIGKILL) == -signal.SIGKILL, node.log()[-3000:]
        self.kills += 1
        await node.clean_up()
        began = time.monotonic()
        await node.start()
        self.start_seconds = time.monotonic() - began
        self._up.append(node)

    async def close(self) -> None:
        for node in self._nodes:
            await node.clean_up()

    def any_node(self, chance: random.Random) -> ServerProcess:
        if not self._up:
            raise ConnectionError("no node is up")
        return chance.choice(self._up)

    def log(self) -> str:
        return "".join(node.log() for node in self._nodes)

    async def command(self, chance: random.Random, *words: str) -> tuple[int, str]:
        """Run a command of the CLI against one of the nodes."""
        address = self.any_node(chance).client.base_url
        environment = self._environment | {"WAKEFUL_PORT": str(address.port), "WAKEFUL_TOKEN": TOKEN}
        errors = self._folder / f"command-{next(_numbers)}"
        done = await asyncio.to_thread(forked_process.run, words, environment, errors)
        return done.returncode, done.stdout.strip()


_numbers = itertools.count()


class Visitors:
    """Send requests through every API, and record what was acknowledged."""

    def __init__(self, house: House, seed: int) -> None:
        self.house = house
        self.promises = Promises()
        self._chance = random.Random(seed)
        self._count = itertools.count(1)
        self.agents: list[str] = []
        self.sessions: list[str] = []
        self._watching: list[asyncio.Task[None]] = []
        self._say: dict[str, asyncio.Queue[str]] = {}

    # ── Before and after ────────────────────────────────────────────────────────────────────────────────────────────

    async def settle_in(self) -> None:
        node = self.house.any_node(self._chance)
        bounds = {"mode": "reactive", "min_interval_seconds": 0, "daily_cap": 100_000}
        bounds |= {"quiet_from": None, "quiet_to": None}
        toolsets = ["recall", "scheduler", "next_run", "database", "notify", "files"]
        for number in range(2):
            asked = {"name": f"Agent {number}", "toolsets": toolsets, "self_scheduling": True}
            agent = (await node.send("POST", "/agents", asked))["id"]
            await node.send("PATCH", f"/agents/{agent}", {"schedule": bounds})
            table = {"name": TABLE, "purpose": "To count.", "columns": [{"name": "token", "type": "text"}]}
            await node.send("POST", f"/agents/{agent}/db/tables", table)
            self.agents.append(agent)
        for number in range(SESSIONS):
            asked = {"title": f"Session {number}", "agent_id": self.agents[number % 2]}
            self.sessions.append((await node.send("POST", "/sessions", asked))["id"])
        for session in self.sessions[:2]:
            self._say[session] = asyncio.Queue()
            self._watching.append(asyncio.create_task(self._watch_session(session)))
        self._watching.append(asyncio.create_task(self._watch_events()))

    async def leave(self) -> None:
        """Let the subscribers receive the last frames, then end."""
        await asyncio.sleep(0.5)
        for task in self._watching:
            if task.done():
                task.result()  # what went wrong
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    # ── The doors ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def act(self) -> None:
        """Send a request through one of the APIs, at a random time, and record the result."""
        await asyncio.sleep(self._chance.uniform(0, 0.3))
        doors: list[tuple[int, Callable[[str], Coroutine[Any, Any, None]]]] = [
            (6, self._send_message),
            (3, self._say_over_socket),
            (3, self._book_recall),
            (4, self._book_schedule),
            (2, self._book_next_run),
            (1, self._book_with_command),
            (3, self._add_row),
        ]
        [door] = self._chance.choices([each for _, each in doors], [weight for weight, _ in doors])
        token = f"T{next(self._count)}"
        self.promises.tried.add(token)
        self.promises.doors[door.__name__.strip("_")] += 1
        with contextlib.suppress(*_GONE):  # killed before it answered: it may have happened or not
            await door(token)

    async def _send_message(self, token: str) -> None:
        kind = self._chance.choice(("say", *BY_TOOLS))
        answer = await self._post(f"/sessions/{self._session()}/messages", {"content": instruct(kind, token)}, token)
        if answer is not None:
            self.promises.messages[token] = answer["run_id"]

    async def _say_over_socket(self, token: str) -> None:
        self._say[self._chance.choice(self.sessions[:2])].put_nowait(token)

    async def _book_recall(self, token: str) -> None:
        body = {
            "call_type": "once",
            "when": f"{self._chance.randint(1, 3)} seconds",
            "additional_context_message": instruct("note", token),
        }
        answer = await self._post(f"/sessions/{self._session()}/recall", body, token)
        if answer is not None:
            self.promises.wakes[token] = answer["recall"]["id"]

    async def _book_schedule(self, token: str) -> None:
        kind = self._chance.choice(("message", "session"))
        body = {"kind": kind, "message": instruct(self._chance.choice(("note", "row", "say")), token)}
        body |= {"delay_ms": self._chance.randint(1000, 3000)}
        body |= {"session_config": {"session_name": token}} if kind == "session" else {}
        answer = await self._post(f"/sessions/{self._session()}/schedules", body, token)
        if answer is not None:
            self.promises.wakes[token] = answer["schedule"]["id"].removeprefix("sch-")

    async def _book_next_run(self, token: str) -> None:
        body = {"instructions": instruct("note", token), "in_seconds": 1}
        answer = await self._post(f"/agents/{self._chance.choice(self.agents)}/next-run", body, token, "PUT")
        if answer is not None:
            self.promises.wakes[token] = answer["next_run"]["id"]

    async def _book_with_command(self, token: str) -> None:
        words = ("wake", "add", instruct("note", token), "--when", "2 seconds", "--as", "session", "-q")
        code, said = await self.house.command(self._chance, *words, "--session", self._session(), "--name", token)
        if code == 0:
            self.promises.wakes[token] = said.removeprefix("sch-")

    async def _add_row(self, token: str) -> None:
        path = f"/agents/{self._chance.choice(self.agents)}/db/tables/{TABLE}/rows"
        if await self._post(path, {"rows": [{"token": token}]}, token) is not None:
            self.promises.rows.add(token)

    def _session(self) -> str:
        return self._chance.choice(self.sessions)

    async def _post(self, path: str, body: dict[str, Any], token: str, method: str = "POST") -> Any:
        """Return what the server answers; None if it refuses."""
        answer = await self.house.any_node(self._chance).client.request(method, path, json=body)
        if answer.is_success:
            return answer.json()
        if answer.status_code == 503:  # it may have happened or not
            self.promises.unavailable[answer.json()["error"]["code"]] += 1
        elif answer.status_code >= 500:
            self.promises.faults.append(f"{method} {path} answered {answer.status_code}: {answer.text[:300]}")
        else:
            self.promises.refused.add(token)
        return None

    # ── Subscribers ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def _watch_session(self, session: str) -> None:
        """Follow a session's socket over all kills: every number once, in order. Also sends the session's messages."""
        last = 0
        while True:
            with contextlib.suppress(*_GONE, TimeoutError):
                async with self._connected(f"/ws/sessions/{session}?after={last}") as socket:
                    saying = asyncio.create_task(self._keep_saying(session, socket))
                    try:
                        async for text in socket:
                            last = self._hear(session, json.loads(text), last)
                    finally:
                        saying.cancel()
            await asyncio.sleep(0.02)

    def _hear(self, session: str, frame: dict[str, Any], last: int) -> int:
        number = frame.get("seq")
        if frame["type"] == "session_sync" and last == 0:
            self.promises.faults.append(f"session {session}: nothing was kept for a client that comes from the start")
        if number is None:
            return last
        if number != last + 1:
            self.promises.faults.append(f"session {session}: frame {number} came after {last}")
        if frame["type"] == "stream_end":
            self.promises.seen[frame["content"]] += 1
        return number

    async def _keep_saying(self, session: str, socket: Any) -> None:
        while True:
            token = await self._say[session].get()
            with contextlib.suppress(*_GONE):
                await socket.send(json.dumps({"type": "message", "content": instruct("note", token)}))

    async def _watch_events(self) -> None:
        while True:
            with contextlib.suppress(*_GONE, TimeoutError):
                last = 0
                async with self._connected("/ws/events") as socket:
                    async for text in socket:
                        number = json.loads(text).get("seq")
                        if number is not None and last and number != last + 1:
                            self.promises.faults.append(f"/ws/events: frame {number} came after {last}")
                        last = number or last
            await asyncio.sleep(0.02)

    def _connected(self, path: str) -> Any:
        address = str(self.house.any_node(self._chance).client.base_url).replace("http", "ws", 1).rstrip("/")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return connect(address + path, additional_headers=headers, proxy=None, open_timeout=5, close_timeout=0.2)
