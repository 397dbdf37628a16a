"""Work on this node's disk while a transaction is open, whose errors must not be taken for those of PostgreSQL."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from wakeful.agentdb.errors import DatabaseUnavailable
from wakeful.domain.resources import find_shortage

P = ParamSpec("P")
T = TypeVar("T")


async def on_disk(act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function in a thread. Raises DiskFull or another error that says whose disk it is."""
    try:
        return await asyncio.to_thread(act, *args, **kwargs)
    except OSError as error:
        raise find_shortage(error) or DatabaseUnavailable(
            f"The disk of this node could not be read or written ({error.strerror}). Nothing was changed. Try again; "
            "if it happens again, the server's operator must look at it."
        ) from None
