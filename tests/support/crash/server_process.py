"""A real server process with a scripted provider, and a conversation that outlives the process."""

import asyncio
import json
import re
import signal
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from forked_process import Forked
from harness import eventually
from openai_server import OpenAIServer, call, stream, text

TOKEN = "a-token-for-all-tests"
PATIENCE = 30.0  # seconds
INTERRUPTED = re.compile(r"interrupted .* may or may not have happened")
HALF = stream(*text("Half ", "an answer"), 3600.0)  # then silence
FINAL = {"success", "failed", "stopped", "skipped", "interrupted"}

Start = Callable[..., Any]
Launch = Callable[[tuple[str, ...], dict[str, str], Path], Any]
"""Starts a server and returns its process, such as Forked."""


class ServerProcess:
    """A real server process that can be killed and started again on the same data."""

    def __init__(self, folder: Path, environment: dict[str, str], launch: Launch = Forked) -> None:
        self.folder = folder
        self._launch = launch
        self._environment = environment
        self._started: list[tuple[Forked, httpx.AsyncClient]] = []

    @property
    def client(self) -> httpx.AsyncClient:
        return self._started[-1][1]

    async def start(self, port: int = 0, prepare: Callable[[], None] | None = None) -> None:
        """Start a process and wait until it answers; requests go to the one started last."""
        launch = self._launch if prepare is None else partial(Forked, prepare=prepare)
        process = launch(("serve", "--port", str(port)), self._environment, self.folder / "log")
        address = re.search(r"http://\S+", await asyncio.to_thread(process.stdout.readline))
        assert address is not None, self.log()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        client = httpx.AsyncClient(base_url=address[0], headers=headers, timeout=10, verify=False)
        self._started.append((process, client))

    @property
    def pid(self) -> int:
        return self._started[-1][0].pid

    async def start_doomed(self, prepare: Callable[[], None]) -> None:
        """Start a process that kills itself, perhaps before it answers, and wait until it has."""
        process = Forked(("serve", "--port", "0"), self._environment, self.folder / "log", prepare)
        self._started.append((process, httpx.AsyncClient(verify=False)))
        await self.wait_until_killed()

    async def end(self, number: int, which: int = -1) -> int:
        """Send a signal to a process and return how it ended."""
        process = self._started[which][0]
        process.send_signal(number)
        return await asyncio.to_thread(process.wait, 10)

    async def kill(self, which: int = -1) -> None:
        assert await self.end(signal.SIGKILL, which) == -signal.SIGKILL
        if len(self._started) == 1 or which == -1:
            await self._end_leases()

    async def wait_until_killed(self) -> None:
        """Wait until the process has killed itself, as it was prepared to."""
        assert await asyncio.to_thread(self._started[-1][0].wait, PATIENCE) == -signal.SIGKILL, self.log()[-3000:]
        await self._end_leases()

    async def _end_leases(self) -> None:
        """Expire the leases of a dead node on a shared store. So no test waits for them, and leases can
        be so long that a slow machine loses none while its server is alive."""
        url = self._environment.get("WAKEFUL_DATABASE_URL")
        if url is not None:
            connection = await asyncpg.connect(url)
            now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
            await connection.execute(f"UPDATE runs SET lease_until = {now} WHERE status = 'running'")
            await connection.close()

    async def clean_up(self) -> None:
        for process, client in self._started:
            await asyncio.to_thread(process.close)
            await client.aclose()
        self._started.clear()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    async def get(self, path: str) -> Any:
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def send(self, method: str, path: str, body: dict[str, Any]) -> Any:
        answer = await self.client.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()


