"""Detects failures that come from a lack of file descriptors or other resources."""

import os
from pathlib import Path

from wakeful.agentdb.files.files import has_descriptor
from wakeful.domain.errors import Unavailable, WakefulError
from wakeful.domain.resources import find_shortage, lacking

MIN_FREE = 100 * 10**6  # bytes; below it, the store may not be able to save the next hours
_MIN_SHARE = 0.05  # a small disk is not nearly full before


def find_shortages() -> list[str]:
    """Return the resources that this process has run out of, as a list of problems."""
    return [] if has_descriptor() else ["the server has no file descriptors left"]


def find_disk_shortage(folder: Path) -> str | None:
    """Return what a folder's disk is short of, in words for people."""
    disk = os.statvfs(folder)
    free, share = disk.f_bavail * disk.f_frsize, disk.f_bavail / max(disk.f_blocks, 1)
    if free < MIN_FREE and share < _MIN_SHARE:
        return f"{free / 10**6:.1f} MB free ({share:.0%})"
    if disk.f_files and disk.f_favail == 0:  # some file systems have no fixed number of them
        return "no inodes left, so no file can be created"
    return None


def shortage(error: Exception) -> Unavailable | None:
    """Return the resource that has run out, if an error comes from that.

    Libraries may hide it: without a file descriptor, a host name lookup fails as "not known". So we try to open one.
    """
    found = find_shortage(error)
    if found is None and not isinstance(error, WakefulError) and not has_descriptor():
        return lacking("file descriptors")
    return found
