"""CPU time of PostgreSQL's processes."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def postgres_cpu(postmaster: int) -> float:
    """Return the CPU seconds of PostgreSQL, ended connections included."""
    own = _times(postmaster)
    return (sum(own) + sum(sum(_times(pid)[:2]) for pid in children_of(postmaster))) / _TICKS


def _times(pid: int) -> tuple[int, int, int, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12]), int(fields[13]), int(fields[14])


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
