"""What features count of what they send; `operations/metrics.py` does the counting."""

from collections.abc import Sequence
from typing import Protocol


class Counted(Protocol):
    """The result of sending something."""

    @property
    def kind(self) -> str: ...
    @property
    def outcome(self) -> str: ...


class SendCounters(Protocol):
    """Counts pings, webhooks, and messages over channels and to browsers."""

    def count_outgoing(self, kind: str, outcome: str) -> None: ...

    def note_deliveries(self, deliveries: Sequence[Counted]) -> None: ...
