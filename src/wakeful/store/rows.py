"""Named queries, and the mapping of rows to values and back.

A query is one SQL text for two databases, or for PostgreSQL alone in a file `NAME.postgres.sql`.
A query begins with `-- name: …`. Parameters are written `:name`.

- Text in `/*postgres … */` is for PostgreSQL only, so that a clause that SQLite does not have (`FOR UPDATE SKIP
  LOCKED`) needs no second copy of a query. `/*sqlite … */` is the opposite.
- `rows(TABLE) AS n` stands for the rows that a caller passes, with the columns of that table. SQLite runs the statement
  once for each of them; PostgreSQL, where every statement is a round trip, gets them all at once. So only PostgreSQL
  needs `RETURNING` for the ids that were written; SQLite counts changes after each, which is half the work.

A column has the name of its field, and the field's type decides the conversion.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, time, timedelta
from functools import cache
from importlib import resources
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import orjson

from wakeful.core.records import (
    Allowance,
    Approval,
    Hook,
    Model,
    ModelTest,
    Outgoing,
    ReceivedDelivery,
    Webhook,
)
from wakeful.core.search import Found
from wakeful.core.types import (
    Agent,
    Bounds,
    Budgets,
    Channel,
    ClaimedRun,
    Decision,
    Message,
    Notice,
    Pause,
    PushSubscription,
    Run,
    RunUsage,
    Session,
    Token,
    Upload,
    User,
    WaitingWork,
    Wake,
)
from wakeful.store.drivers.database import Params, Row

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


# Mapping of rows to values and back: a column has the name of its field, and its type decides the conversion.


T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_Convert = Callable[[Any], Any]


def to_micros(at: datetime) -> int:
    """Write an instant as whole microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Read an instant back."""
    return _EPOCH + timedelta(0, 0, value)


def _to_seconds(length: timedelta) -> int:
    return length // timedelta(seconds=1)


def _from_seconds(seconds: int) -> timedelta:
    return timedelta(0, seconds)


def _to_json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _bounds_from_text(text: str) -> Bounds:
    value: dict[str, Any] = orjson.loads(text)
    return Bounds(
        mode=value["mode"],
        max_horizon=_from_seconds(value["max_horizon_seconds"]),
        min_interval=_from_seconds(value["min_interval_seconds"]),
        daily_cap=value["daily_cap"],
        quiet_from=None if value["quiet_from"] is None else time.fromisoformat(value["quiet_from"]),
        quiet_to=None if value["quiet_to"] is None else time.fromisoformat(value["quiet_to"]),
        days=frozenset(value["days"]),
    )


def _bounds_to_text(bounds: Bounds) -> str:
    return _to_json(
        {
            "mode": bounds.mode,
            "max_horizon_seconds": _to_seconds(bounds.max_horizon),
            "min_interval_seconds": _to_seconds(bounds.min_interval),
            "daily_cap": bounds.daily_cap,
            "quiet_from": None if bounds.quiet_from is None else bounds.quiet_from.isoformat("minutes"),
            "quiet_to": None if bounds.quiet_to is None else bounds.quiet_to.isoformat("minutes"),
            "days": sorted(bounds.days),
        }
    )


def _budgets_from_text(text: str) -> Budgets:
    return Budgets(**orjson.loads(text))


_CONVERSIONS: Mapping[Any, tuple[_Convert, _Convert]] = {
    datetime: (from_micros, to_micros),
    timedelta: (_from_seconds, _to_seconds),
    bool: (bool, int),
    Bounds: (_bounds_from_text, _bounds_to_text),
    Budgets: (_budgets_from_text, _to_json),
    tuple[str, ...]: (lambda text: tuple(orjson.loads(text)), _to_json),
    Mapping[str, Any]: (orjson.loads, _to_json),
}


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    set_field: Callable[[Any, Any], None]
    decode: _Convert | None
    encode: _Convert | None


class Table(Generic[T]):
    """Mapping between a class of values and its table. `names` are the columns with another name than their field."""

    def __init__(self, kind: type[T], **names: str) -> None:
        hints = get_type_hints(kind)
        listed = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
        self._kind = kind
        self._columns = [_column(kind, name, names.get(name, name), hints[name]) for name in listed]
        self._reading = [(column.set_field, column.name, column.decode) for column in self._columns]
        self._writing = [(column.name, column.encode) for column in self._columns]
        self._values: Callable[[T], tuple[Any, ...]] = attrgetter(*listed)
        self._fields = dict(zip((column.name for column in self._columns), listed, strict=True))

    def read(self, row: Row) -> T:
        """Make a value of a row that has at least its columns."""
        value = object.__new__(self._kind)  # past __init__: thousands of these a second, and the row is whole
        for set_field, name, decode in self._reading:
            column = row[name]
            set_field(value, column if decode is None or column is None else decode(column))
        return value

    def read_all(self, rows: Iterable[Row]) -> list[T]:
        return [self.read(row) for row in rows]

    def read_first(self, rows: Sequence[Row]) -> T | None:
        """Return the value of the first row, if there is one."""
        return self.read(rows[0]) if rows else None

    def write(self, value: T) -> Params:
        """Make the parameters of a statement from a value."""
        return {
            name: each if encode is None or each is None else encode(each)
            for (name, encode), each in zip(self._writing, self._values(value), strict=True)
        }

    def rows_of(self, statement: str) -> Callable[[T], list[Any]]:
        """Return a function that makes a row for a statement that takes `rows(…)`: its parameters, in their order."""
        names = for_sqlite()[statement].names
        values_of: Callable[[T], tuple[Any, ...]] = attrgetter(*[self._fields[name] for name in names])
        written = dict(self._writing)
        encodings = [(place, encode) for place, name in enumerate(names) if (encode := written[name]) is not None]

        def write(value: T) -> list[Any]:
            row = list(values_of(value))
            for place, encode in encodings:
                if row[place] is not None:
                    row[place] = encode(row[place])
            return row

        return write


def _column(kind: type, field: str, name: str, hint: Any) -> _Column:
    plain = next((each for each in get_args(hint) if each is not NoneType), hint) if _is_optional(hint) else hint
    decode, encode = _CONVERSIONS.get(plain, (None, None))
    return _Column(name, getattr(kind, field).__set__, decode, encode)


def _is_optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


USERS = Table(User)
AGENTS = Table(Agent, run_limit="run_limit_seconds")
SESSIONS = Table(Session)
MESSAGES = Table(Message)
WAKES = Table(Wake, every="interval_seconds")
RUNS = Table(Run)
CLAIMED_RUNS = Table(ClaimedRun)
PAUSES = Table(Pause)
DECISIONS = Table(Decision)
NOTICES = Table(Notice)
CHANNELS = Table(Channel)
PUSH_SUBSCRIPTIONS = Table(PushSubscription)
TOKENS = Table(Token)
USAGE = Table(RunUsage)
WAITING_WORK = Table(WaitingWork)
UPLOADS = Table(Upload)
FOUND = Table(Found)
APPROVALS = Table(Approval)
ALLOWANCES = Table(Allowance)
MODELS = Table(Model, key="encrypted_key")
MODEL_TESTS = Table(ModelTest)
HOOKS = Table(Hook, secret="encrypted_secret", old_secret="encrypted_old_secret")
RECEIVED_DELIVERIES = Table(ReceivedDelivery)
WEBHOOKS = Table(Webhook, secret="encrypted_secret", old_secret="encrypted_old_secret")
OUTGOING = Table(Outgoing)


ADDED_WAKE = WAKES.rows_of("add_wakes")
MOVED_WAKE = WAKES.rows_of("move_wakes")
ADDED_RUN = RUNS.rows_of("add_runs")
RECORDED_CALL = RUNS.rows_of("record_calls")
ADDED_OUTGOING = OUTGOING.rows_of("add_outgoing")


def read_bounds(text: str) -> Bounds:
    """Read an agent's bounds from their column alone."""
    return _bounds_from_text(text)
