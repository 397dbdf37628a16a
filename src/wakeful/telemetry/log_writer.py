"""Writes log lines in a thread of its own, so that a pipe that nobody reads never stops a run."""

import io
import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TextIO

_MAX_BYTES = 4_000_000  # of lines that wait; beyond, new ones are dropped and counted
_PAUSE = 0.02  # seconds between two writes: to wake the thread for each line would slow a busy engine down
_FLUSH_SECONDS = 2.0  # at the end of the process

Write = Callable[[bytes], None]


class LogWriter(logging.Handler):
    """Queues lines for its thread, which writes them. Emitting one never blocks."""

    def __init__(self, write: Write | None = None) -> None:
        super().__init__()
        self._write = write or _find_target(sys.stderr)
        self._queue: deque[bytes] = deque()
        self._waiting = 0  # bytes
        self._has_more = threading.Event()
        self._is_hurried = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._unreported = 0
        self.dropped = 0  # records, since the start
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting >= _MAX_BYTES:
            self.dropped += 1
            self._unreported += 1
            return
        if self._unreported:
            dropped, self._unreported = self._unreported, 0
            self._add(_note_dropped(dropped))
        self._add(record)

    def flush(self) -> None:
        """Wait for the lines so far, but not for long: the target may be blocked."""
        self._is_hurried.set()
        self._is_idle.wait(_FLUSH_SECONDS)
        self._is_hurried.clear()

    def _add(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001  a faulty record must not end what it was about
            line = f"a log record of {record.name} could not be written: {type(error).__name__}"
        data = f"{line}\n".encode(errors="replace")
        self._waiting += len(data)
        self._is_idle.clear()
        self._queue.append(data)
        if not self._has_more.is_set():
            self._has_more.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_writing, name="wakeful-logs", daemon=True)
                self._thread.start()

    def _keep_writing(self) -> None:
        written_at = 0.0
        while True:
            self._has_more.wait()
            self._is_hurried.wait(max(0.0, written_at + _PAUSE - time.monotonic()))
            self._has_more.clear()
            while self._queue:
                self._write_queued()
            written_at = time.monotonic()
            with self._locked():
                if not self._queue:
                    self._is_idle.set()

    def _write_queued(self) -> None:
        lines = [self._queue.popleft() for _ in range(len(self._queue))]
        data = b"".join(lines)
        try:
            self._write(data)
        except (OSError, ValueError):  # the target is closed, and there is no other
            self.dropped += len(lines)
        with self._locked():
            self._waiting -= len(data)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the lock that `emit` is called with."""
        self.acquire()
        try:
            yield
        finally:
            self.release()


def count_dropped() -> int:
    """Return how many lines this process has dropped."""
    return sum(each.dropped for each in logging.getLogger().handlers if isinstance(each, LogWriter))


def _note_dropped(lines: int) -> logging.LogRecord:
    return logging.makeLogRecord(
        {
            "name": __name__,
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "log lines were dropped, because the target of the log was blocked",
            "lines": lines,
        }
    )


def write_apart(stream: TextIO, text: str) -> None:
    """Write to a stream in a thread of its own: the server must not wait for a pipe that nobody reads."""
    write = _find_target(stream)

    def work() -> None:
        with suppress(OSError, ValueError):  # it is closed
            write(text.encode(stream.encoding, errors="replace"))

    threading.Thread(target=work, name="wakeful-output", daemon=True).start()


def _find_target(stream: TextIO) -> Write:
    """Return a function that writes to a stream."""
    try:
        # Not through the stream: its lock, held by a blocked thread, would abort the end of the process.
        descriptor = os.dup(stream.fileno())
    except (AttributeError, io.UnsupportedOperation):  # it is not a file, as in a test

        def write_text(lines: bytes) -> None:
            stream.write(lines.decode())
            stream.flush()

        return write_text
    return lambda lines: _write_all(descriptor, lines)


def _write_all(descriptor: int, lines: bytes) -> None:
    while lines:
        try:
            lines = lines[os.write(descriptor, lines) :]
        except BlockingIOError:  # another program has made the pipe non-blocking
            select.select([], [descriptor], [])
