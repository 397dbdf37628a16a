"""Types of columns in agents' databases."""

from collections.abc import Mapping
from typing import Literal

ColumnType = Literal["text", "integer", "real", "boolean", "date", "datetime", "json", "blob"]

# The type that SQLite stores each of them in.
STORAGE: Mapping[ColumnType, str] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "real": "REAL",
    "boolean": "INTEGER",
    "date": "TEXT",
    "datetime": "TEXT",
    "json": "TEXT",
    "blob": "BLOB",
}
