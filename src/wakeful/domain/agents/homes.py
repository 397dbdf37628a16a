"""Homes: on a shared store, an agent's database and files are in PostgreSQL, and each node's disk is a cache."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Literal

from wakeful.domain.errors import Unavailable

SAVE_ID = 16  # characters of the id of a change
WARM = timedelta(milliseconds=200)  # time that the node with the cache has to claim a run before any other may


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """An agent's home, without its pages and files."""

    agent_id: str
    holder: str | None  # the node that took it last
    fence: int  # goes up each time another node takes it
    busy_until: datetime | None  # other nodes wait until then, or until it is saved
    seq: int  # goes up with every change
    page_count: int  # of the database; 0: there is none
    pages_seq: int  # `seq` of the last change of the database
    snapshots_seq: int  # and of its snapshots
    files_seq: int  # and of the other files
    database_key: str | None  # the key file of the database
    files_key: str | None  # encrypted
    last_save: str | None  # id of the last change, by which a node knows its own
    saves: str = ""  # the last changes, the newest first: `seq:id seq:id …`, perhaps cut off in the middle of one


def new_save_id() -> str:
    """Return an id for a change, which never comes twice."""
    return token_hex(SAVE_ID // 2)


def follows(home: Home | None, before: Home | None) -> Literal["yes", "no", "unknown"]:
    """Return whether a home, as PostgreSQL has it now, goes on from what this node has read before.

    It does not if PostgreSQL was taken back meanwhile: a standby that lacked the last changes was promoted, or a backup
    was put in place. Numbers of changes come again then, but not their ids. Unknown: too many changes were made since.
    """
    if before is None or before.seq == 0:
        return "yes"
    if home is None or home.seq < before.seq:
        return "no"
    known = dict(each.split(":") for each in home.saves.split() if len(each.partition(":")[2]) == SAVE_ID)
    known[str(home.seq)] = home.last_save or ""
    found = known.get(str(before.seq))
    return "unknown" if found is None else "yes" if found == (before.last_save or "") else "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFile:
    """A file, link or empty folder of a home."""

    path: str  # below the agent's folder, with slashes
    kind: str  # file, link or folder
    mode: int
    size: int
    digest: str | None  # keyed hash of the content; None: a folder


class HomeTaken(Unavailable):
    """Another node goes on with the run, so this one must not write for it any more."""

    code = "home_taken"

    def __init__(self, agent_id: str) -> None:
        super().__init__(
            f"Another node has taken over the database and files of agent {agent_id!r}. Nothing was changed. Try again."
        )
