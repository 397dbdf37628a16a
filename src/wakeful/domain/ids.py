"""Identities. A run's is made from its wake and planned instant, so the same occurrence can never become two."""

from datetime import datetime
from uuid import UUID, uuid4, uuid5

_RUNS = UUID("6f0d8a52-6f4e-5d6e-9a53-0c9b6d3f5a11")


def new_id() -> str:
    """Make a random identity."""
    return str(uuid4())


def run_id(wake_id: str, nominal_at: datetime) -> str:
    """Name the run of one occurrence; the same wake and instant always give the same name."""
    return str(uuid5(_RUNS, f"{wake_id}@{nominal_at.isoformat()}"))


def session_id_of(run: str) -> str:
    """Name the fresh session of a run that gets one."""
    return str(uuid5(_RUNS, f"session of {run}"))
