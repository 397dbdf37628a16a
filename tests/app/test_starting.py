"""A server that is still starting: alive, not ready, and every request waits for it."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest

from wakeful.app.building import build
from wakeful.app.listening import serve
from wakeful.config.settings import Settings
from wakeful.core.errors import Unavailable

TOKEN = "a-token-for-the-owner-of-it"


class Start:
    """A start that goes on when it is let."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.error: Exception | None = None
        self.may_load = threading.Event()
        self.is_ready = asyncio.Event()

    def load(self):
        assert self.may_load.wait(30)
        if self.error is not None:
            raise self.error
        return build(self.settings)


@pytest.fixture
def start(tmp_path) -> Start:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    places = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    return Start(Settings.model_validate(places | {"port": port, "token": TOKEN}))


@asynccontextmanager
async def starting(start: Start) -> AsyncGenerator[tuple[httpx2.AsyncClient, "asyncio.Task[None]"]]:
    serving = asyncio.create_task(serve(start.settings, start.load, lambda *_: start.is_ready.set()))
    client = httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{start.settings.port}",
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
        verify=False,
    )
    try:
        await asyncio.sleep(0)  # it listens from its first step on
        yield client, serving
    finally:
        start.may_load.set()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError, Unavailable):
            await serving
        await client.aclose()


async def test_it_is_alive_but_not_ready_and_requests_wait_until_it_is(start):
    async with starting(start) as (client, _):
        alive = await client.get("/healthz")
        assert (alive.status_code, alive.json()["ok"]) == (200, True)
        assert alive.headers["x-content-type-options"] == "nosniff"
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()) == (
            503,
            {"ok": False, "problems": ["The server is still starting."]},
        )
        assert not start.is_ready.is_set()
        waiting = asyncio.create_task(client.get("/wakes"))
        elsewhere = asyncio.create_task(client.get("/healthz", headers={"Host": "evil.example"}))
        start.may_load.set()
        assert (await waiting).status_code == 200
        assert (await elsewhere).status_code == 403
        await start.is_ready.wait()
        assert (await client.get("/readyz")).json() == {"ok": True, "problems": []}


async def test_a_start_that_fails_says_why_and_lets_nobody_wait(start):
    start.error = Unavailable("The store is locked.")
    async with starting(start) as (client, serving):
        waiting = asyncio.create_task(client.get("/wakes"))
        assert (await client.get("/healthz")).status_code == 200
        start.may_load.set()
        answer = await waiting
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "starting")
        with pytest.raises(Unavailable, match="The store is locked"):
            await serving
        assert not start.is_ready.is_set()
