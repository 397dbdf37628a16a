"""Immutable values, and fields that are declared once for REST and tools."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import KW_ONLY, MISSING, dataclass, fields
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(kind: type[T]) -> type[T]:
    """Make a dataclass for values that a busy engine creates by the tens of thousands a second.

    Fields are read-only, which only the type checker enforces: with `frozen=True`, creating one would take seven times
    as long.
    """
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(kind)


def replace(one: T, /, **changes: Any) -> T:
    """Copy a value with some fields changed: `dataclasses.replace`, at half the cost."""
    names, read = _access(type(one))
    return type(one)(**(dict(zip(names, read(one), strict=True)) | changes))


@cache
def _access(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(field.name for field in fields(kind))
    return names, attrgetter(*names)


# Fields of a request, declared once: the REST body and the tool's arguments are made from them.


MAX_TIME_TEXT = 200  # of a time, a time zone or a rule as text


@dataclass(frozen=True, slots=True)
class Param:
    """A note on a field's type: the description that a model reads, and the limits of the REST body."""

    description: str | None = None
    _: KW_ONLY
    max_length: int | None = None
    ge: int | None = None
    le: int | None = None

    @property
    def limits(self) -> dict[str, Any]:
        found = {"max_length": self.max_length, "ge": self.ge, "le": self.le}
        return {name: limit for name, limit in found.items() if limit is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """One field of a dataclass, for a door that makes its own model from it."""

    name: str
    type: Any  # without None
    is_nullable: bool
    is_required: bool
    default: Any
    param: Param


def fields_of(kind: type[Any], without: Collection[str] = ()) -> Iterator[DeclaredField]:
    """Yield the fields of a dataclass in their order."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if field.name in without:
            continue
        hint, param = hints[field.name], Param()
        if get_origin(hint) is Annotated:
            hint, param = get_args(hint)
        is_nullable = NoneType in get_args(hint)
        yield DeclaredField(
            name=field.name,
            type=next(each for each in get_args(hint) if each is not NoneType) if is_nullable else hint,
            is_nullable=is_nullable,
            is_required=field.default is MISSING,
            default=field.default,
            param=param,
        )
