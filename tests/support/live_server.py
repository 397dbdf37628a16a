"""A whole server on a free port, with a scripted provider, and clients that record every frame they receive.

async with running_server(settings) as server:
    server.provider.then(say("Hello"))
    async with server.watch(await server.session()) as client:
        await client.say("Hi")
        frames = await client.until("stream_end")
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import jsonschema_rs
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from openai_server import Answer, Exchange, OpenAIServer, chunk, event
from wakeful.app.building import Wakeful, build
from wakeful.app.listening import serve
from wakeful.config.settings import Settings
from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.types import Run, User, Wake
from wakeful.loop.loop import AgentLoop
from wakeful.loop.state import RetryLimits
from wakeful.models.openai_chat import ModelTimeouts
from wakeful.timing.lifecycle import create

TOKEN = "a-token-for-all-tests"
SECONDS = 60.0  # after which a wait fails
ENDS = ("stream_end", "stream_stopped", "error")
UNNUMBERED = ("session_sync", "replay_start", "replay_end", "heartbeat")

Frame = dict[str, Any]
Validators = dict[str, jsonschema_rs.Validator]


class Provider(OpenAIServer):
    """A provider whose script a test extends as it goes; with `always`, one function answers instead."""

    def then(self, *answers: Answer) -> None:
        """Append answers for the next requests to the script."""
        self._script.extend(answers)

    def forget(self) -> None:
        """Drop the rest of the script."""
        self._script.clear()

    def reset(self) -> None:
        """Forget the script, the requests and the failures of an earlier test."""
        self.forget()
        self.requests.clear()
        self.unexpected = 0

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.requests[-1].body


class Tap:
    """An answer that the test sends piece by piece."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self.is_hung_up = asyncio.Event()  # the client left before the end
        self._pieces: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def __call__(self, exchange: Exchange) -> None:
        self.is_asked.set()
        try:
            await exchange.begin()
            while (piece := await self._next(exchange)) is not None:
                await exchange.send(event(piece))
            await exchange.send(event(chunk(finish="stop")) + b"data: [DONE]\n\n")
            await exchange.end()
        except (ConnectionError, asyncio.CancelledError):
            self.is_hung_up.set()
            raise

    async def _next(self, exchange: Exchange) -> dict[str, Any] | None:
        """Wait for the next piece, sending SSE comments meanwhile: only a write notices that the client hung up."""
        while True:
            try:
                return await asyncio.wait_for(self._pieces.get(), 0.1)
            except TimeoutError:
                await exchange.send(b": waiting\n\n")

    def let(self, *pieces: dict[str, Any]) -> None:
        """Send these pieces."""
        for piece in pieces:
            self._pieces.put_nowait(piece)

    def say(self, *words: str) -> None:
        self.let(*[chunk({"content": word}) for word in words])

    def end(self) -> None:
        """End the answer."""
        self._pieces.put_nowait(None)


class Client:
    """A WebSocket client. Every frame is validated against the server's own schema."""

    def __init__(self, socket: ClientConnection, validator: jsonschema_rs.Validator) -> None:
        self.socket = socket
        self._validator = validator
        self.received: list[Frame] = []  # everything, heartbeats included

    async def next(self, seconds: float = SECONDS, *, is_heartbeat_wanted: bool = False) -> Frame:
        """Return the next frame; heartbeats only if they are wanted."""
        async with asyncio.timeout(seconds):
            while True:
                text = await self.socket.recv()
                assert isinstance(text, str)
                frame = json.loads(text)
                self._validator.validate(frame)
                self.received.append(frame)
                if is_heartbeat_wanted or frame["type"] != "heartbeat":
                    return frame

    async def until(self, *kinds: str, seconds: float = SECONDS) -> list[Frame]:
        """Return the frames up to and including the first of these kinds."""
        frames: list[Frame] = []
        async with asyncio.timeout(seconds):
            while not frames or frames[-1]["type"] not in kinds:
                frames.append(await self.next(seconds))
        return frames

    async def expect(self, kind: str) -> Frame:
        """Return the next frame, which is of this kind."""
        frame = await self.next()
        assert frame["type"] == kind, frame
        return frame

    async def nothing_more(self, seconds: float = 0.3) -> None:
        """Fail if anything but a heartbeat comes within a moment."""
        with contextlib.suppress(TimeoutError):
            frame = await self.next(seconds)
            raise AssertionError(f"there was more: {frame}")

    async def send(self, frame: object) -> None:
        await self.socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))

    async def say(self, content: str, **more: Any) -> None:
        await self.send({"type": "message", "content": content} | more)

    async def ask(self, content: str, **more: Any) -> list[Frame]:
        """Send a message and return all frames up to the end of the answer."""
        await self.say(content, **more)
        return await self.until(*ENDS)

    async def closing(self, seconds: float = SECONDS) -> tuple[int, str]:
        """Read until the server closes the socket, and return its close code and reason."""
        async with asyncio.timeout(seconds):
            while True:
                try:
                    await self.next(seconds)
                except ConnectionClosed as closed:
                    return (closed.rcvd.code, closed.rcvd.reason) if closed.rcvd else (1006, "")

    def cut(self) -> None:
        """Abort the connection without a close frame."""
        self.socket.transport.abort()


