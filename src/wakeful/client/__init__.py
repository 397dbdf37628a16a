"""A client for Python programs: `from wakeful.client import Wakeful`, or `AsyncWakeful`.

It imports nothing of the server.
"""

from wakeful.client.clients import AsyncReply, AsyncWakeful, Reply, Wakeful
from wakeful.client.errors import (
    NotFound,
    NotReached,
    NotSignedIn,
    Refused,
    RunFailed,
    ServerFailed,
    WakefulClientError,
)
from wakeful.client.values import Agent, Answer, Decision, Wake

__all__ = [
    "Agent",
    "Answer",
    "AsyncReply",
    "AsyncWakeful",
    "Decision",
    "NotFound",
    "NotReached",
    "NotSignedIn",
    "Refused",
    "Reply",
    "RunFailed",
    "ServerFailed",
    "Wake",
    "Wakeful",
    "WakefulClientError",
]
