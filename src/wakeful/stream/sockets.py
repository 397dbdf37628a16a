"""The WebSockets: frames of a session, live and replayed, and changes of everything a user owns.

Silent ones get heartbeats; those whose token was revoked or has expired are closed.
"""

import asyncio
import json
import logging
import re
import reprlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import orjson
from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import ConfigDict, TypeAdapter

from wakeful.core.errors import NotFound, StoreUnavailable, WakefulError
from wakeful.core.events import (
    ENDS,
    ConnectionFrame,
    ErrorFrame,
    Heartbeat,
    ReplayEnd,
    ReplayStart,
    SessionFrame,
    SessionSync,
    UserFrame,
    wire_name,
)
from wakeful.core.frames import encode
from wakeful.core.hub import Sent, Subscription, session_topic, user_topic
from wakeful.core.identity import Identity, check_scope, includes
from wakeful.http.auth import Reader, identity_of
from wakeful.http.connections import abort, raw_send
from wakeful.http.limits import UnfitJson, parse, trim_soon
from wakeful.http.routes import DoorRoute
from wakeful.http.services import Services
from wakeful.http.shapes import ID
from wakeful.people.service import Accounts
from wakeful.sessions.messages import BadFrame, hand_over, read_message
from wakeful.store.errors import insist
from wakeful.stream.feed import Feed
from wakeful.stream.service import Opening, Stream
from wakeful.stream.wire import MAX_FRAME, WRITE_NOW

# Open sockets: heartbeats on silent ones, and the end of those whose token was revoked or has expired.


log = logging.getLogger(__name__)

_CHECKS = 8  # per heartbeat
TOKEN_ENDED = 4001
CHECK_EVERY = 20.0  # seconds; a revoked token's sockets are closed within 30
REVOKED_CLOSE_SECONDS = 5.0


