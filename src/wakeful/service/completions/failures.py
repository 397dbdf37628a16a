"""Errors for programs whose run ended without an answer."""

from wakeful.domain.completions.answer import RunFailure
from wakeful.domain.errors import Conflict, Invalid, Unavailable, WakefulError


class ContextTooLong(Invalid):
    code = "context_length_exceeded"


class RunEnded(Conflict):
    """A person ended the run, or deleted its session."""

    code = "run_ended"


class RunFailed(Unavailable):
    code = "run_failed"


_KINDS: dict[str, type[WakefulError]] = {
    "context_too_large": ContextTooLong,
    "stopped": RunEnded,
    "session_deleted": RunEnded,
}


def to_error(failure: RunFailure) -> WakefulError:
    """Return the error of a run. The request is not repeated by itself: the run may have done a part of its work."""
    return _KINDS.get(failure.code, RunFailed)(failure.message)
