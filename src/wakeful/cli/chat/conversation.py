"""The state of a conversation with an agent: one session, its runs, its frames, and what was typed meanwhile."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from wakeful.cli.chat.screen import Screen, View
from wakeful.cli.output import Failed, Refused
from wakeful.cli.server import Server, tls_context

# The frames of a session over its WebSocket, across lost connections.


Frame = dict[str, Any]
_REVOKED, _GONE = 4001, 4004  # close codes
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0  # seconds before a new attempt
_FOR_GOOD = (400, 401, 403, 404)  # answers that another attempt does not change


class SessionStream:
    """Reads the frames of a session, each once. After a lost connection it continues behind the last one."""

    def __init__(self, server: Server, session_id: str, on_state: Callable[[str | None], None]) -> None:
        self._server = server
        self._session_id = session_id
        self._on_state = on_state  # called with what is wrong with the connection, or None
        self._last_seq: int | None = None

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield frames until the session is deleted or the token is revoked; raises Failed then."""
        pause = _FIRST_PAUSE
        while True:
            problem = "the connection was lost"
            try:
                async with self._connect() as socket:
                    self._on_state(None)
                    async for frame in self._read(socket):
                        pause = _FIRST_PAUSE
                        yield frame
            except InvalidStatus as error:
                status = error.response.status_code
                if status in _FOR_GOOD:
                    raise Failed(f"The server refused the session's socket with status {status}.") from None
                problem = f"the server answered {status}"
            except (OSError, TimeoutError, WebSocketException) as error:
                problem = f"no connection ({type(error).__name__})"
            self._on_state(f"{problem}; connecting again")
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _connect(self) -> connect:
        after = "" if self._last_seq is None else f"?after={self._last_seq}"
        return connect(
            f"{self._server.address.replace('http', 'ws', 1)}/ws/sessions/{self._session_id}{after}",
            ssl=tls_context(self._server.target),
            additional_headers=self._server.headers,
            user_agent_header=None,
            proxy=None,
            compression=None,
            max_size=None,
            close_timeout=1,
        )

    async def _read(self, socket: ClientConnection) -> AsyncIterator[Frame]:
        try:
            async for text in socket:
                frame: Frame = json.loads(text)
                self._last_seq = frame.get("seq", self._last_seq)
                yield frame
        except ConnectionClosed:
            pass  # the code says why
        if socket.close_code == _GONE:
            raise Failed(f"The session {self._session_id} was deleted.")
        if socket.close_code == _REVOKED:
            raise Failed("The token has expired or was revoked.")


T = TypeVar("T")
ENDS = ("stream_end", "stream_stopped", "error")
_ENDED = ("success", "failed", "stopped", "skipped", "interrupted")
_CONNECT_SECONDS = 30.0
QUESTION = "Approve? y, n, or a reason why not: "


class Console(Screen, Protocol):
    """A screen with an input line."""

    def echo(self, line: str) -> None: ...
    def hint(self, text: str | None) -> None: ...
    def ask(self, question: str | None) -> None: ...
    def close(self) -> None: ...


