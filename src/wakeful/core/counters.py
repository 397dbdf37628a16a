"""What features count of what they send; `operations/metrics.py` does the counting."""

from typing import Protocol


class SendCounters(Protocol):
    """Counts messages to something outside, and pings of the heartbeat address."""

    def count_outgoing(self, kind: str, outcome: str) -> None: ...
