"""Types that several routes of an agent's database use."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal, cast

import orjson
from fastapi import Path
from pydantic import Field

from wakeful.domain.errors import Invalid, WakefulError
from wakeful.server.rest.shapes import Shape

MAX_ROWS = 5_000
MAX_IDS = 900

# A table's name can have any characters but control characters; a view's needs no quotes in SQL.
TableName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
PathTable = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
PathView = Annotated[str, Path(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$")]
Show = Literal["active", "deleted", "all"]
FileFormat = Literal["csv", "json", "jsonl"]
Limit = Annotated[int, Field(ge=1, le=MAX_ROWS)]
Json = Annotated[str, Field(max_length=4_000)]  # in a query string, which uvicorn limits to 64 kB


class Blob(Shape):
    base64: str


Cell = str | int | float | Blob | None


class Found(Shape):
    """Rows as lists, in the order of the columns; `truncated` if some were left out because of their number or size."""

    columns: list[str]
    rows: list[list[Cell]]
    row_count: int
    truncated: bool


class NotAnObject(Invalid):
    code = "not_an_object"

    def __init__(self, name: str, text: str) -> None:
        shown = text if len(text) <= 100 else text[:100] + "…"
        super().__init__(f'{name!r} must be a JSON object, such as {{"id": 3}}; got {shown!r}.', field=name)


def read_object(name: str, text: str | None) -> Mapping[str, Any] | None:
    """Parse a JSON object from a query string."""
    if text is None:
        return None
    return _need_object(name, _parse(name, text), text)


def _parse(name: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise NotAnObject(name, text) from None


def _need_object(name: str, value: Any, text: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise NotAnObject(name, text)
    return cast("dict[str, Any]", value)


def read_objects(name: str, text: str | None) -> list[Mapping[str, Any]]:
    """Parse a JSON object, or a list of them, from a query string. Empty ones are left out."""
    if text is None:
        return []
    value = _parse(name, text)
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_need_object(name, each, text) for each in values if each != {}]


@contextmanager
def renamed(**names: str) -> Generator[None]:
    """Give errors the field names of this route where the operation has other argument names."""
    try:
        yield
    except WakefulError as error:
        error.field = names.get(error.field or "", error.field)
        raise
