"""A worker process: the only place where statements that a model wrote are run."""

import ctypes
import gc
import resource
import select
import signal
import sys
import time
from collections import OrderedDict
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import apsw
import orjson

from wakeful.agentdb import deadline, operations
from wakeful.agentdb.connection import JOURNAL_SECONDS, MAX_OPEN, OpenDatabase, Request
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.operation import address
from wakeful.agentdb.operations import OPERATIONS
from wakeful.core.resources import hide_memory

# Return memory to the system after a large request. A worker lives as long as the server, and serves all agents.
GROWTH = 16 * 1024 * 1024  # bytes; trimming takes a few milliseconds, so less is not worth it

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()


class Memory:
    """Watches the resident memory of this process."""

    def __init__(self) -> None:
        # glibc only: free() keeps memory that is not at the end of the heap, and malloc_trim returns it.
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._baseline = resident_bytes()

    def has_grown(self) -> bool:
        return resident_bytes() > self._baseline + GROWTH

    def trim(self) -> None:
        """Collect garbage, and return free memory to the system."""
        gc.collect()
        if self._trim is not None:
            self._trim(0)
        self._baseline = resident_bytes()


def resident_bytes() -> int:
    """Return the resident memory of this process, or 0 where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0


# A worker process: the only place where statements that a model wrote are run.
#
# It reads requests from stdin and writes answers to stdout, each with a length prefix. A request is a JSON document; an
# answer is two, a head and the result, so that the server can pass a result on without parsing it. Every request names
# the file and its key, so a few workers serve any number of agents. At the end of its input it closes its files and
# exits; SIGTERM interrupts the current request, so that this is soon.


MAX_HEAP = 64 * 1024 * 1024  # of SQLite; a statement that needs more fails
MAX_MEMORY = 1024 * 1024 * 1024  # address space of the process, Python's own part included
MAX_FILES = 128


def main(journal_seconds: float) -> None:
    """Answer requests until stdin ends, and move journals into their files soon after writes."""
    if sys.platform == "linux":  # macOS refuses such a limit; SQLite's own, below, holds there too
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_FILES, MAX_FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would contain keys
    hide_memory()
    apsw.hard_heap_limit(MAX_HEAP)
    apsw.soft_heap_limit(MAX_HEAP * 3 // 4)
    # Thousands of rows are allocated and freed, none in a cycle, so frequent garbage collections would find nothing.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    signal.signal(signal.SIGTERM, lambda _number, _frame: deadline.stop())
    worker = Worker(journal_seconds)
    try:
        with suppress(ConnectionError):  # the server is gone
            sys.stdout.buffer.write(bytes(4))  # an empty frame: the worker has started
            sys.stdout.buffer.flush()
            _serve(worker, FileIO(sys.stdin.fileno(), closefd=False), sys.stdout.buffer)
    finally:
        worker.close_all()


def _serve(worker: "Worker", requests: FileIO, answers: BinaryIO) -> None:
    memory = Memory()
    while True:
        if not select.select([requests], [], [], worker.seconds_to_journals)[0]:
            worker.empty_journals()
            continue
        head = _read(requests, 4)
        if len(head) < 4:
            return
        # A separate function, so that neither frame nor answer is still referenced when memory is freed.
        _serve_one(worker, _read(requests, int.from_bytes(head)), answers)
        worker.free_memory()
        if memory.has_grown():
            worker.shrink()
            memory.trim()
        if worker.seconds_to_journals == 0:  # always busy: SQLite's own checkpoints come with every 1,000 pages only
            worker.empty_journals()


def _read(requests: FileIO, size: int) -> bytes:
    """Read this many bytes, fewer only at the end of the input. Unbuffered, so that `select` sees what is left."""
    data = bytearray(size)
    filled = 0
    while filled < size and (count := requests.readinto(memoryview(data)[filled:])):
        filled += count
    return bytes(data[:filled])


def _serve_one(worker: "Worker", frame: bytes, answers: BinaryIO) -> None:
    answer = worker.answer(frame)
    answers.write(len(answer).to_bytes(4))
    answers.write(answer)
    answers.flush()


class Worker:
    """The open databases of a worker process."""

    def __init__(self, journal_seconds: float = JOURNAL_SECONDS) -> None:
        self.databases: OrderedDict[str, OpenDatabase] = OrderedDict()
        self._journal_seconds = journal_seconds
        self._journals_due: float | None = None  # when journals are emptied next; None: they are empty

    @property
    def seconds_to_journals(self) -> float | None:
        """Return the seconds until journals are emptied; None: they are empty."""
        return None if self._journals_due is None else max(0.0, self._journals_due - time.monotonic())

    def empty_journals(self) -> None:
        """Move journals into their files, and truncate them."""
        self._journals_due = None
        for opened in self.databases.values():
            opened.empty_journal()

    def answer(self, frame: bytes) -> bytes:
        """Run one request. Never raises: errors are answers, too."""
        try:
            values = orjson.loads(frame)
            if values["op"] == "close":
                self._close(values["path"])
                return _joined({"ok": True}, None)
            request = Request(**values)
            answer = self._carry_out(request)
            result = answer.pop("result")
            return _joined({"ok": True, **answer}, result)
        except Refusal as refusal:
            return _joined({"ok": False, **refusal.as_values()}, None)
        except MemoryError:
            self.close_all()
            return _joined({"ok": False, **operations.TOO_MUCH_MEMORY.as_values()}, None)
        except Exception as error:  # noqa: BLE001  (the server logs it; this process can go on)
            self.close_all()
            return _joined({"ok": False, "kind": "broken", "message": f"{type(error).__name__}: {error}"}, None)

    def _carry_out(self, request: Request) -> dict[str, Any]:
        opened = self._opened(request)
        deadline.begin(request.seconds)
        address(request.door)
        opened.begin(request)
        if OPERATIONS[request.op].kind != "read" and self._journals_due is None:
            self._journals_due = time.monotonic() + self._journal_seconds
        try:
            return operations.carry_out(opened, request)
        except (apsw.Error, OSError, OverflowError, UnicodeDecodeError) as error:
            refusal = operations.explain(error, opened, request.op)
            if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.IOError | apsw.NoMemError):
                self._close(request.path)  # its state in memory cannot be trusted
            if refusal is None:
                raise
            raise refusal from error

    def _opened(self, request: Request) -> OpenDatabase:
        path, key = request.path, bytes.fromhex(request.key)
        if not path:
            return OpenDatabase(path, key)
        opened = self.databases.get(path)
        if opened is None or opened.key != key or not opened.is_same_file():
            self._close(path)
            opened = self.databases[path] = OpenDatabase(path, key, is_cache=request.is_cache)
        self.databases.move_to_end(path)
        while len(self.databases) > MAX_OPEN:
            self._close(next(iter(self.databases)))
        return opened

    def _close(self, path: str) -> None:
        opened = self.databases.pop(path, None)
        if opened is not None:
            opened.close()

    def free_memory(self) -> None:
        """Free the rows of the last answer; that can wait until it was sent."""
        for opened in self.databases.values():
            opened.free_memory()

    def shrink(self) -> None:
        """Empty SQLite's page caches."""
        for opened in self.databases.values():
            for side in opened.sides:
                side.raw.pragma("shrink_memory")

    def close_all(self) -> None:
        for path in list(self.databases):
            self._close(path)


def _joined(head: dict[str, Any], result: Any) -> bytes:
    """Encode an answer. A result that is bytes is a file, which the server passes on unchanged."""
    written = orjson.dumps(head)
    body = result if isinstance(result, bytes) else orjson.dumps(result)
    return b"".join((len(written).to_bytes(4), written, body))


if __name__ == "__main__":
    main(float(sys.argv[1]))
