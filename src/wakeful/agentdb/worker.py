"""A worker process: the only place where a statement that a model wrote is run.

It reads requests from its standard input and answers on its standard output, each with its length before it. A request
is a JSON document; an answer is two, a head and the result, so that the server can hand a result on unread. Every
request brings the file and its key along, so a few workers serve any number of agents. It ends when its input does.
"""
# pyright: reportUnknownMemberType=false

import gc
import resource
import sys
from collections import OrderedDict
from contextlib import suppress
from typing import Any, BinaryIO

import apsw
import orjson

from wakeful.agentdb import deadline, operations
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.memory import Memory
from wakeful.agentdb.opened import MOST_OPEN, Opened, Request
from wakeful.agentdb.private_memory import hide_memory

HEAP = 64 * 1024 * 1024  # of SQLite: a statement that wants more fails
MEMORY = 1024 * 1024 * 1024  # of address space, for the process: Python's own part is bounded too
FILES = 128
MOST_FRAME = 64 * 1024 * 1024


def main() -> None:
    """Answer requests until the server is gone."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a dump would hold keys
    hide_memory()
    apsw.hard_heap_limit(HEAP)
    apsw.soft_heap_limit(HEAP * 3 // 4)
    # Rows come and go by the thousand and none refers to another, so there is little for a search of cycles to find.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    with suppress(ConnectionError):  # the server is gone, and with it whoever would read the answer
        _serve(Worker(), sys.stdin.buffer, sys.stdout.buffer)


def _serve(worker: "Worker", requests: BinaryIO, answers: BinaryIO) -> None:
    memory = Memory()
    while head := requests.read(4):
        # In a function of its own, so that neither frame nor answer is still held when memory is given back.
        _serve_one(worker, requests.read(int.from_bytes(head)), answers)
        worker.let_go()
        if memory.has_grown():
            worker.shrink()
            memory.give_back()


def _serve_one(worker: "Worker", frame: bytes, answers: BinaryIO) -> None:
    answer = worker.answer(frame)
    answers.write(len(answer).to_bytes(4))
    answers.write(answer)
    answers.flush()


class Worker:
    """The databases that are open here, and what can be done with one."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Opened] = OrderedDict()

    def answer(self, frame: bytes) -> bytes:
        """Carry out one request. Never raises: whatever happens is an answer."""
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
        opened.begin()
        try:
            return operations.carry_out(opened, request)
        except apsw.Error as error:
            refusal = operations.explain(error, opened)
            if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.IOError | apsw.NoMemError):
                self._close(request.path)  # what it has in memory is not to be trusted
            raise refusal from error
        except OverflowError as error:
            raise Refusal("invalid", "A whole number in it has more than 64 bits. Keep it as a text.") from error
        except UnicodeDecodeError as error:
            raise Refusal("invalid", "A text in it is not UTF-8. Keep such bytes in a BLOB.") from error

    def _opened(self, request: Request) -> Opened:
        key = bytes.fromhex(request.key)
        opened = self._open.get(request.path)
        is_gone = request.path and opened is not None and not opened.is_same_file()
        if opened is not None and (opened.key != key or is_gone):
            self._close(request.path)
            opened = None
        if opened is None:
            opened = Opened(request.path, key)
            if request.path:
                self._open[request.path] = opened
        if request.path:
            self._open.move_to_end(request.path)
        while len(self._open) > MOST_OPEN:
            self._close(next(iter(self._open)))
        return opened

    def _close(self, path: str) -> None:
        opened = self._open.pop(path, None)
        if opened is not None:
            opened.close()

    def let_go(self) -> None:
        """Do what can wait until an answer is sent."""
        for opened in self._open.values():
            opened.let_go()

    def shrink(self) -> None:
        """Empty SQLite's caches of pages."""
        for opened in self._open.values():
            for side in opened.sides:
                side.raw.pragma("shrink_memory")

    def close_all(self) -> None:
        for path in list(self._open):
            self._close(path)


def _joined(head: dict[str, Any], result: Any) -> bytes:
    """Write an answer. A result that is bytes is a file, which the server hands on as it is."""
    written = orjson.dumps(head)
    body = result if isinstance(result, bytes) else orjson.dumps(result)
    return b"".join((len(written).to_bytes(4), written, body))


if __name__ == "__main__":
    main()
