"""Named queries: one SQL text for two databases, or for PostgreSQL alone in a file `NAME.postgres.sql`.

A query begins with `-- name: …`. Parameters are written `:name`.

- Text in `/*postgres … */` is for PostgreSQL only, so that a clause that SQLite does not have (`FOR UPDATE SKIP
  LOCKED`) needs no second copy of a query. `/*sqlite … */` is the opposite.
- `rows(TABLE) AS n` stands for the rows that a caller passes, with the columns of that table. SQLite runs the statement
  once for each of them; PostgreSQL, where every statement is a round trip, gets them all at once. So only PostgreSQL
  needs `RETURNING` for the ids that were written; SQLite counts changes after each, which is half the work.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

_OTHER = {"sqlite": ".postgres.sql", "postgres": ".sqlite.sql"}
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_COMMENT = re.compile(r"--[^\n]*")
_POSTGRES_ONLY = re.compile(r"/\*postgres(.*?)\*/", re.DOTALL)
_SQLITE_ONLY = re.compile(r"/\*sqlite(.*?)\*/", re.DOTALL)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_ROWS = re.compile(r"\bFROM rows\((?P<table>\w+)\) AS (?P<alias>\w+)(?P<join>\s+JOIN\b)?")
_ROWS_AS_THEY_ARE = re.compile(
    r"\bSELECT(?P<values>\s+(?P<alias>\w+)\.\w+(?:,\s+(?P=alias)\.\w+)*)\s+"
    r"FROM rows\(\w+\) AS (?P=alias)(?:\s+WHERE TRUE\b|(?!\s+(?:WHERE|JOIN)\b))"
)


@dataclass(frozen=True, slots=True)
class Query:
    """A query with numbered parameters, and the names that go into them: those of one row, if it takes rows."""

    sql: str
    names: tuple[str, ...]

    def in_order(self, params: Mapping[str, Any]) -> list[Any]:
        """Return the parameters as they are numbered."""
        return [params[name] for name in self.names]


def row_of(name: str, params: Mapping[str, Any]) -> list[Any]:
    """Return one row of those that a query takes, which are the same for both databases."""
    return for_sqlite()[name].in_order(params)


@cache
def for_sqlite() -> Mapping[str, Query]:
    """Return every query as SQLite reads it. One that takes rows has the columns of one of them as its parameters."""
    texts = {name: _SQLITE_ONLY.sub(r"\1", _POSTGRES_ONLY.sub("", text)) for name, text in _texts("sqlite").items()}
    return {name: _number(_one_row(text), "?") for name, text in texts.items()}


@cache
def for_postgres() -> Mapping[str, Query]:
    """Return every query as PostgreSQL reads it. One that takes rows has one parameter, their JSON."""
    texts = {name: _POSTGRES_ONLY.sub(r"\1", _SQLITE_ONLY.sub("", text)) for name, text in _texts("postgres").items()}
    return {name: _for_postgres(text) for name, text in texts.items()}


def _one_row(text: str) -> str:
    """Put the parameters of one row where the rows stand."""
    found = _ROWS_AS_THEY_ARE.search(text)
    if found is not None:  # a SELECT would copy each column once more
        text = text.replace(found[0], f"VALUES ({found['values']})")
        return re.sub(rf"\b{found['alias']}\.(\w+)", r":\1", text)
    found = _ROWS.search(text)
    if found is None:
        return text
    if found["join"]:
        chosen = ", ".join(f":{column} AS {column}" for column in _columns_of(found["alias"], text))
        return text.replace(found[0], f"FROM (SELECT {chosen}) AS {found['alias']}{found['join']}")
    return re.sub(rf"\b{found['alias']}\.(\w+)", r":\1", text.replace(found[0], ""))


def _columns_of(alias: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.findall(rf"\b{alias}\.(\w+)", text)))


def _for_postgres(text: str) -> Query:
    found = _ROWS.search(text)
    if found is None:
        return _number(text, "$")
    rows = f"FROM json_populate_recordset(CAST(NULL AS {found['table']}), CAST($1 AS json)) AS {found['alias']}"
    return Query(text.replace(found[0], rows + (found["join"] or "")), _columns_of(found["alias"], text))


def _number(text: str, sign: str) -> Query:
    names: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        name = match[1]
        if name not in names:
            names.append(name)
        return f"{sign}{names.index(name) + 1}"

    return Query(_PARAMETER.sub(numbered, text), tuple(names))


def _texts(dialect: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(resources.files("wakeful.store").joinpath("sql").iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql") or file.name.endswith(_OTHER[dialect]):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[::2], parts[1::2], strict=True):
            if name in found:
                raise ValueError(f"Query {name!r} stands twice in sql/.")
            found[name] = _COMMENT.sub("", body).strip().rstrip(";")
    return found
