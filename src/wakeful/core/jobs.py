"""Periodic work: each feature contributes its jobs, and the engine of a node runs them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that a node repeats while it runs. A failure is logged, and the next turn tries again."""

    name: str
    every: timedelta
    run: Callable[[], Awaitable[object]]
    is_at_once: bool = False  # also when the node starts
