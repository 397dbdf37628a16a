"""Fixtures of all tests, and the two suites."""

import gc
import itertools
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

pytest_plugins = [f"fixtures.{name}" for name in ("stores", "server", "browser", "crash", "security", "upgrade")]

MEMORY = Path("/dev/shm")
# Servers that are killed, browsers, upgrades of whole stores: only in `make test-all`.
WHOLE_PROGRAMS = {"browser", "crash", "image", "upgrade", "whole"}


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is room: on a disk, every commit waits for it."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 * 1024**3:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--suite",
        choices=("all", "quick", "rest"),
        default="all",
        help="quick: what `make test` runs, each rule once; rest: whole programs, and repeats on a second store",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other suite, and start with the slowest files."""
    suite = config.getoption("--suite")
    if suite != "all":
        rest = _rest(items)
        items[:], left_out = (
            [item for item in items if (item in rest) == is_rest] for is_rest in (suite == "rest", suite != "rest")
        )
        config.hook.pytest_deselected(items=left_out)
    _begin_with_the_longest(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude modules and 10,000 tests from garbage collections, which take less than half the time then."""
    gc.collect()
    gc.freeze()


def _rest(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests of whole programs, and those that repeat on PostgreSQL what they show on SQLite."""
    on_sqlite = {item.nodeid for item in items if "sqlite" in item.name}

    def is_of_the_rest(item: pytest.Item) -> bool:
        marks = _marks_of(item)
        is_repeat = "postgres" in item.name and item.nodeid.replace("postgres", "sqlite") in on_sqlite
        return bool(marks & WHOLE_PROGRAMS) or (is_repeat and "both_stores" not in marks)

    return {item for item in items if is_of_the_rest(item)}


def _begin_with_the_longest(items: list[pytest.Item]) -> None:
    """Start with the slowest files, alternating those that keep a browser busy with those that wait for processes."""
    files = {item.path: _marks_of(item) for item in items}
    busy, waiting = ([file for file, marks in files.items() if name in marks] for name in ("browser", "crash"))
    first = [file for pair in itertools.zip_longest(busy, waiting) for file in pair if file is not None]
    order = {file: number for number, file in enumerate(dict.fromkeys([*first, *files]))}
    items.sort(key=lambda item: order[item.path])


def _marks_of(item: pytest.Item) -> set[str]:
    return {mark.name for mark in item.iter_markers()}


@pytest.fixture
def late_exit_status(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Delay the thread in which asyncio reads the exit status of a child; returns the children it has read."""
    real, read = os.waitpid, list[int]()

    def waitpid(pid: int, options: int) -> tuple[int, int]:
        if "waitpid" in threading.current_thread().name:
            read.append(pid)
            time.sleep(0.3)
        return real(pid, options)

    monkeypatch.setattr(os, "waitpid", waitpid)
    return read
