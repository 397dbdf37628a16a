from collections.abc import Iterator
from pathlib import Path

import pytest

from databases import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database that does not exist yet."""
    database = Database(tmp_path / "db.sqlite")
    yield database
    database.close()


@pytest.fixture
def tasks(database: Database) -> Database:
    """A database with a table of three tasks."""
    return database.with_tasks(3)
