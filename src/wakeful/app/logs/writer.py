"""Writes log lines in a thread of its own, so that a pipe that nobody reads never stops a run."""

import io
import logging
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

_MAX_QUEUED = 10_000  # lines; beyond, new ones are dropped and counted
_BATCH = 200  # lines of one write
_FLUSH_SECONDS = 2.0  # at the end of the process

Write = Callable[[bytes], None]


class LogWriter(logging.Handler):
    """Queues records for its thread, which formats and writes them. Emitting one never blocks."""

    def __init__(self, write: Write | None = None) -> None:
        super().__init__()
        self._write = write or _find_target()
        self._queue: deque[logging.LogRecord] = deque()
        self._has_more = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._unreported = 0
        self.dropped = 0  # since the start
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._queue) >= _MAX_QUEUED:
            self.dropped += 1
            self._unreported += 1
            return
        if record.exc_info and not record.exc_text:  # now: a queued traceback would keep its frames alive
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        self._queue.append(record)
        if not self._has_more.is_set():
            self._is_idle.clear()
            self._has_more.set()
            self._start()

    def flush(self) -> None:
        """Wait for the lines so far, but not for long: the target may be blocked."""
        deadline = time.monotonic() + _FLUSH_SECONDS
        while self._queue or not self._is_idle.is_set():
            if not self._is_idle.wait(max(0.0, deadline - time.monotonic())):
                return

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_writing, name="wakeful-logs", daemon=True)
            self._thread.start()

    def _keep_writing(self) -> None:
        while True:
            self._has_more.wait()
            self._has_more.clear()
            while self._queue:
                self._write_batch()
            if not self._has_more.is_set():
                self._is_idle.set()

    def _write_batch(self) -> None:
        lines = [self._to_line(self._queue.popleft()) for _ in range(min(_BATCH, len(self._queue)))]
        if self._unreported:
            dropped, self._unreported = self._unreported, 0
            lines.append(self._to_line(_note_dropped(dropped)))
        try:
            self._write("".join(f"{line}\n" for line in lines).encode(errors="replace"))
        except (OSError, ValueError):  # the target is closed: nobody can be told
            self.dropped += len(lines)

    def _to_line(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # noqa: BLE001  a faulty record must not end the thread that writes all others
            return f"a log record of {record.name} could not be written: {type(error).__name__}"


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


def _find_target() -> Write:
    """Return a function that writes to standard error."""
    stream = sys.stderr
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