class Pulse:
    """The silence of one socket, counted in checks: reading the clock for each message would cost more."""

    __slots__ = ("_is_due", "_silent_checks", "_wake")

    def __init__(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._silent_checks = 0
        self._is_due = False

    def beat(self) -> None:
        """Start counting again: a frame was sent."""
        self._silent_checks = 0

    def pop_due(self) -> bool:
        """Return whether a heartbeat is due, and reset that."""
        is_due, self._is_due = self._is_due, False
        return is_due

    def check(self) -> None:
        """Wake the sender if the next check could be too late for a heartbeat."""
        self._silent_checks += 1
        if self._silent_checks >= _CHECKS - 1:
            self.beat()
            self._is_due = True
            self._wake.set()


class Heartbeats:
    """Checks all sockets several times per heartbeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._pulses: set[Pulse] = set()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def of(self, wake: asyncio.Event) -> Generator[Pulse]:
        """Make heartbeats due on a socket inside the block; `wake` wakes its sender."""
        pulse = Pulse(wake)
        self._pulses.add(pulse)
        if self._task is None:
            self._task = asyncio.create_task(self._keep_checking())
        try:
            yield pulse
        finally:
            self._pulses.discard(pulse)

    async def _keep_checking(self) -> None:
        while self._pulses:
            await asyncio.sleep(self._seconds / _CHECKS)
            for pulse in self._pulses:
                pulse.check()
        self._task = None


class OpenSockets:
    """Checks regularly that the tokens of open sockets are still valid."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._open: dict[WebSocket, str] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """Return how many sockets are open."""
        return len(self._open)

    @contextmanager
    def keep(self, token_id: str, websocket: WebSocket) -> Generator[None]:
        """Check the token of a socket inside the block."""
        self._open[websocket] = token_id
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            del self._open[websocket]

    async def _watch(self) -> None:
        while self._open:
            await asyncio.sleep(CHECK_EVERY)
            if not self._open:
                break  # the server may have stopped meanwhile, and its store with it
            try:
                valid = await self._accounts.still_valid(set(self._open.values()))
            except StoreUnavailable:  # the store logs it
                continue
            except Exception:
                log.exception("check of open sockets failed")
                continue
            ended = [websocket for websocket, token_id in self._open.items() if token_id not in valid]
            await asyncio.gather(*[_close(websocket) for websocket in ended])
        self._task = None


async def _close(websocket: WebSocket) -> None:
    try:
        async with asyncio.timeout(REVOKED_CLOSE_SECONDS):  # a client that reads nothing must not hold up the others
            await websocket.close(TOKEN_ENDED, "The token of this socket is no longer valid.")
    except TimeoutError:
        abort(websocket.scope["state"])
    except RuntimeError:
        pass  # it is closing already


router = APIRouter()

UNKNOWN_SESSION = 4004
TRY_LATER = 1013
_SESSION_ID = re.compile(ID)
_PARSE_IN_THREAD = 64 * 1024  # characters; parsing more would delay other clients
_ONE_WRITE = 64 * 1024  # bytes, about; no more is kept for a client that reads slowly
_RECALL_MARK = '{"type":"recall_update"'
_END_MARKS = tuple(f'{{"type":"{name}"' for name in ENDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """Services, timers and registry that the sockets of one node share."""

    services: Services
    open_sockets: OpenSockets
    heartbeats: Heartbeats


@router.websocket("/ws/sessions/{session_id}")
async def session_socket(websocket: WebSocket, session_id: str) -> None:
    """Send the frames of a session, and receive messages for it."""
    node: Sockets = websocket.app.state.sockets
    caller = identity_of(websocket)
    if includes(caller.scope, "chat"):  # before accepting: the first message may follow at once
        await raw_send(websocket)({"type": "websocket.limit", "bytes": MAX_FRAME})
    await websocket.accept()
    if not _SESSION_ID.fullmatch(session_id):  # such an id is not looked up: some databases refuse its characters
        await websocket.close(UNKNOWN_SESSION, "There is no such session.")
        return
    # Subscribe first, then read: frames that are sent in between come twice, and the second is left out.
    with node.services.hub.subscribe(session_topic(session_id)) as subscription:
        try:
            opening = await node.services.stream.open(session_id, caller.user.id)
        except NotFound as error:
            await websocket.close(UNKNOWN_SESSION, error.message)
            return
        except StoreUnavailable:
            await websocket.close(TRY_LATER, "The server's database is not available. Try again in a moment.")
            return
        # A client that can only read cannot write a message, so no wake waits for it.
        present = node.services.presence.watching(session_id) if includes(caller.scope, "chat") else nullcontext()
        async with present:
            with node.open_sockets.keep(caller.token_id, websocket), node.heartbeats.of(subscription.wake) as pulse:
                watcher = _Watcher(websocket, session_id, node.services.stream, subscription, pulse)
                sending = asyncio.create_task(watcher.send_all(opening, _after(websocket)))
                try:
                    await _listen(websocket, session_id, caller, node.services)
                finally:
                    await _end(sending)


@router.websocket("/ws/events")
async def events_socket(websocket: WebSocket) -> None:
    """Send the changes of everything a user owns."""
    node: Sockets = websocket.app.state.sockets
    caller = identity_of(websocket)
    await websocket.accept()
    # A page on which its user can answer: a program's tool calls that need approval wait for that.
    is_page = caller.door == "page" and includes(caller.scope, "chat")
    async with node.services.presence.has_page(caller.user.id) if is_page else nullcontext():
        await _send_and_refuse(websocket, node, caller)


async def _send_and_refuse(websocket: WebSocket, node: Sockets, caller: Identity) -> None:
    with (
        node.services.hub.subscribe(user_topic(caller.user.id)) as subscription,
        node.open_sockets.keep(caller.token_id, websocket),
        node.heartbeats.of(subscription.wake) as pulse,
    ):
        sending = asyncio.create_task(
            _send_events(websocket, node.services.feed, caller.user.id, subscription, _after(websocket), pulse)
        )
        try:
            while True:
                await _receive_text(websocket)
                await _refuse(websocket, BadFrame("This socket only sends; send messages to /ws/sessions/ID."))
        except WebSocketDisconnect:
            pass
        finally:
            await _end(sending)


class _Watcher:
    """Sends the frames of a session to one client: each once, in order, as fast as the client reads."""

    def __init__(
        self, websocket: WebSocket, session_id: str, stream: Stream, subscription: Subscription, pulse: Pulse
    ) -> None:
        self._websocket = websocket
        self._send_raw = raw_send(websocket)
        self._write_now: Callable[[bytes], bool] | None = getattr(websocket.state, WRITE_NOW, None)
        self._session_id = session_id
        self._stream = stream
        self._subscription = subscription
        self._pulse = pulse
        self._cursor = 0  # the sequence number of the last frame that was sent
        self._joined_run: str | None = None  # the client connected during this run, so it syncs at its end

    async def send_all(self, opening: Opening, after: int | None) -> None:
        with suppress(WebSocketDisconnect, RuntimeError, OSError):  # the client has disconnected
            await self._send_first(opening, after)
            while not self._subscription.is_over:
                await self._send_new()
                if self._pulse.pop_due():
                    await self._send(Heartbeat())
                await self._wait()
            await self._websocket.close(UNKNOWN_SESSION, f"Session {self._session_id!r} was deleted.")

    async def _wait(self) -> None:
        """Wait for something to do. Meanwhile the hub sends frames by itself."""
        if self._write_now is not None:
            self._subscription.send_now = self._send_now
        try:
            await self._subscription.wake.wait()
        finally:
            self._subscription.send_now = None

    def _send_now(self, frames: Sequence[Sent]) -> bool:
        """Send frames that are next in order, unless more than that is to be done for them."""
        if frames[0].seq != self._cursor + 1 or any(frame.text.startswith(_END_MARKS) for frame in frames):
            return False
        wire = frames[0].wire if len(frames) == 1 else b"".join(frame.wire for frame in frames)
        if len(wire) >= _ONE_WRITE or self._write_now is None or not self._write_now(wire):
            return False
        self._cursor = frames[-1].seq
        self._pulse.beat()
        return True

    async def _send_first(self, opening: Opening, after: int | None) -> None:
        if after is not None and await insist(lambda: self._stream.has_all_after(self._session_id, after)):
            self._cursor = after
            await self._catch_up()
            return
        run = opening.active_run
        if after is not None or run is None:
            await self._send(SessionSync())
        if run is None:
            self._cursor = opening.last_seq
            return
        self._joined_run = run.id
        self._cursor = opening.replay_from - 1
        await self._replay(opening)

    async def _replay(self, opening: Opening) -> None:
        """Replay the frames of a run so far, its start before the replay, as if the client had been connected."""
        is_first = True
        while self._cursor < opening.last_seq:
            frames = await self._after_cursor()
            if not frames:  # deleted meanwhile, for instance with its session
                break
            if is_first:
                await self._pass_on(frames[:1])
                await self._send(ReplayStart(count=opening.last_seq - self._cursor))
                is_first = False
            await self._pass_on([frame for frame in frames if self._cursor < frame.seq <= opening.last_seq])
        await self._send(ReplayEnd())

    async def _send_new(self) -> None:
        while self._subscription.is_behind:  # again, if more was dropped while we read
            self._subscription.is_behind = False  # first: frames that are published while we read are queued again
            await self._catch_up()
        taken = [frame for frame in self._subscription.drain() if frame.seq > self._cursor]
        if all(frame.seq == seq for seq, frame in enumerate(taken, start=self._cursor + 1)):
            await self._pass_on(taken)
        else:  # frames of another node are missing in between; all of them are stored
            await self._catch_up()

    async def _catch_up(self) -> None:
        before = self._cursor
        while frames := await self._after_cursor():
            await self._pass_on(frames)
        if self._cursor == before:
            last_seq = await insist(lambda: self._stream.last_seq(self._session_id))
            if last_seq < before:  # PostgreSQL was taken back to an earlier state
                self._cursor = last_seq
                await self._send(SessionSync())

    async def _after_cursor(self) -> list[Sent]:
        return await insist(lambda: self._stream.after(self._session_id, self._cursor))

    async def _pass_on(self, frames: Sequence[Sent]) -> None:
        """Send frames. After a run's end, and what follows about its recall, a sync may come before the next frame."""
        batch: list[Sent] = []
        size = 0
        ended: Sent | None = None
        for frame in frames:
            if ended is not None and not frame.text.startswith(_RECALL_MARK):
                await self._send_batch(batch)
                await self._sync_after(ended)
                ended = None
            batch.append(frame)
            size += len(frame.wire)
            if frame.text.startswith(_END_MARKS):
                ended = frame
            if size >= _ONE_WRITE:
                await self._send_batch(batch)
                size = 0
        await self._send_batch(batch)
        if ended is not None:
            await self._sync_after(ended)
        self._pulse.beat()

    async def _send_batch(self, batch: list[Sent]) -> None:
        """Send frames in one write, and empty the list."""
        if batch:
            await self._send_raw({"type": "websocket.send", "wire": b"".join(each.wire for each in batch)})
            self._cursor = batch[-1].seq
            batch.clear()

    async def _sync_after(self, end: Sent) -> None:
        run_id: str | None = orjson.loads(end.text).get("run_id")
        if run_id is None:
            return
        if run_id == self._joined_run or await insist(lambda: self._stream.is_headless(run_id)):
            await self._send(SessionSync())

    async def _send(self, frame: ConnectionFrame) -> None:
        await self._websocket.send_text(encode(frame))


async def _send_events(
    websocket: WebSocket, feed: Feed, user_id: str, subscription: Subscription, after: int | None, pulse: Pulse
) -> None:
    with suppress(WebSocketDisconnect, RuntimeError):
        cursor = await _catch_up_on_events(websocket, feed, user_id, after)
        while True:
            while subscription.is_behind:
                subscription.is_behind = False
                cursor = await _catch_up_on_events(websocket, feed, user_id, cursor)
            for frame in subscription.drain():
                if frame.seq > cursor:
                    await websocket.send_text(frame.text)
                    pulse.beat()
                    cursor = frame.seq
            if pulse.pop_due():
                await websocket.send_text(encode(Heartbeat()))
            await subscription.wake.wait()


async def _catch_up_on_events(websocket: WebSocket, feed: Feed, user_id: str, after: int | None) -> int:
    """Send the frames after a number; without one, or if they are no longer stored, tell the client to reload."""
    missed = None if after is None else feed.after(user_id, after)
    if missed is None:
        last = feed.last_seq(user_id)
        await websocket.send_text(encode(SessionSync()))
        return last
    for frame in missed:
        await websocket.send_text(frame.text)
    return missed[-1].seq if missed else cast("int", after)


async def _listen(websocket: WebSocket, session_id: str, caller: Identity, services: Services) -> None:
    """Receive messages until the client disconnects. An invalid one is answered with an error."""
    with suppress(WebSocketDisconnect):
        while True:
            text = await _receive_text(websocket)
            try:
                check_scope(caller, "chat")
                if text is None:
                    raise BadFrame("A frame must be JSON text, got a binary one.")
                is_large = len(text) > _PARSE_IN_THREAD
                if is_large:
                    trim_soon()
                frame = await asyncio.to_thread(_parse, text) if is_large else _parse(text)
                incoming = await asyncio.to_thread(read_message, frame) if frame.get("images") else read_message(frame)
                await hand_over(incoming, session_id, caller, services)
            except WakefulError as error:
                await _refuse(websocket, error)


def _parse(text: str) -> Mapping[str, Any]:
    try:
        frame = parse(text.encode())
    except UnfitJson as error:
        raise BadFrame(str(error)) from None
    except json.JSONDecodeError as error:
        raise BadFrame(f"The frame is not JSON: {error}.") from None
    if not isinstance(frame, dict):
        raise BadFrame('A frame must be a JSON object such as {"type": "message", "content": "…"}.')
    kind = cast("dict[str, Any]", frame).get("type")
    if kind != "message":
        raise BadFrame(f"`type` must be 'message', got {reprlib.repr(kind)}.", field="type")
    return cast("dict[str, Any]", frame)


async def _receive_text(websocket: WebSocket) -> str | None:
    """Wait for a frame; None if it is not text. Raises WebSocketDisconnect."""
    message = await websocket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"])
    return message.get("text")


async def _refuse(websocket: WebSocket, error: WakefulError) -> None:
    message = error.message if error.hint is None else f"{error.message} {error.hint}"
    with suppress(WebSocketDisconnect, RuntimeError):  # it is closing, for instance because its session was deleted
        await websocket.send_text(encode(ErrorFrame(message=message, code=error.code, field=error.field)))


def _after(websocket: WebSocket) -> int | None:
    text = websocket.query_params.get("after", "")
    # Anything else than a number is treated like one that is no longer stored.
    return None if not text else int(text) if text.isdecimal() and len(text) < 19 else -1


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


# ── Schema of the frames ──────────────────────────────────────────────────────────────────────────────────────────────


frames_router = APIRouter(route_class=DoorRoute, tags=["sockets"])

_NAMES = ConfigDict(alias_generator=wire_name)


@cache
def describe_frames() -> dict[str, Any]:
    """Return the JSON Schema of every frame, by socket, generated from its type."""
    return {
        "session": TypeAdapter[Any](SessionFrame, config=_NAMES).json_schema(mode="serialization"),
        "events": TypeAdapter[Any](UserFrame, config=_NAMES).json_schema(mode="serialization"),
    }


@frames_router.get("/ws/schema")
async def frames_schema(_caller: Reader) -> dict[str, Any]:
    """Describe the frames of `/ws/sessions/{id}` and `/ws/events` as JSON Schema."""
    return describe_frames()
