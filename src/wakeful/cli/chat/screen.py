"""Shows the frames and messages of a session as text for people, with and without a terminal."""

import asyncio
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import typer

from wakeful.cli.arguments import show_seconds
from wakeful.cli.output import call_lines, harmless, has_colour, in_words, printable, show_time

Frame = Mapping[str, Any]
_MIN_COLUMNS = 40  # of a tool call's line
_MAX_STATUS = 60  # characters
_SHORT = 1.0  # seconds of reasoning that are not worth a line
_RECALLS = {"scheduled": "is booked for", "rescheduled": "is moved to", "deferred": "waits until"}


class Screen(Protocol):
    """The place where a conversation is shown."""

    has_colour: bool

    @property
    def columns(self) -> int:
        """The length of a line."""
        ...

    def text(self, text: str) -> None:
        """Show a piece of an answer, which may end in the middle of a line."""
        ...

    def line(self, text: str) -> None:
        """Show a line about the conversation."""
        ...

    def status(self, text: str | None) -> None:
        """Show what the run is doing now; None: nothing."""
        ...


class View:
    """Shows what happens in a session: answers as they stream, and a line for each tool call."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.shows_thinking = False
        self.last_thinking = ""
        self._thinking_since: float | None = None
        self._shown: dict[str, Callable[[Frame], None]] = {
            "stream_start": self._start,
            "stream_delta": self._delta,
            "stream_end": self._end,
            "stream_stopped": self._stopped,
            "error": self._error,
            "thinking_delta": self._think,
            "thinking_end": self._end_thinking,
            "turn_thinking": self._turn_thinking,
            "planning_status": lambda frame: self._screen.status(harmless(frame["label"])),
            "plan_ready": self._plan,
            "approval_answered": self._answered,
            "waiting": self._waiting,
            "tool_started": self._tool_started,
            "tool_call": self._tool_call,
            "compression_started": lambda _: self._screen.status("compressing the context"),
            "context_compressed": self._compressed,
            "profile_switched": lambda frame: self.note(f"{frame['profile_name']} continues this session."),
            "recall_update": self._recall,
            "server_note": lambda frame: self.problem(frame["text"]),
        }

    def show(self, frame: Frame) -> None:
        """Show a frame; kinds that are not for people are left out."""
        handler = self._shown.get(frame["type"])
        if handler is not None:
            handler(frame)

    def show_message(self, message: Frame) -> None:
        """Show a message of a transcript."""
        if message["role"] == "user":
            self._show_asked(message)
        elif message["role"] == "assistant" and message["content"]:
            self._screen.text(printable(message["content"]).rstrip("\n") + "\n")
        elif message["role"] == "tool" and message.get("tool"):
            self._screen.line(self._call_line({**message["tool"], "result": message["content"]}))

    def note(self, text: str) -> None:
        """Show a line that is not part of the conversation."""
        self._screen.line(self._style(harmless(text), dim=True))

    def problem(self, text: str) -> None:
        """Show an error."""
        self._screen.line(self._style(printable(text), fg="red"))

    def show_call(self, asked: Frame) -> None:
        """Show a call that waits for approval, with every argument."""
        self._screen.status(None)
        sentence, *arguments = call_lines(asked)
        self._screen.line(self._style(f"Needs approval: {sentence}", fg="yellow", bold=True))
        for line in arguments:
            self._screen.line(line)

    def _show_asked(self, message: Frame) -> None:
        label = f" ({harmless(message['label'])})" if message.get("label") else ""
        if message["source"] is None and not message["is_recall"]:
            self._screen.line(self._style(f"› {printable(message['content'])}", bold=True))
        else:
            at = show_time(message["created_at"], "%H:%M:%S")
            self._screen.line(self._style(f"Woken at {at}{label}: {printable(message['content'])}", fg="yellow"))

    def _start(self, _: Frame) -> None:
        self._thinking_since, self.last_thinking = None, ""
        self._screen.status("waiting for the model")

    def _delta(self, frame: Frame) -> None:
        self._screen.status(None)
        self._screen.text(printable(frame["delta"]))

    def _end(self, frame: Frame) -> None:
        self._screen.status(None)
        used = [show_seconds(frame["elapsed_seconds"])]
        if frame["tool_call_count"]:
            used.append(f"{frame['tool_call_count']} tool call{'s' if frame['tool_call_count'] != 1 else ''}")
        used.append(f"{frame['token_count']:,} tokens")
        self.note(" · ".join(used))

    def _stopped(self, _: Frame) -> None:
        self._screen.status(None)
        self._screen.line(self._style("Stopped.", fg="yellow"))

    def _error(self, frame: Frame) -> None:
        self._screen.status(None)
        self.problem(frame["message"])

    def _think(self, frame: Frame) -> None:
        if self._thinking_since is None:
            self._thinking_since = time.monotonic()
            self._screen.status("thinking")
        self.last_thinking += frame["delta"]
        if self.shows_thinking:
            self._screen.text(self._style(printable(frame["delta"]), dim=True))

    def _end_thinking(self, _: Frame) -> None:
        took = 0.0 if self._thinking_since is None else time.monotonic() - self._thinking_since
        if took >= _SHORT:
            self.note(f"thought for {show_seconds(took)}")
        self._thinking_since = None
        self._screen.status("waiting for the model")

    def _turn_thinking(self, frame: Frame) -> None:
        self.last_thinking += frame["thinking"]
        if self.shows_thinking:
            self._screen.line(self._style(printable(frame["thinking"]), dim=True))

    def _plan(self, frame: Frame) -> None:
        self._screen.line(self._style(f"Plan:\n{printable(frame['plan'])}", dim=True))

    def _answered(self, frame: Frame) -> None:
        self.note(f"{frame['tool']}: {'approved' if frame['approved'] else 'refused'}")

    def _waiting(self, frame: Frame) -> None:
        retry = f"; next try in {frame['retry_in']:.0f} s" if frame.get("retry_in") is not None else ""
        self._screen.status(f"waiting: {harmless(frame['reason'])}{retry}")

    def _tool_started(self, frame: Frame) -> None:
        self._screen.status(_brief(f"{frame['tool']} {_show_arguments(frame['args'])}", _MAX_STATUS))

    def _tool_call(self, frame: Frame) -> None:
        self._screen.status("waiting for the model")
        self._screen.line(self._call_line(frame))

    def _call_line(self, call: Frame) -> str:
        mark = self._style("✓", fg="green") if call["success"] else self._style("✗", fg="red")
        inner = "  ↳ " if call.get("is_subagent") else ""
        room = max(self._screen.columns, _MIN_COLUMNS) - len(inner) - len("✓  → ")
        called = _brief(f"{call['tool']} {_show_arguments(call['args'])}", room // 2)
        outcome = self._style(f"{called} → {_brief(call['result'], room - len(called))}", dim=True)
        return f"{inner}{mark} {outcome}"

    def _compressed(self, frame: Frame) -> None:
        self.note(f"The context was compressed: {frame['messages_before']} messages to {frame['messages_after']}.")

    def _recall(self, frame: Frame) -> None:
        action = frame["action"]
        if action in _RECALLS:
            at = show_time(frame["trigger_at"])
            self.note(f"A recall {_RECALLS[action]} {at}. /recall shows what is booked here.")
        elif action != "fired":
            self.note(f"A recall was {in_words(action)}.")

    def _style(self, text: str, **how: Any) -> str:
        return typer.style(text, **how) if self._screen.has_colour and text else text


def _show_arguments(arguments: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_plain(value)}" for name, value in arguments.items())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _brief(text: str, most: int) -> str:
    """Return a text as one line that has at most this number of characters."""
    one_line = harmless(" ".join(text.split()))
    return one_line if len(one_line) <= most else f"{one_line[: most - 1]}…"


# A conversation without a terminal: answers on standard output, everything else on standard error.


_LONG = 160  # columns
_CLEAR = "\r\x1b[K"


class PlainScreen:
    """Writes answers as they come, and reads a message from each line of standard input."""

    def __init__(self, *, streams_answers: bool = True, has_notes_on_stdout: bool = False) -> None:
        self._notes = sys.stdout if has_notes_on_stdout else sys.stderr
        self.has_colour = has_colour(self._notes)
        self._streams_answers = streams_answers
        self._is_mid_line = False
        self._has_status = sys.stderr.isatty()
        self._is_status_shown = False
        self._lines: asyncio.Queue[str | None] | None = None

    def text(self, text: str) -> None:
        if not self._streams_answers or not text:
            return
        self.status(None)
        sys.stdout.write(text)
        sys.stdout.flush()
        self._is_mid_line = not text.endswith("\n")

    def line(self, text: str) -> None:
        self.status(None)
        self.end_line()
        self._notes.write(f"{text}\n")
        self._notes.flush()

    def status(self, text: str | None) -> None:
        if not self._has_status or self._is_mid_line or (text is None and not self._is_status_shown):
            return
        sys.stderr.write(f"{_CLEAR}{text}…" if text else _CLEAR)
        sys.stderr.flush()
        self._is_status_shown = text is not None

    def end_line(self) -> None:
        """Begin a new line of standard output, unless it is at the start of one."""
        if self._is_mid_line:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._is_mid_line = False

    async def lines(self, is_ready: asyncio.Event) -> AsyncGenerator[str]:
        """Yield lines of standard input, each when the conversation is ready for it."""
        while True:
            await is_ready.wait()
            line = await self.read_line()
            if line is None:
                await is_ready.wait()
                return
            yield line

    async def read_line(self) -> str | None:
        """Return the next line of standard input; None at its end."""
        if self._lines is None:
            self._lines = asyncio.Queue()
            # A thread of asyncio's pool would keep the command from ending while it waits for a line.
            reading = threading.Thread(
                target=_read_lines, args=(self._lines, asyncio.get_running_loop()), daemon=True, name="stdin"
            )
            reading.start()
        return await self._lines.get()

    @property
    def columns(self) -> int:
        """The width of the terminal; without one, that of a long line."""
        return shutil.get_terminal_size().columns if self._notes.isatty() else _LONG

    def echo(self, line: str) -> None:
        """Show nothing: what was typed is on the terminal already, or came from a file."""

    def hint(self, text: str | None) -> None:
        """Show a line about what happens next."""
        if text is not None:
            self.line(text)

    def ask(self, question: str | None) -> None:
        """Show what the next line of input answers."""
        if question is not None and sys.stdin.isatty():
            self.line(question)

    def close(self) -> None:
        """End the input."""
        if self._lines is not None:
            self._lines.put_nowait(None)


def _read_lines(lines: "asyncio.Queue[str | None]", loop: asyncio.AbstractEventLoop) -> None:
    """Read with os.read: at exit, Python waits for the lock of a buffered reader that a thread reads from."""
    rest = b""
    with suppress(RuntimeError):  # the command has ended, and its event loop with it
        while piece := os.read(0, 65536):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                loop.call_soon_threadsafe(lines.put_nowait, line.decode(errors="replace"))
        if rest:
            loop.call_soon_threadsafe(lines.put_nowait, rest.decode(errors="replace"))
        loop.call_soon_threadsafe(lines.put_nowait, None)
