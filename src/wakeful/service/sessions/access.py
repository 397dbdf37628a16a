"""Reads sessions and their agents for the user they belong to."""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from wakeful.domain.types import Agent
from wakeful.store.store import Store, Tx

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
