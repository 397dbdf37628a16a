"""CPU of the server for a booking by MCP and by REST, and the memory of 100 calls that wait for an agent.

Writes bench/out/mcp.json and says which of the targets are met. Both bookings are an agent's next run, so that each is
one request; they alternate in rounds. The SDK is loaded before anything is measured.
"""

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

OUT = Path(__file__).parent / "out" / "mcp.json"
TOKEN = "a-token-for-this-bench"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
VERSION = "2026-07-28"
BOOKINGS = 200
ROUNDS = 5
WAITS = 100
MAX_RATIO = 2.0
MAX_MB = 30.0
TEXT = "Read notes.txt with read_file and write what changed to report.md."


class Served(NamedTuple):
    """A server in a process of its own."""

    port: int
    pid: int

    def cpu(self) -> float:
        """Return the seconds of CPU that its threads have used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def megabytes(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextmanager
def served(**settings: str) -> Generator[Served]:
    """Start a server."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "WAKEFUL_DATA_DIR": f"{folder}/data",
            "WAKEFUL_CONFIG_DIR": f"{folder}/config",
            "WAKEFUL_TOKEN": TOKEN,
            "WAKEFUL_RUNS_PER_TOKEN_PER_HOUR": "100000",
        }
        wakeful = Path(sys.executable).parent / "wakeful"
        process = subprocess.Popen(
            [wakeful, "serve", "--port", "0"],
            env=os.environ | environment | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert address is not None
            yield Served(int(address[1]), process.pid)
        finally:
            process.terminate()
            process.communicate()


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)

    def send(self, method: str, path: str, body: object = None, **headers: str) -> str:
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, body=content, headers=HEADERS | headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        assert answer.status < 300, text
        return text

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool, as a client of today does."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "MCP-Method": "tools/call",
            "MCP-Name": tool,
        }
        text = self.send(
            "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, **headers
        )
        assert '"isError":true' not in text, text
        return text


def measure_bookings() -> dict[str, float]:
    """Return the milliseconds of CPU of one booking by each door."""
    figures: dict[str, list[float]] = {"rest": [], "mcp": []}
    with served() as server:
        client = Client(server.port)
        agent_id = json.loads(client.send("GET", "/agents"))["agents"][0]["id"]

        def book_by_rest(number: int) -> None:
            client.send(
                "PUT", f"/agents/{agent_id}/next-run", {"when": "in 2 hours", "instructions": f"{TEXT} {number}"}
            )

        def book_by_mcp(number: int) -> None:
            asked = {"when": "in 2 hours", "instructions": f"{TEXT} {number}", "agent": agent_id, "door": "next_run"}
            client.call("book_wake", asked)

        doors = {"rest": book_by_rest, "mcp": book_by_mcp}
        number = 0
        for each in range(ROUNDS + 1):
            for name, book in doors.items():
                before = server.cpu()
                for _ in range(BOOKINGS):
                    number += 1
                    book(number)
                if each:  # the first round warms up
                    figures[name].append((server.cpu() - before) * 1000 / BOOKINGS)
    return {f"{name}_ms": median(each) for name, each in figures.items()}


@contextmanager
def silent_provider() -> Generator[str]:
    """Accept connections, and never answer."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=500)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.close()


def measure_waits(*, is_waiting: bool) -> float:
    """Return by how many megabytes the server grows with 100 runs whose askers wait over MCP, or do not."""
    with (
        silent_provider() as provider,
        served(
            WAKEFUL_MODEL="openai-chat:silent", WAKEFUL_MODEL_BASE_URL=provider, WAKEFUL_MODEL_API_KEY="k"
        ) as server,
    ):
        Client(server.port).call("ask_agent", {"message": "Warm up.", "wait_seconds": 1})
        before = server.megabytes()
        wait = 30 if is_waiting else 0
        threads = [
            threading.Thread(
                target=lambda: Client(server.port).call("ask_agent", {"message": "Hello?", "wait_seconds": wait})
            )
            for _ in range(WAITS)
        ]
        for thread in threads:
            thread.start()
        if not is_waiting:
            for thread in threads:
                thread.join()
        time.sleep(12)
        grown = server.megabytes() - before
        for thread in threads:
            thread.join()
    return grown


def main() -> None:
    figures = measure_bookings()
    figures["ratio"] = figures["mcp_ms"] / figures["rest_ms"]
    figures["waiting_mb"] = measure_waits(is_waiting=True)
    figures["not_waiting_mb"] = measure_waits(is_waiting=False)
    figures["waits_mb"] = figures["waiting_mb"] - figures["not_waiting_mb"]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"load": os.getloadavg()[0], **figures}, indent=2))
    for name, figure in figures.items():
        print(f"{name:16} {figure:8.2f}")
    is_met = figures["ratio"] <= MAX_RATIO and figures["waiting_mb"] <= MAX_MB
    print(f"ratio at most {MAX_RATIO}, 100 waits at most {MAX_MB} MB: {'met' if is_met else 'NOT met'}")


if __name__ == "__main__":
    main()
