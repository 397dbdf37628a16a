"""Read sessions, their agents and their messages for the user they belong to."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from wakeful.core.types import Agent, Message
from wakeful.store.store import Store, Tx

_PAGE = 1_000

T = TypeVar("T")


async def read_own(store: Store, session_id: str, user_id: str, read: Callable[[Tx], Coroutine[Any, Any, T]]) -> T:
    """Read something of a session, or raise if the user has no such session."""

    async def work(tx: Tx) -> T:
        await tx.sessions.get(session_id, user_id)
        return await read(tx)

    return await store.read(work)


async def agent_of(tx: Tx, session_id: str, user_id: str) -> Agent:
    """Return the agent of a session, or raise if the session or the agent was deleted."""
    session = await tx.sessions.get(session_id, user_id)
    return await tx.agents.get(session.agent_id, user_id)


async def all_messages(tx: Tx, session_id: str) -> list[Message]:
    """Return the whole transcript of a session."""
    found: list[Message] = []
    while True:
        page = await tx.sessions.messages(session_id, found[-1].position if found else 0, _PAGE)
        found += page
        if len(page) < _PAGE:
            return found
