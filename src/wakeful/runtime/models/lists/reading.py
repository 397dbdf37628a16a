"""Read values from a provider's JSON, of which any part may be missing or of another type."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

MAX_TEXT = 200  # characters of an id or a label


def objects(value: Any, name: str) -> list[Mapping[str, Any]] | None:
    """Return the objects in a list field; None if there is no such list."""
    listed: Any = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    if not isinstance(listed, list):
        return None
    return [cast("Mapping[str, Any]", each) for each in cast("list[Any]", listed) if isinstance(each, Mapping)]


def as_object(value: Any) -> Mapping[str, Any]:
    """Return a JSON object; an empty one if it is something else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def inner(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return as_object(value.get(name))


def text(value: Any) -> str | None:
    """Return a printable text without blanks around it, if it is one of a reasonable length."""
    if not isinstance(value, str):
        return None
    plain = value.strip()
    return plain if plain and len(plain) <= MAX_TEXT and plain.isprintable() else None


def number(*values: Any) -> int | None:
    """Return the first of these that is a positive whole number."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def price(value: Any) -> float | None:
    """Return dollars per million tokens, from dollars per token in a text."""
    try:
        per_token = float(value)
    except (TypeError, ValueError):
        return None
    return round(per_token * 1_000_000, 6) if 0 <= per_token < 1 else None


def flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def has(value: Any, word: str) -> bool | None:
    """Return whether a list contains a word; None if it is not a list."""
    return word in cast("Iterable[Any]", value) if isinstance(value, list) else None
