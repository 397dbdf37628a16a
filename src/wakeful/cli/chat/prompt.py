"""A conversation on a terminal: an input line that stays at the bottom while answers stream above it."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Literal

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle

from wakeful.cli.output import has_colour, printable, width_of
from wakeful.core.sources import find_config_dir

_MARK = "› "
_HISTORY = "chat-history"  # in the config directory
_REFRESH = 0.5  # seconds
_PIECE = re.compile(r"(?P<code>\x1b\[[0-9;]*m)|(?P<space> +)|(?P<word>[^ \x1b]+)")


class PromptScreen:
    """Prints whole lines above the input line; the line that is still streaming is part of the prompt until it ends."""

    def __init__(self, words: Sequence[str], on_interrupt: Callable[[bool], Literal["stop", "clear", "leave"]]) -> None:
        self.has_colour = has_colour(sys.stdout)
        self._on_interrupt = on_interrupt  # called with whether something is typed
        self._tail = ""
        self._status: str | None = None
        self._status_since = 0.0
        self._hint: str | None = None
        self._question: str | None = None
        self._is_closed = False
        self._session: PromptSession[str] = PromptSession(
            message=self._prompt,
            history=FileHistory(str(_open_history())),
            completer=WordCompleter(words, sentence=True),
            complete_style=CompleteStyle.READLINE_LIKE,
            complete_while_typing=False,
            erase_when_done=True,  # the prompt may hold a part of an answer; `echo` shows what was typed
            key_bindings=self._bindings(),
            refresh_interval=_REFRESH,
            output=_make_output(),
        )

    @property
    def columns(self) -> int:
        """The width of the terminal."""
        return self._session.app.output.get_size().columns

    def text(self, text: str) -> None:
        whole, _, self._tail = (self._tail + text).rpartition("\n")
        if "\n" in text:
            self._print(whole)
        self._session.app.invalidate()

    def line(self, text: str) -> None:
        if self._tail:
            self._print(self._tail)
            self._tail = ""
        self._print(text)

    def status(self, text: str | None) -> None:
        if text != self._status:
            self._status_since = asyncio.get_running_loop().time()
        self._status = text
        self._session.app.invalidate()

    def echo(self, line: str) -> None:
        """Show what was typed, which the input line no longer shows."""
        shown = printable(f"{self._question or _MARK}{line}")
        self.line(typer.style(shown, bold=True) if self.has_colour else shown)

    def hint(self, text: str | None) -> None:
        """Show a line above the input line until the next hint, without interrupting an answer; None: nothing."""
        self._hint = text
        self._session.app.invalidate()

    def ask(self, question: str | None) -> None:
        """Show what the next line of input answers."""
        self._question = question
        self._session.app.invalidate()

    async def lines(self, _is_ready: asyncio.Event) -> AsyncGenerator[str]:
        """Yield what is typed until Ctrl-D, or Ctrl-C when there is nothing to stop."""
        typed: asyncio.Queue[str | None] = asyncio.Queue()
        reading = asyncio.create_task(self._read(typed))
        try:
            while (line := await typed.get()) is not None:
                yield line
            await reading
        finally:
            reading.cancel()
            await asyncio.wait((reading,))

    def close(self) -> None:
        """End the input."""
        self._is_closed = True
        app = self._session.app
        if app.is_running and not app.is_done:
            app.exit(exception=EOFError)

    async def _read(self, typed: "asyncio.Queue[str | None]") -> None:
        """Read lines while earlier ones are being sent; None is the end.

        The terminal is in raw mode between them too: else the kernel would take keys such as Ctrl-D for itself.
        """
        try:
            with self._session.app.input.raw_mode():
                while not self._is_closed:
                    line = await self._session.prompt_async()
                    if line.strip():
                        typed.put_nowait(line)
        except EOFError:
            pass
        finally:
            typed.put_nowait(None)

    def _print(self, text: str) -> None:
        """Print above the input line. prompt_toolkit's run_in_terminal would leave raw mode, and lose keys."""
        app = self._session.app
        if app.is_running:
            app.renderer.erase()
        wrapped = "\n".join(row for line in text.split("\n") for row in wrap(line, self.columns) or [""])
        sys.stdout.write(f"{wrapped}\n")
        sys.stdout.flush()
        app.invalidate()

    def _prompt(self) -> ANSI:
        """Return the prompt: the line that is still streaming, the status, and the mark of the input line."""
        size = self._session.app.output.get_size()
        rows = wrap(self._tail, size.columns)[-max(1, size.rows - 4) :]
        if self._status is not None:
            seconds = asyncio.get_running_loop().time() - self._status_since
            waited = f" {seconds:.0f} s" if seconds >= 1 else ""
            rows.append(self._dim(f"{self._status}…{waited}"))
        if self._hint is not None:
            rows.append(self._dim(self._hint))
        return ANSI("\n".join([*rows, self._question or _MARK]))

    def _dim(self, text: str) -> str:
        cut = printable(text)[: self.columns - 1]
        return typer.style(cut, dim=True) if self.has_colour else cut

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("c-c")
        @bindings.add("<sigint>")
        def interrupt(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
            action = self._on_interrupt(bool(event.app.current_buffer.text))
            if action == "leave":
                event.app.exit(exception=EOFError)
            elif action == "clear":
                event.app.current_buffer.reset()

        @bindings.add("escape", "enter")
        def newline(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
            event.app.current_buffer.insert_text("\n")

        return bindings


def _make_output() -> Vt100_Output:
    output = Vt100_Output.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False  # some terminals do not answer requests for the cursor's position
    return output


def _open_history() -> Path:
    """Return the file of earlier input, which only its owner can read."""
    path = find_config_dir(os.environ) / _HISTORY
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError:
        return Path(os.devnull)  # a chat without a history is better than none
    return path


def wrap(text: str, columns: int) -> list[str]:
    """Break a line into rows between words, so that an answer looks the same while it streams and when it is complete.

    Codes for colours take no room. A word that is too long is broken too.
    """
    rows, row, used = list[str](), "", 0
    for piece in _PIECE.finditer(text):
        if piece["code"]:
            row += piece[0]
            continue
        width = width_of(piece[0])
        if used + width > columns and piece["space"]:
            rows.append(row)
            row, used = "", 0
            continue
        if row.strip(" ") and used + width > columns:
            rows.append(row.rstrip(" "))
            row, used = "", 0
        for part in _break(piece[0], columns - used):
            if used and used + width_of(part) > columns:
                rows.append(row)
                row, used = "", 0
            row, used = row + part, used + width_of(part)
    return [*rows, row] if row else rows


def _break(word: str, columns: int) -> list[str]:
    """Return a word in parts that fit into a row."""
    if width_of(word) <= columns:
        return [word]
    return list(word)
