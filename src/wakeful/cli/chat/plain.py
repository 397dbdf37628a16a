"""A conversation without a terminal: answers on standard output, everything else on standard error."""

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress

from wakeful.cli.output import has_colour

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
