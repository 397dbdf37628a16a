"""Conditions as JSON, turned into SQL with parameters."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from wakeful.agentdb.database import quoted
from wakeful.agentdb.errors import Refusal
from wakeful.agentdb.history.changelog import from_json

_COMPARE = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "like": "LIKE"}
OPERATORS = (*_COMPARE, "ne", "in", "not_in", "between", "is_null")
MAX_LISTED = 500


def to_sql(where: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Return SQL for a condition, and its values. An empty one is refused: it would match every row."""
    if not where:
        raise Refusal(
            "invalid",
            '\'where\' must say which rows, for example {"id": 3} or {"done": false}; for every row on purpose use '
            '{"_created_at": {"is_null": false}}.',
            field="where",
        )
    parts: list[str] = []
    values: list[Any] = []
    for column, wanted in where.items():
        need_column(column, columns, field="where")
        for part, bound in _conditions(column, wanted):
            parts.append(part)
            values += bound
    return " AND ".join(parts), values


def all_to_sql(conditions: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> tuple[str, list[Any]]:
    """Return SQL that is true where all of the conditions are, also without any, and its values."""
    written = [to_sql(each, columns) for each in conditions]
    sql = " AND ".join(sql for sql, _ in written)
    return sql or "true", [value for _, values in written for value in values]


def need_column(name: str, columns: Sequence[str], *, field: str) -> None:
    """Refuse the name of a column that does not exist."""
    if name in columns:
        return
    nearest = get_close_matches(name, columns, n=1)
    hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
    raise Refusal("invalid", f"There is no column {name!r}.{hint} There are: {', '.join(columns)}.", field=field)


def _conditions(column: str, wanted: Any) -> list[tuple[str, list[Any]]]:
    name = quoted(column)
    if isinstance(wanted, list):
        return [_listed(name, cast("list[Any]", wanted), "IN")]
    if not isinstance(wanted, dict):
        return [(f"{name} IS NULL", [])] if wanted is None else [(f"{name} = ?", [from_json(wanted)])]
    if not wanted:
        raise Refusal("invalid", f"{column!r} in 'where' must have one of: {', '.join(OPERATORS)}.", field="where")
    operators = cast("dict[str, Any]", wanted)
    return [_compare(column, name, operator, value) for operator, value in operators.items()]


def _compare(column: str, name: str, operator: str, value: Any) -> tuple[str, list[Any]]:
    if operator in _COMPARE:
        if value is None:
            raise Refusal("invalid", f"{operator!r} on {column!r} needs a value; for NULL use is_null.", field="where")
        return f"{name} {_COMPARE[operator]} ?", [from_json(value)]
    match operator, value:
        case "ne", _:
            return f"{name} IS NOT ?", [from_json(value)]
        case "in" | "not_in", [*values]:
            return _listed(name, values, "IN" if operator == "in" else "NOT IN")
        case "between", [low, high]:
            return f"{name} BETWEEN ? AND ?", [from_json(low), from_json(high)]
        case "is_null", bool():
            return f"{name} IS {'' if value else 'NOT '}NULL", []
        case _:
            raise Refusal(
                "invalid",
                f"{operator!r} on {column!r} cannot be used like that. There are: {', '.join(OPERATORS)}; in and "
                "not_in take a list, between a list of two, is_null true or false.",
                field="where",
            )


def _listed(name: str, values: list[Any], word: str) -> tuple[str, list[Any]]:
    if not 1 <= len(values) <= MAX_LISTED:
        raise Refusal("invalid", f"A list must have 1 to {MAX_LISTED} values, got {len(values)}.", field="where")
    return f"{name} {word} ({', '.join('?' * len(values))})", [from_json(value) for value in values]
