"""Bodies and shapes that are made from the dataclasses of the domain."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

import pytest
from pydantic import ValidationError

from wakeful.core.values import Param
from wakeful.http.shapes import body_of, shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class TeaRequest:
    kind: Literal["green", "black"]
    cups: Annotated[int | None, Param("How many.", ge=1, le=9)] = None
    note: Annotated[str, Param(max_length=5)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tea:
    name: str
    steeps: timedelta | None
    shelf: str


NewTea = body_of(TeaRequest)


def test_a_body_becomes_the_request_with_what_was_sent():
    assert NewTea.model_validate({"kind": "green"}).to_request(TeaRequest) == TeaRequest(kind="green")
    sent = {"kind": "black", "cups": 2, "note": "hot"}
    assert NewTea.model_validate(sent).to_request(TeaRequest) == TeaRequest(**sent)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({}, id="a required field is missing"),
        pytest.param({"kind": "white"}, id="not one of the choices"),
        pytest.param({"kind": "green", "cups": 10}, id="above the limit"),
        pytest.param({"kind": "green", "cups": "2"}, id="a number as text"),
        pytest.param({"kind": "green", "note": "much too long"}, id="too long"),
        pytest.param({"kind": "green", "note": "\x00"}, id="NUL"),
        pytest.param({"kind": "green", "milk": True}, id="an unknown field"),
    ],
)
def test_a_body_has_the_limits_of_its_request(wrong):
    with pytest.raises(ValidationError):
        NewTea.model_validate(wrong)


def test_a_change_may_leave_out_every_field_and_null_counts_only_where_it_means_something():
    change = body_of(TeaRequest, without=("kind",), is_change=True)
    assert change.model_validate({}).to_changes() == {}
    sent = change.model_validate({"cups": None, "note": None})
    assert sent.to_changes(nullable={"cups"}) == {"cups": None}
    with pytest.raises(ValidationError):
        change.model_validate({"kind": "green"})


def test_a_shape_shows_lengths_of_time_as_seconds_and_leaves_out_what_is_not_to_be_seen():
    shape = shape_of(Tea, without=("shelf",), steeps="steeps_seconds")
    shown = shape.model_validate(Tea(name="Assam", steeps=timedelta(minutes=3), shelf="top"))
    assert shown.model_dump() == {"name": "Assam", "steeps_seconds": 180}
    unknown = shape.from_fields(Tea(name="Assam", steeps=None, shelf="top"), name="Darjeeling")
    assert unknown.model_dump() == {"name": "Darjeeling", "steeps_seconds": None}


def test_a_partial_shape_has_only_what_was_given():
    shape = shape_of(Tea, is_partial=True)
    assert shape.model_validate({"name": "Assam"}).model_dump(exclude_unset=True) == {"name": "Assam"}
