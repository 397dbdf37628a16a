"""Values and their copies."""

import dataclasses

import pytest

from wakeful.core.values import replace, value


@value
class Point:
    x: int
    y: int = 0


def test_it_does_what_dataclasses_replace_does():
    point = Point(x=1, y=2)
    assert replace(point, y=3) == dataclasses.replace(point, y=3) == Point(x=1, y=3)
    assert point == Point(x=1, y=2)


def test_equal_ones_count_as_one():
    assert len({Point(x=1), Point(x=1), Point(x=2)}) == 2


def test_a_field_that_is_not_there_is_refused():
    with pytest.raises(TypeError, match="z"):
        replace(Point(x=1), z=3)
    with pytest.raises(AttributeError):
        Point(x=1).z = 3
