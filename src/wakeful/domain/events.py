"""What a run says while it works."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSaved:
    """A piece of the transcript that must survive a crash; it is durable before the executor goes on."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Something for those who watch."""

    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedEarly:
    """The run ends well, but for a reason worth noting, such as the iteration limit."""

    reason: str


RunEvent = StepSaved | Frame | EndedEarly
