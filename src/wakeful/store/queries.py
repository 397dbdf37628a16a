"""Named queries: one SQL text for two databases.

A query begins with `-- name: …`. Parameters are written `:name`.

- What stands in `/*postgres … */` is read by PostgreSQL only, so the one clause SQLite does not know (`FOR UPDATE
  SKIP LOCKED`) needs no second copy of a query.
- `rows(TABLE) AS n` stands for the rows a caller hands in, with the columns of that table. SQLite runs the statement
  once for each of them; PostgreSQL, where every statement is a journey, gets them all at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_POSTGRES_ONLY = re.compile(r"/\*postgres(.*?)\*/", re.DOTALL)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_ROWS = re.compile(r"\bFROM rows\((?P<table>\w+)\) AS (?P<alias>\w+)(?P<join>\s+JOIN\b)?")


@dataclass(frozen=True, slots=True)
class PostgresQuery:
    """A query with numbered parameters, and the names that go into them."""

    sql: str
    names: tuple[str, ...]
    columns: tuple[str, ...] = ()  # of the rows handed in, if it takes any; its one parameter is then their JSON


@cache
def for_sqlite() -> Mapping[str, str]:
    """Return every query as SQLite reads it."""
    return {name: _one_row(_POSTGRES_ONLY.sub("", text)) for name, text in _texts().items()}


@cache
def for_postgres() -> Mapping[str, PostgresQuery]:
    """Return every query as PostgreSQL reads it."""
    return {name: _number(_POSTGRES_ONLY.sub(r"\1", text)) for name, text in _texts().items()}


def _one_row(text: str) -> str:
    """Put the parameters of one row where the rows stand."""
    found = _ROWS.search(text)
    if found is None:
        return text
    if found["join"]:
        chosen = ", ".join(f":{column} AS {column}" for column in _columns_of(found["alias"], text))
        return text.replace(found[0], f"FROM (SELECT {chosen}) AS {found['alias']}{found['join']}")
    return re.sub(rf"\b{found['alias']}\.(\w+)", r":\1", text.replace(found[0], ""))


def _columns_of(alias: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(rf"\b{alias}\.(\w+)", text)))


def _number(text: str) -> PostgresQuery:
    found = _ROWS.search(text)
    if found is not None:
        rows = f"FROM json_populate_recordset(CAST(NULL AS {found['table']}), CAST($1 AS json)) AS {found['alias']}"
        sql = text.replace(found[0], rows + (found["join"] or ""))
        return PostgresQuery(sql, (), _columns_of(found["alias"], text))
    names: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return PostgresQuery(_PARAMETER.sub(numbered, text), tuple(names))


def _texts() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(resources.files("wakeful.store").joinpath("sql").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"Query {name!r} stands twice in sql/.")
            found[name] = _COMMENT.sub("", body).strip().rstrip(";")
    return found
