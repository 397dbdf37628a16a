"""Empties the search index, so that it is built as after an upgrade."""

from wakeful.app.building import Wakeful
from wakeful.store.copying import INDEX_LATER


async def forget_index(node: Wakeful) -> None:
    """Leave the index as a store has it that was copied without one."""
    await node.store.database.run_script(f"DELETE FROM search_texts; {INDEX_LATER}")