class Conversation:
    """A session that is being watched. Everything that happens in it is shown, including runs of wakes."""

    def __init__(self, server: Server, console: Console, agent: dict[str, Any]) -> None:
        self._server = server
        self._calls = asyncio.Lock()  # the server's connection takes one request at a time
        self._sending = asyncio.Lock()  # held until the id of a new run is known
        self.console = console
        self.view = View(console)
        self.agent = agent
        self.session_id: str | None = None
        self.is_ready = asyncio.Event()  # idle, or waiting for an approval
        self.is_ready.set()
        self.is_over = asyncio.Event()  # the run of our last message has ended, or the session is lost
        self.is_busy = False
        self.is_stopping = False
        self._approvals: dict[str, Frame] = {}  # calls that wait for an answer, by their id
        self.last_end: Frame | None = None
        self.failure: Failed | None = None
        self._waiting: list[str] = []  # messages that were typed during a run
        self.run_id: str | None = None  # of our last message
        self._own: set[str] = set()
        self._started: set[str] = set()  # runs whose frames were shown
        self._seen: set[str] = set()  # ids of messages that were shown
        self._is_synced = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    @property
    def approval(self) -> Frame | None:
        """The call that waits for an answer; of several, the first."""
        return next(iter(self._approvals.values()), None)

    async def do(self, act: Callable[[Server], T]) -> T:
        """Send requests to the server without blocking the event loop."""
        async with self._calls:
            try:
                return await asyncio.to_thread(act, self._server)
            finally:
                self._server.close()  # the server closes connections that are idle for long

    async def send(self, text: str) -> None:
        """Send a message; during a run, when it has ended."""
        if self.is_busy:
            self._waiting.append(text)
            self.console.hint(f"When this run has ended, this is sent: {text}")
            return
        self.console.echo(text)
        self._set_busy(True)
        self.is_over.clear()
        try:
            async with self._sending:
                await self._open()
                path = ("sessions", self.session_id or "", "messages")
                self.run_id = (await self.do(lambda server: server.post(*path, body={"content": text})))["run_id"]
                self._own.add(self.run_id or "")
            self.console.status("waiting for the agent")
        except Refused as error:
            if error.reason == "session_busy":  # a wake's run began a moment ago
                self._waiting.append(text)
                self.view.note("Sent when the run that has just started has ended.")
                return
            self._set_busy(False)
            raise
        except Failed:
            self._set_busy(False)
            raise

    async def go_on(self, run_id: str) -> None:
        """Continue a run of this session from its last saved step."""
        self._set_busy(True)
        self.is_over.clear()
        try:
            async with self._sending:
                await self.do(lambda server: server.post("runs", run_id, "continue"))
                self.run_id = run_id
                self._own.add(run_id)
            self.console.status("waiting for the agent")
        except Failed:
            self._set_busy(False)
            raise

    async def stop(self) -> None:
        """Stop the run, and send nothing after it; its last frame says when it has ended."""
        self.is_stopping = True
        for text in self._waiting:
            self.view.note(f"Not sent: {text}")
        self._waiting.clear()
        if self.session_id is None:
            return
        path = ("sessions", self.session_id, "stop")
        stopped = await self.do(lambda server: server.post(*path))
        if not stopped["ok"]:
            self.view.note("There is nothing to stop.")
            self.is_stopping = False
        elif stopped.get("reason"):
            self.view.note(f"Stopping: {stopped['reason']}.")

    async def answer(self, text: str) -> None:
        """Answer the approval that the run waits for: y approves, anything else refuses."""
        asked, word = self.approval, text.strip()
        if asked is None or not word:
            return
        approve = word.lower() in ("y", "yes")
        note = None if approve or word.lower() in ("n", "no") else word[:2_000]
        path = ("runs", asked["run_id"], "approvals", asked["call_id"])
        self._set_approvals({key: each for key, each in self._approvals.items() if each is not asked})
        await self.do(lambda server: server.post(*path, body={"approve": approve, "note": note}))

    async def open_session(self, session_id: str, most: int) -> None:
        """Continue a session: show its last messages and what happens in it from now on."""
        await self.leave_session()
        session = await self.do(lambda server: server.get("sessions", session_id))
        running = await self.do(lambda server: server.get("runs", session_id=session_id, status="running", limit=1))
        live = {run["id"] for run in running["runs"]}
        self.session_id = session_id
        self.agent = await self._agent(session["agent_id"])
        messages = [each for each in session["messages"] if each["role"] == "user" or each["run_id"] not in live]
        self._seen = {each["id"] for each in messages}
        if len(messages) > most:
            self.view.note(f"… {len(messages) - most} earlier messages: wakeful session show {session_id}")
        for message in messages[len(messages) - most if len(messages) > most else 0 :]:
            self.view.show_message(message)
        await self._watch()

    async def leave_session(self) -> None:
        """Stop watching the session; the next message opens a new one."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait((self._pump,))
        self._pump, self.session_id, self.run_id = None, None, None
        self._seen, self._started, self._waiting = set(), set(), []
        self._set_approvals({})
        self._set_busy(False)

    async def _agent(self, agent_id: str) -> dict[str, Any]:
        found = await self.do(lambda server: server.get("agents"))
        return next((each for each in found["agents"] if each["id"] == agent_id), {"id": agent_id, "name": "(deleted)"})

    async def _open(self) -> None:
        if self.session_id is not None:
            return
        body = {"agent_id": self.agent["id"]}
        self.session_id = (await self.do(lambda server: server.post("sessions", body=body)))["id"]
        await self._watch()

    async def _watch(self) -> None:
        """Start to show the session's frames, and wait until the socket is open."""
        self._is_synced.clear()
        self._pump = asyncio.create_task(self._show_frames(self.session_id or ""))
        opened = asyncio.create_task(self._is_synced.wait())
        await asyncio.wait((opened, self._pump), timeout=_CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            opened.cancel()
            raise self.failure or Failed(f"The socket of {self._server.address} does not open.", 3)

    async def _show_frames(self, session_id: str) -> None:
        stream = SessionStream(self._server, session_id, self._show_state)
        try:
            async for frame in stream.frames():
                await self._apply(frame)
        except Failed as error:
            self.failure = error
            self.view.problem(error.message)
            self._set_busy(False)
            self.is_over.set()
            self.console.close()

    def _show_state(self, problem: str | None) -> None:
        self.console.status(problem)

    async def _apply(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "session_sync":
            await self._sync()
        elif kind == "stream_start":
            self._is_synced.set()
            await self._begin(frame["run_id"])
        self.view.show(frame)
        if kind == "approval_requested":
            self._set_approvals(self._approvals | {frame["call_id"]: frame})
        elif kind == "approval_answered":
            self._set_approvals({key: each for key, each in self._approvals.items() if key != frame["call_id"]})
        if kind in ENDS and frame.get("run_id"):
            await self._end(frame)

    async def _begin(self, run_id: str) -> None:
        """Show who started a run, unless it answers what was typed here."""
        async with self._sending:  # the id of our own run may be on its way
            pass
        self._set_busy(True)
        if run_id in self._started:
            self.view.note("The run continues from its last saved step.")
        elif run_id not in self._own:
            for message in await self._unseen():
                if message["run_id"] == run_id and message["role"] == "user":
                    self._seen.add(message["id"])
                    self.view.show_message(message)
        self._started.add(run_id)

    async def _end(self, frame: Frame) -> None:
        self.last_end = frame
        self.is_stopping = False
        self.console.hint(None)
        self._set_approvals({})
        self._set_busy(False)
        if frame["run_id"] == self.run_id:
            self.is_over.set()
        if self._waiting:
            await self._send_waiting()

    async def _send_waiting(self) -> None:
        text = self._waiting.pop(0)
        try:
            await self.send(text)
        except Failed as error:
            self.view.problem(f"Not sent: {text}\n{error.message}")

    async def _sync(self) -> None:
        """Show messages that came while there was no connection."""
        is_first = not self._is_synced.is_set()
        self._is_synced.set()
        if is_first:
            return
        for message in await self._unseen():
            self._seen.add(message["id"])
            is_typed_here = message["role"] == "user" and message["run_id"] in self._own
            if message["run_id"] not in self._started and not is_typed_here:
                self.view.show_message(message)
        run_id = self.run_id
        if self.is_busy and run_id is not None and run_id not in self._started:
            run = await self.do(lambda server: server.get("runs", run_id))
            if run["status"] in _ENDED:
                await self._end({"type": "ended", "run_id": run_id})

    async def _unseen(self) -> list[dict[str, Any]]:
        path = ("sessions", self.session_id or "")
        session = await self.do(lambda server: server.get(*path))
        return [each for each in session["messages"] if each["id"] not in self._seen]

    def _set_busy(self, is_busy: bool) -> None:
        self.is_busy = is_busy
        if not is_busy:
            self.console.status(None)
        self._set_ready()

    def _set_approvals(self, approvals: dict[str, Frame]) -> None:
        before, self._approvals = self.approval, approvals
        if self.approval is not before:
            if self.approval is not None:
                self.view.show_call(self.approval)  # only now: of several, the question is about the last on the screen
            self.console.ask(None if self.approval is None else QUESTION)
        self._set_ready()

    def _set_ready(self) -> None:
        if not self.is_busy or self.approval is not None:
            self.is_ready.set()
        else:
            self.is_ready.clear()
