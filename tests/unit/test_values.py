"""Copies of frozen values."""

import dataclasses
from dataclasses import FrozenInstanceError, dataclass

import pytest

from wakeful.domain.values import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: int = 0


def test_it_does_what_dataclasses_replace_does():
    point = Point(x=1, y=2)
    assert replace(point, y=3) == dataclasses.replace(point, y=3) == Point(x=1, y=3)
    assert point == Point(x=1, y=2)


def test_the_copy_is_frozen_too():
    with pytest.raises(FrozenInstanceError):
        replace(Point(x=1), y=3).x = 5


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(AttributeError):
        replace(Point(x=1), z=3)
