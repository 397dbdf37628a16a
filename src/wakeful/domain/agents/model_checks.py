"""The result of a test request to a model."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrial:
    """A model's answer, or the provider's error."""

    model: str
    outcome: Literal["answered", "failed", "timed_out"]
    seconds: float
    said: str | None = None
    reason: str | None = None
