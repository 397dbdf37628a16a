"""Killed while a key is changed: the file has the old key or the new one, and all its rows."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wakeful.agentdb import file
from wakeful.store.drivers.sqlite import SqliteDatabase, change_key

pytestmark = pytest.mark.crash

OLD, NEW = bytes(range(32)), bytes(range(1, 33))
CUT_OFF = 6  # times that the kill must come before the end
MAX_KILLS = 60

AGENT = f"""
from pathlib import Path
from wakeful.agentdb.file import change_key
arguments = Path(sys.argv[1]), bytes.fromhex("{OLD.hex()}"), bytes.fromhex("{NEW.hex()}")
"""
STORE = AGENT.replace("wakeful.agentdb.file", "wakeful.store.drivers.sqlite")
CHANGE = """
print("go", flush=True)
change_key(*arguments)
print("done", flush=True)
"""


class AgentFile:
    """The database of an agent."""

    script = AGENT

    @staticmethod
    def make(path: Path) -> None:
        _fill(file.connect(str(path), OLD, may_make=True))

    @staticmethod
    def finish(path: Path) -> None:
        if not file.opens(path, NEW):
            file.change_key(path, OLD, NEW)

    @staticmethod
    def open(path: Path):
        return file.connect(str(path), NEW)


class StoreFile:
    """The server's own store."""

    script = STORE

    @staticmethod
    def make(path: Path) -> None:
        _fill(SqliteDatabase(path, OLD).connect())

    @staticmethod
    def finish(path: Path) -> None:
        change_key(path, OLD, NEW)

    @staticmethod
    def open(path: Path):
        return SqliteDatabase(path, NEW).connect()


def _fill(connection) -> None:
    connection.execute("CREATE TABLE t (x)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 3000,)] * 800)
    connection.execute("COMMIT")
    connection.close()


def begin(kind, path: Path):
    process = subprocess.Popen([sys.executable, "-c", f"import sys{kind.script}{CHANGE}", str(path)], stdout=-1)
    assert process.stdout.readline() == b"go\n"
    return process


@pytest.mark.parametrize("kind", [AgentFile, StoreFile])
def test_killed_at_any_moment_of_a_key_change_the_rows_are_there(kind, tmp_path):
    measured = tmp_path / "measured"
    kind.make(measured)
    process = begin(kind, measured)
    began = time.monotonic()
    assert process.stdout.readline() == b"done\n"
    seconds = time.monotonic() - began
    process.communicate()
    moments = random.Random(8)
    cut_off = number = 0
    while cut_off < CUT_OFF and number < MAX_KILLS:
        path = tmp_path / f"{number}.sqlite"
        kind.make(path)
        process = begin(kind, path)
        time.sleep(moments.uniform(0, seconds))
        process.kill()
        is_cut_off = process.communicate()[0] != b"done\n"
        cut_off += is_cut_off
        seconds *= 1.0 if is_cut_off else 0.8  # the machine may have been busier when the time was taken
        kind.finish(path)
        connection = kind.open(path)
        assert connection.execute("SELECT count(*), sum(length(x)) FROM t").fetchall() == [(800, 2_400_000)], number
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        assert [each.name for each in tmp_path.glob(f"{number}.sqlite?*")] == []  # no half-made copy is left
        path.unlink()
        number += 1
    assert cut_off == CUT_OFF
