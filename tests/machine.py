"""Limits for measured times on a machine that is busy with something else too."""

import os
from pathlib import Path

_LOAD = Path("/proc/loadavg")


def allowed(seconds: float) -> float:
    """Return a limit for a measured time: as given on an idle machine, longer where processes wait for a core.

    A test that ran next to fourteen busy processes on two cores would else fail without any fault of ours.
    """
    running = os.getloadavg()[0]
    if _LOAD.exists():  # the average is of the last minute, and what runs now may have just begun
        running = max(running, float(_LOAD.read_text().split()[3].partition("/")[0]))
    return seconds * max(1.0, running / (os.cpu_count() or 1))
