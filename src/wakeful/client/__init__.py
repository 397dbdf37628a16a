"""A client for Python programs."""

from wakeful.client.clients import AsyncReply, AsyncWakeful, Reply, Wakeful
from wakeful.client.connection import (
    Agent,
    Answer,
    Decision,
    NotFound,
    NotReached,
    NotSignedIn,
    Refused,
    RunFailed,
    ServerFailed,
    Wake,
    WakefulClientError,
)

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
