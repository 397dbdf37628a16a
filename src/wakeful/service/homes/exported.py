"""Tables of a database that is not used any more, written into the agent's workspace for people and the agent."""

from collections.abc import Mapping
from pathlib import Path


def write_tables(folder: Path, tables: Mapping[str, bytes]) -> None:
    """Write each table as a CSV file."""
    folder.mkdir(parents=True, mode=0o700)
    for table, content in tables.items():
        (folder / f"{table.replace('/', '_')}.csv").write_bytes(content)
