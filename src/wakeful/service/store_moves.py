"""Keeps servers from a PostgreSQL store that `wakeful move` has not finished, or has undone."""

from wakeful.domain.errors import Unavailable
from wakeful.store.store import Store, Tx

_WORDS = {
    "unfinished": "A move of an embedded store to this PostgreSQL database was begun and is not finished. Nothing was "
    "changed. Go on with `wakeful move` where it was begun, or undo it there with `wakeful move --undo`.",
    "undone": "This PostgreSQL database is a copy of an embedded store that is in use again: the move was undone, and "
    "here the same wakes would fire a second time. Nothing was changed. Unset WAKEFUL_DATABASE_URL (database_url), or "
    "use another database.",
}


class StoreMoving(Unavailable):
    code = "store_moving"


async def check_moves(store: Store) -> None:
    """Raise if this store is not a whole copy, or not the one in use."""
    if store.is_shared:
        await store.read(refuse_moving)


async def refuse_moving(tx: Tx) -> None:
    """Raise as part of a transaction."""
    found = await tx.moves.find_blocking()
    if found is not None:
        raise StoreMoving(_WORDS[found])