class Server:
    """A running server, and requests to it as its owner or another user."""

    def __init__(
        self, node: Wakeful, provider: Provider, address: str, token: str = TOKEN, validators: Validators | None = None
    ) -> None:
        self.node = node
        self.provider = provider
        self.address = address
        self.token = token
        self.rest = self.client(token)
        self._validators = validators or {}

    @asynccontextmanager
    async def as_new_owner(self) -> AsyncIterator["Server"]:
        """Yield this server as an owner sees it who has just started it, for one of several tests that share it."""
        owner = User(id=ids.new_id(), name="Owner", role="owner", created_at=self.node.clock.now())
        await self.node.agents.add_user(owner)
        before = self.node.services.feed.last_seq(owner.id)
        await self.node.agents.make_first(owner)
        await eventually(lambda: self._has_news(owner, before))  # on PostgreSQL it comes a moment later
        made = await self.call("POST", "/tokens", json={"name": "t", "scope": "admin", "user_id": owner.id})
        always = self.provider.always
        self.provider.reset()
        view = Server(self.node, self.provider, self.address, made["secret"], self._validators)
        yield view
        await view.rest.aclose()
        await self.call("DELETE", f"/users/{owner.id}")  # which stops runs that still wait for an answer
        self.provider.always = always
        self.provider.check_script()

    @property
    def workspaces(self) -> Path:
        """The folder with the agents' files; on PostgreSQL they are copies."""
        return self.node.services.workspace_of("any").parents[1]

    def client(self, token: str) -> httpx.AsyncClient:
        # Plain HTTP to this machine needs no certificates, which take longer to load than most tests run.
        return httpx.AsyncClient(
            base_url=self.address, headers={"Authorization": f"Bearer {token}"}, timeout=SECONDS, verify=False
        )

    async def _has_news(self, user: User, after: int) -> bool:
        return self.node.services.feed.last_seq(user.id) > after

    async def learn_schema(self) -> None:
        schema = (await self.rest.get("/ws/schema")).json()
        self._validators = {name: jsonschema_rs.validator_for(schema[name]) for name in schema}

    async def session(self, title: str = "Titled, so that no model is asked for one", **asked: Any) -> str:
        """Open a session and return its id."""
        return (await self.call("POST", "/sessions", json={"title": title} | asked))["id"]

    async def call(self, method: str, path: str, *, token: str | None = None, **more: Any) -> Any:
        """Send a request and return the JSON; fail unless it succeeds."""
        async with self.client(token or self.token) as client:
            answer = await client.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json()

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        return (await self.call("GET", f"/sessions/{session_id}"))["messages"]

    async def run(self, run_id: str) -> dict[str, Any]:
        return await self.call("GET", f"/runs/{run_id}")

    async def folder(self) -> Path:
        """Return the folder of the first agent's files."""
        [agent] = (await self.call("GET", "/agents"))["agents"]
        return self.workspaces / agent["id"]

    async def change_agent(self, **changes: Any) -> dict[str, Any]:
        """Change the first agent."""
        [agent] = (await self.call("GET", "/agents"))["agents"]
        return await self.call("PATCH", f"/agents/{agent['id']}", json=changes)

    async def add_user(self, name: str = "Grace") -> str:
        """Add a person with an agent and return a token of theirs."""
        user = await self.call("POST", "/users", json={"name": name})
        made = await self.call("POST", "/tokens", json={"name": "t", "scope": "admin", "user_id": user["id"]})
        await self.call("POST", "/agents", token=made["secret"], json={"name": f"Agent of {name}"})
        return made["secret"]

    @asynccontextmanager
    async def watch(
        self, session_id: str, *, after: object = None, token: str | None = None, is_fresh: bool = True, **how: Any
    ) -> AsyncIterator[Client]:
        """Open the socket of a session; with `is_fresh` the first `session_sync` is already read."""
        query = "" if after is None else f"?after={after}"
        async with self._connected(f"/ws/sessions/{session_id}{query}", "session", token, **how) as client:
            if is_fresh and after is None:
                await client.expect("session_sync")
            yield client

    @asynccontextmanager
    async def watch_events(
        self, *, after: object = None, token: str | None = None, is_fresh: bool = True, **how: Any
    ) -> AsyncIterator[Client]:
        """Open /ws/events, the socket with news of everything a user owns."""
        query = "" if after is None else f"?after={after}"
        async with self._connected(f"/ws/events{query}", "events", token, **how) as client:
            if is_fresh and after is None:
                await client.expect("session_sync")
            yield client

    async def sql(self, script: str) -> None:
        """Change the store's tables directly, without any announcement."""
        await self.node.store.database.run_script(script)

    async def book(self, session_id: str, instructions: str = "Wake up.", **request: Any) -> Wake:
        """Book a recall as the user: by default an immediate one."""
        session = await self.node.store.read(lambda tx: tx.sessions.find(session_id))
        assert session is not None
        now = self.node.clock.now()
        wake = create(
            agent_id=session.agent_id,
            user_id=session.user_id,
            session_id=session_id,
            now=now,
            rules=self.node.rules,
            instructions=instructions,
            **({"kind": "recall", "call_type": "immediate", "timezone": "UTC", "scheduled_by": "user"} | request),
        )
        return await self.node.wakes.book(wake)

    async def runs_of(self, session_id: str) -> list[dict[str, Any]]:
        return (await self.call("GET", "/runs", params={"session_id": session_id}))["runs"]

    async def stop(self, session_id: str) -> dict[str, Any]:
        return await self.call("POST", f"/sessions/{session_id}/stop")

    async def state(self, run: Run) -> Run:
        return await self.node.runs.get(run.id, run.user_id)

    @asynccontextmanager
    async def _connected(self, path: str, schema: str, token: str | None, **how: Any) -> AsyncIterator[Client]:
        address = self.address.replace("http://", "ws://") + path
        headers = {"Authorization": f"Bearer {token or self.token}"}
        options = {
            "proxy": None,
            "compression": None,
            "max_size": None,
            "close_timeout": 1,
            "ping_interval": None,
        } | how
        async with connect(address, additional_headers=headers, **options) as socket:
            yield Client(socket, self._validators[schema])


