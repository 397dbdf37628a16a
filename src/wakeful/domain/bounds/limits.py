"""Numbers that the scheduling rules use; some come from the settings."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Time limits and counts for firing, retrying and giving up."""

    grace: timedelta = timedelta(minutes=5)  # a wake less late than this simply runs
    defer_by: timedelta = timedelta(seconds=60)
    max_deferrals: int = 10
    max_catchup: int = 10  # missed runs that are caught up on
    runs_per_hour: int = 60  # the runaway brake on an agent's own bookings
    runs_per_token: int = 60  # in an hour, booked or started by one token of a program, or by one hook
    min_every: timedelta = timedelta(seconds=10)
    max_attempts: int = 3
    outage_hold: timedelta = timedelta(hours=1)  # how long a once-wake is tried again while its model does not answer
    max_outage_pause: timedelta = timedelta(minutes=10)  # between two of these tries
    max_lost_starts: int = 50  # crashes before a run reached a model or tool call
    resume_chat_within: timedelta = timedelta(minutes=10)
    shed_after: timedelta = timedelta(seconds=60)  # how long a low-priority run waits for a slot
    talking_within: timedelta = timedelta(minutes=2)
    hold_for: timedelta = timedelta(seconds=1)  # between a run and the next queued wake, for a person's message
    hold_at_most: timedelta = timedelta(minutes=10)  # how long a queued wake waits for a person who keeps writing
    failures_before_backoff: int = 5
    max_backoff: timedelta = timedelta(days=1)
