"""Memory of a server that runs for long: it does not grow with the wakes that it has fired.

`WAKEFUL_TEST_LONG=1` fires 20,000 wakes; `WAKEFUL_TEST_SOAK_HOURS=6` goes on for that time.
"""

import asyncio
import os
import resource
import time
from pathlib import Path
from statistics import fmean

import httpx
import pytest

from crash.crash_harness import IS_LONG
from crash.server_process import TOKEN, Start
from openai_server import say

HOURS = float(os.environ.get("WAKEFUL_TEST_SOAK_HOURS", "0"))
SESSIONS, WAKES = 100, 20_000
ROUNDS_OF_A_SESSION = 20  # then new ones are opened: a run with a longer transcript takes more memory
MAX_BYTES_PER_WAKE = 100  # from the third quarter to the last; caches and the 10,000 kept log lines are full by then
MAX_BYTES_IN_LAST_HOUR = 1_000_000

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not IS_LONG, reason="takes minutes"),
    pytest.mark.timeout(HOURS * 3600 + 3600),
    pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True),
]


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


async def fire_round(client: httpx.AsyncClient, sessions: list[str]) -> None:
    """Wake an agent in each session, and wait until all runs have ended."""
    booking = {"call_type": "immediate", "additional_context_message": "Say hello."}
    for session in sessions:
        answer = await client.post(f"/sessions/{session}/recall", json=booking)
        assert answer.is_success, answer.text
    while True:
        metrics = (await client.get("/metrics")).text
        waiting = [line for line in metrics.splitlines() if line.startswith(("wakeful_runs_unf", "wakeful_wakes_pend"))]
        if all(line.endswith(" 0.0") for line in waiting):
            return
        await asyncio.sleep(0.05)


async def open_session(client: httpx.AsyncClient) -> str:
    return (await client.post("/sessions", json={"title": "Soak"})).json()["id"]


async def test_memory_does_not_grow_with_wakes(talking: Start) -> None:
    settings = {
        "WAKEFUL_MAX_HEADLESS_RUNS": "16",
        "WAKEFUL_RUNS_PER_HOUR": "100000",
        "WAKEFUL_RETENTION_EVENTS_HOURS": "0",
    }
    async with talking(always=say("Hello."), **settings) as (talk, provider):
        sessions: list[str] = []
        headers = {"Authorization": f"Bearer {TOKEN}"}
        seen: list[tuple[float, int, int]] = []  # seconds, wakes, bytes
        began, fired = time.monotonic(), 0
        async with httpx.AsyncClient(
            base_url=talk.served.client.base_url,
            headers=headers,
            timeout=60,
            verify=False,
            limits=httpx.Limits(max_keepalive_connections=0),  # a connection that idles for long is closed
        ) as client:
            while fired < WAKES or time.monotonic() - began < HOURS * 3600:
                if fired % (SESSIONS * ROUNDS_OF_A_SESSION) == 0:
                    sessions = [(await open_session(client)) for _ in range(SESSIONS)]
                    provider.requests.clear()
                await fire_round(client, sessions)
                fired += len(sessions)
                seen.append((time.monotonic() - began, fired, resident(talk.served.pid)))
        print(f"wakes and megabytes: {[(wakes, size // 1_000_000) for _, wakes, size in seen[:: len(seen) // 20]]}")
        if HOURS >= 2:
            hour_ago = next(size for at, _, size in seen if at >= seen[-1][0] - 3600)
            assert seen[-1][2] - hour_ago <= MAX_BYTES_IN_LAST_HOUR
        quarter = len(seen) // 4
        third, last = (fmean(size for _, _, size in part) for part in (seen[2 * quarter : -quarter], seen[-quarter:]))
        assert (last - third) / (quarter * SESSIONS) <= MAX_BYTES_PER_WAKE
