"""Empties the search index, so that it is built as after an upgrade."""

from wakeful.app.building import Wakeful
from wakeful.store.migrate import load_migrations


async def forget_index(node: Wakeful) -> None:
    """Leave the index as its migration does."""
    database = node.store.database
    [migration] = [each for each in load_migrations(database.dialect) if each.name == "search"]
    begin = migration.script.rindex("INSERT INTO search_progress")
    await database.run_script(f"DELETE FROM search_texts; DELETE FROM search_progress; {migration.script[begin:]}")
