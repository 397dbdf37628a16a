"""The result of a test request to a model."""

from dataclasses import dataclass
from typing import Literal

from wakeful.domain.models.models import ToolCalls

TrialOutcome = Literal["answered", "waiting", "failed", "timed_out"]
Problem = Literal[
    "address", "busy", "key", "model", "name", "not_a_model", "package", "quota", "refused", "timeout", "tls"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTrial:
    """A model's answer, or the provider's error. `waiting`: no answer yet; ask again for the result of this test."""

    model: str  # as written
    outcome: TrialOutcome
    seconds: float
    said: str | None = None
    reason: str | None = None  # why there is no answer, in words
    problem: Problem | None = None  # the kind of failure
    tool_calls: ToolCalls | None = None  # None: it did not get that far
    tools_note: str | None = None  # how it calls tools, in words
    is_loading: bool = False  # a local model that is still being loaded
    subject: str | None = None  # provider, model and address that were tested
    context_window: int | None = None
    output_limit: int | None = None
