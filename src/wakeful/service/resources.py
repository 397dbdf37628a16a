"""Whether a failure comes from a lack of file descriptors or the like, and not from what was asked for."""

from wakeful.agentdb.files.files import has_descriptor
from wakeful.domain.errors import Unavailable, WakefulError
from wakeful.domain.resources import find_shortage, lacking


def find_shortages() -> list[str]:
    """Return what this process has run out of just now, as a list of problems."""
    return [] if has_descriptor() else ["the server has no file descriptors left"]


def shortage(error: Exception) -> Unavailable | None:
    """Return what has run out, if an error comes from that.

    Libraries do not always say it: a name that cannot be looked up for want of a descriptor is "not known" to them. So
    it is tried whether there is one.
    """
    found = find_shortage(error)
    if found is None and not isinstance(error, WakefulError) and not has_descriptor():
        return lacking("file descriptors")
    return found
