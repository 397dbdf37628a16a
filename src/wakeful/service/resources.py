"""Detects failures that come from a lack of file descriptors or other resources."""

from wakeful.agentdb.files.files import has_descriptor
from wakeful.domain.errors import Unavailable, WakefulError
from wakeful.domain.resources import find_shortage, lacking


def find_shortages() -> list[str]:
    """Return the resources that this process has run out of, as a list of problems."""
    return [] if has_descriptor() else ["the server has no file descriptors left"]


def shortage(error: Exception) -> Unavailable | None:
    """Return the resource that has run out, if an error comes from that.

    Libraries may hide it: without a file descriptor, a host name lookup fails as "not known". So we try to open one.
    """
    found = find_shortage(error)
    if found is None and not isinstance(error, WakefulError) and not has_descriptor():
        return lacking("file descriptors")
    return found
