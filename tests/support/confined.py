"""Levels of confinement to run a test on, and processes of a confined program as seen from outside."""

from pathlib import Path

import pytest

from wakeful.core.labels import Confinement
from wakeful.sandbox.rules import try_level


def _level(name):
    problem = try_level(name)
    reason = f"{name} does not work on this machine: {problem}"
    return pytest.param(name, marks=pytest.mark.skipif(problem is not None, reason=reason))


LEVELS = [_level("landlock"), _level("bubblewrap")]
ALL_LEVELS = [pytest.param("none", id="unconfined"), *LEVELS]


def at_level(level):
    """Return a probe of a machine on which this is the level that works."""
    return lambda: Confinement(level=level, problems=() if level != "none" else ("landlock: not in this kernel",))


def processes_with_home(home: Path) -> list[int]:
    """Return the processes, except zombies, that were started with this HOME, whatever their pid in a namespace is."""
    wanted = f"HOME={home}".encode()
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and wanted in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue  # ended, or not ours
    return found