class Patient:
    """The timeouts and retries of a server's model calls."""

    def __init__(self, *, first: float = 5.0, between: float = 5.0, retries: int = 3, pause: float = 0.01) -> None:
        self.wire = ModelTimeouts(first=first, between=between)
        self.loop = RetryLimits(first=first + 5, between=between + 5, retries=retries, pause=pause)


@asynccontextmanager
async def provided(*script: Answer, always: Answer | None = None) -> AsyncIterator[Provider]:
    """Start one provider for several servers."""
    async with Provider(*script, always=always) as provider:
        yield provider


@asynccontextmanager
async def running_server(
    settings: Mapping[str, object],
    provider: Provider | None = None,
    *,
    always: Answer | None = None,
    patient: Patient | None = None,
    clock: Clock | None = None,
    **more: object,
) -> AsyncIterator[Server]:
    """Run a whole node on a free port, as `wakeful serve` does; with a provider of its own unless one is given.

    With the model None the settings name none, as at a first start.
    """
    async with contextlib.AsyncExitStack() as stack:
        if provider is None:
            provider = await stack.enter_async_context(Provider(always=always))
        given = {
            "port": 0,
            "token": TOKEN,
            "model": "openai-chat:test",
            "model_base_url": provider.base_url,
            "socket_heartbeat_seconds": 1,
            "mcp_start_seconds": 60,  # a busy machine needs longer to start a program than a person would wait
        }
        asked = given | dict(settings) | more
        if asked["model"] is None:
            del asked["model"]
        node = build(Settings.model_validate(asked), clock=clock)
        _make_patient(node, patient or Patient())
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(node.settings, lambda: node, lambda told, *_: address.set_result(told)))
        try:
            await asyncio.wait((serving, address), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            server = Server(node, provider, await address)
            await server.learn_schema()
            yield server
            await server.rest.aclose()
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving


def _make_patient(node: Wakeful, patient: Patient) -> None:
    loop = node.engine.runner.executor
    assert isinstance(loop, AgentLoop)
    loop.patience = patient.loop
    loop.models.patience = patient.wire


def kinds(frames: Sequence[Frame]) -> list[str]:
    """Return the kinds of frames in order, repeats in a row once: how many deltas are merged depends on timing."""
    named = [frame["type"] for frame in frames]
    return [kind for number, kind in enumerate(named) if number == 0 or kind != named[number - 1]]


def of_kind(frames: Sequence[Frame], kind: str) -> list[Frame]:
    return [frame for frame in frames if frame["type"] == kind]


def text_of(frames: Sequence[Frame], kind: str = "stream_delta") -> str:
    return "".join(frame["delta"] for frame in of_kind(frames, kind))


def seqs(frames: Sequence[Frame]) -> list[int]:
    return [frame["seq"] for frame in frames if "seq" in frame]


def assert_consecutive(frames: Sequence[Frame], first: int | None = None) -> None:
    """Fail unless the frames' sequence numbers go up by one."""
    numbers = seqs(frames)
    begin = numbers[0] if first is None else first
    assert numbers == list(range(begin, begin + len(numbers)))


class Timer:
    """Measures a block."""

    async def __aenter__(self) -> Self:
        self._began = asyncio.get_running_loop().time()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.seconds = asyncio.get_running_loop().time() - self._began


async def eventually(condition: Callable[[], Awaitable[Any]], seconds: float = SECONDS) -> Any:
    """Poll until a condition is true, for background work that notifies nobody, and return its value."""
    async with asyncio.timeout(seconds):
        while not (found := await condition()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return found