class Conversation:
    """One conversation with the first agent of a server, and what is in its workspace."""

    def __init__(self, served: ServerProcess, folder: Path) -> None:
        self.served = served
        self.folder = folder

    async def open(self) -> None:
        [agent] = (await self.served.get("/agents"))["agents"]
        self.agent_id = agent["id"]
        await self.change_agent(toolsets=[*agent["toolsets"], "shell"])
        # It has a title, so that the provider is not asked for one.
        self.id = (await self.served.send("POST", "/sessions", {"title": "A talk"}))["id"]

    @property
    def workspace(self) -> Path:
        """The agent's files; on PostgreSQL the copy that was used last."""
        copies = list((self.folder / "data" / "caches").glob(f"*/{self.agent_id}/workspace"))
        if copies:
            return max(copies, key=lambda path: path.stat().st_mtime)
        return self.folder / "data" / "agents" / self.agent_id / "workspace"

    async def change_agent(self, **changes: Any) -> None:
        await self.served.send("PATCH", f"/agents/{self.agent_id}", changes)

    async def say(self, content: str) -> str:
        return (await self.served.send("POST", f"/sessions/{self.id}/messages", {"content": content}))["run_id"]

    async def runs(self) -> list[dict[str, Any]]:
        """Return all runs, in the order they were queued."""
        return (await self.served.get("/runs"))["runs"][::-1]

    async def run(self, run_id: str) -> dict[str, Any]:
        return await self.served.get(f"/runs/{run_id}")

    async def frames(self, run_id: str) -> list[dict[str, Any]]:
        return (await self.served.get(f"/runs/{run_id}/events"))["events"]

    async def messages(self) -> list[tuple[str, str]]:
        found = (await self.served.get(f"/sessions/{self.id}"))["messages"]
        return [(message["role"], message["content"]) for message in found]

    def file(self, name: str) -> str:
        path = self.workspace / name
        return path.read_text() if path.exists() else ""

    async def wait_for_frame(self, run_id: str, kind: str) -> None:
        async def is_said() -> bool:
            return any(frame["type"] == kind for frame in await self.frames(run_id))

        await self.wait_until(is_said)

    async def wait_for_end(self, run_id: str) -> dict[str, Any]:
        async def is_over() -> bool:
            return (await self.run(run_id))["status"] in FINAL

        await self.wait_until(is_over)
        return await self.run(run_id)

    async def wait_until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
        try:
            await eventually(condition, seconds)
        except TimeoutError:
            raise AssertionError(f"waited {seconds} s in vain; the log:\n{self.served.log()[-3000:]}") from None


def writes(name: str, line: str, *, number: int) -> list[dict[str, Any]]:
    """Return a tool call that leaves one more line each time it is made."""
    arguments = json.dumps({"path": name, "content": f"{line}\n", "append": True})
    return call("write_file", arguments, index=number - 1, id=f"call_{number}")


def runs_on(name: str, *, number: int) -> list[dict[str, Any]]:
    """Return a call of a command that writes a file and then runs until it is killed; a minute at most."""
    script = f"echo $$ >> {name}; n=0; while [ ! -e end ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done"
    arguments = json.dumps({"command": script, "timeout_seconds": 120})
    return call("run_command", arguments, index=number - 1, id=f"call_{number}")


def told(provider: OpenAIServer, which: int = -1) -> list[tuple[str, str]]:
    """Return the messages of a request to the provider, without the system prompt."""
    messages = provider.requests[which].body["messages"]
    assert messages[0]["role"] == "system"
    return [(message["role"], message.get("content") or "") for message in messages[1:]]


def results(provider: OpenAIServer, which: int = -1) -> dict[str, str]:
    """Return the tool results in a request to the provider, by call."""
    messages = provider.requests[which].body["messages"]
    return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


def check_stream(frames: list[dict[str, Any]], *, ends: int = 1) -> None:
    """Fail if the stream of a run has a gap, a repeat, or not one end."""
    numbers = [frame["seq"] for frame in frames]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    kinds = Counter(frame["type"] for frame in frames)
    assert kinds["stream_end"] == ends
    assert ends == 0 or frames[-1]["type"] == "stream_end"
