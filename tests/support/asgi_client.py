"""ASGI clients of a server, in process: the gate with the login and account routes alone, or the whole REST API."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, WebSocket
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from harness import Harness, lay_out
from wakeful.app.building import Wakeful
from wakeful.app.first_start import settle_owner
from wakeful.app.http import Gate, build_http
from wakeful.core.clock import ManualClock
from wakeful.core.identity import Identity
from wakeful.http import auth
from wakeful.http import errors as http_errors
from wakeful.http.auth import COOKIE, PAGE_HEADER
from wakeful.http.tries import Tries
from wakeful.people import login
from wakeful.people import rest as rest_accounts
from wakeful.people.service import NewLogin
from wakeful.stream.wire import Wire

ADDRESS = "http://127.0.0.1:8420"
CHOSEN = "a-token-that-a-person-chose"


class Doors:
    """A gate in front of the login and account routes, and the owner's token."""

    def __init__(self, node: Wakeful, clock: ManualClock, owner: Identity, secret: str) -> None:
        self.accounts = node.services.accounts
        self.clock = clock
        self.owner = owner
        self.secret = secret
        self.app = FastAPI(responses=http_errors.RESPONSES)
        http_errors.install(self.app)
        self.app.state.base_path, self.app.state.public_address = "", None
        tries = Tries(node.clock)
        auth.install(self.app, self.accounts, tries)
        self.app.include_router(login.router)
        self.app.include_router(rest_accounts.router)
        self._add_samples()
        self.gate = Gate(self.app, self.accounts, tries, node.settings)

    def client(
        self,
        *,
        client: str = "127.0.0.1",
        token: str | None = None,
        headers: dict[str, str] | None = None,
        cookies: dict[str, str] | None = None,
    ) -> httpx.AsyncClient:
        """Return a client with this IP address, with a token or without."""
        sent = (headers or {}) | ({"authorization": f"Bearer {token}"} if token else {})
        transport = httpx.ASGITransport(self.gate, raise_app_exceptions=False, client=(client, 50_000))
        return httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=sent, cookies=cookies)

    async def log_in(self) -> NewLogin:
        """Log a browser of the owner's in."""
        made = await self.accounts.log_in(await self.accounts.make_login_code(self.owner), "Firefox")
        assert made is not None
        return made

    def _add_samples(self) -> None:
        @self.app.get("/healthz")
        async def healthz() -> dict[str, bool]:
            return {"ok": True}

        @self.app.get("/boom")
        async def boom() -> None:
            raise RuntimeError("the inside of the server")

        @self.app.websocket("/ws/who")
        async def who(socket: WebSocket) -> None:
            await socket.accept()
            await socket.send_text(f"{auth.identity_of(socket).user.name} {socket.url.query}")
            await socket.close()


@asynccontextmanager
async def opened_doors(harness: Harness) -> AsyncIterator[Doors]:
    """Open the harness's store and create its owner with the token of its settings."""
    async with harness.node.opened():
        token = harness.node.settings.token
        assert token is not None
        owner = await settle_owner(
            harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes
        )
        yield Doors(harness.node, harness.clock, owner, token.get_secret_value())


def browser_headers(login: NewLogin) -> dict[str, str]:
    """Return the headers that the page sends with every request."""
    return {"cookie": f"{COOKIE}={login.cookie}", PAGE_HEADER: login.page_secret}


class Rest:
    """The owner's REST client, and the harness behind it, whose clock and turns are controlled by the test."""

    def __init__(self, harness: Harness, client: httpx.AsyncClient) -> None:
        self.harness = harness
        self.client = client

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        answer = await self.client.request(method, path, **more)
        return answer.status_code, answer.json()

    async def call(self, method: str, path: str, **more: Any) -> Any:
        """Send a request and return the body; fail unless it succeeds."""
        status, body = await self.ask(method, path, **more)
        assert status < 300, body
        return body


@asynccontextmanager
async def opened_rest(settings: dict[str, object], **agent: Any) -> AsyncIterator[Rest]:
    """Open a harness whose owner, with one agent, uses REST."""
    await lay_out(settings)
    harness = Harness(settings | {"token": CHOSEN})
    async with harness.node.opened():
        harness.user = (
            await settle_owner(harness.node.store, harness.clock, harness.node.settings, harness.node.services.nodes)
        ).user
        harness.agent = await harness.add_agent(**agent)
        transport = httpx.ASGITransport(build_http(harness.node), raise_app_exceptions=False)
        headers = {"authorization": f"Bearer {CHOSEN}"}
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers) as client:
            yield Rest(harness, client)


@asynccontextmanager
async def asgi_server(gate: Gate) -> AsyncIterator[int]:
    """Serve a gate on a real port."""
    config = uvicorn.Config(
        gate,
        port=0,
        ws=Wire,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # uvicorn would believe them from loopback
    )
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        await server.shutdown()
        await asyncio.sleep(0)


async def hear(
    port: int,
    headers: dict[str, str] | None = None,
    query: str = "",
    origin: str | None = None,
    host: str = "127.0.0.1",
    path: str = "/ws/who",
) -> Any:
    """Open a socket and return the first frame."""
    address = f"ws://{host}:{port}{path}{query}"
    async with connect(
        address, additional_headers=headers, origin=cast(Any, origin), proxy=None, host="127.0.0.1", port=port
    ) as socket:
        return await socket.recv()


async def refusal(port: int, headers: dict[str, str] | None = None, **how: Any) -> tuple[int, str]:
    """Try to open a socket and return the status and code of the refusal."""
    with pytest.raises(InvalidStatus) as refused:
        await hear(port, headers, **how)
    response = refused.value.response
    return response.status_code, json.loads(response.body)["error"]["code"]
