"""Base classes and types of request and response bodies."""

import base64
import binascii
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from fastapi import Path, Query
from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    Strict,
    StringConstraints,
    computed_field,
    create_model,
    model_serializer,
)

from wakeful.core.errors import Invalid
from wakeful.core.frames import recall_status
from wakeful.core.labels import describe_door
from wakeful.core.outside import describe_sources
from wakeful.core.records import Stopped
from wakeful.core.texts import why_not_storable
from wakeful.core.types import Door, ScheduledBy, Wake
from wakeful.core.values import fields_of

T = TypeVar("T")

ID = r"^[A-Za-z0-9-]{1,64}$"

Id = Annotated[str, StringConstraints(pattern=ID)]
PathId = Annotated[str, Path(pattern=ID)]
# One line, not blank, without control characters, which one of the databases cannot store either.
LABEL = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=LABEL)]
Zone = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_+\-/]+$")]


def check_text(text: str) -> str:
    """Refuse what one of the databases cannot store: NUL, or a lone surrogate."""
    if (problem := why_not_storable(text)) is not None:
        raise ValueError(f"it has {problem} in it")
    return text


Text = Annotated[str, StringConstraints(max_length=100_000), AfterValidator(check_text)]

TimeField = Annotated[AwareDatetime, Strict(strict=False)]  # not strict: in JSON, times are text


class RequestBody(BaseModel):
    """The body of a request. Unknown fields are refused, not ignored; `true` and `"5"` are not numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)

    def to_request(self, request: type[T]) -> T:
        """Make a request (its dataclass) from the fields that were sent."""
        return request(**{name: getattr(self, name) for name in self.model_fields_set})

    def to_changes(self, nullable: Collection[str] = ()) -> dict[str, Any]:
        """Return the fields that were sent; null counts only where it means something."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        return {name: value for name, value in sent.items() if value is not None or name in nullable}


_annotated: Any = Annotated  # for types that are made at run time


def body_of(request: type[Any], *, without: Collection[str] = (), is_change: bool = False) -> type[RequestBody]:
    """Make a body from the fields of a request and their limits; in a change, each may be left out."""
    made: dict[str, Any] = {}
    for each in fields_of(request, without):
        kind: Any = Text if each.type is str else each.type
        if each.param.limits:
            kind = _annotated[kind, Field(**each.param.limits)]
        default = None if is_change else ... if each.is_required else each.default
        made[each.name] = (kind | None if is_change or each.is_nullable else kind, default)
    return create_model(request.__name__, __base__=RequestBody, **made)


def _to_seconds(value: object) -> object:
    return value // timedelta(seconds=1) if isinstance(value, timedelta) else value


Seconds = Annotated[int, BeforeValidator(_to_seconds)]
ToDollars = BeforeValidator(lambda micros: micros / 1_000_000)  # rules and tables count in millionths


class Shape(BaseModel):
    """The body of a response, made from an object with the same attributes."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def from_fields(cls, source: Any, **more: Any) -> Self:
        """Make a body from the fields of a dataclass and further values."""
        return cls.model_validate({each.name: getattr(source, each.name) for each in fields(source)} | more)


def shape_of(
    source: type[Any], *, without: Collection[str] = (), is_partial: bool = False, **names: str
) -> type[Shape]:
    """Make a response body with the fields of a dataclass; a partial one may leave out any of them.

    `names` are those that have another name in the API. Lengths of time are whole seconds there.
    """
    made: dict[str, Any] = {}
    for each in fields_of(source, without):
        name = names.get(each.name, each.name)
        kind: Any = Seconds if each.type is timedelta else each.type
        alias = None if name == each.name else AliasChoices(each.name, name)
        hint = kind | None if is_partial or each.is_nullable else kind
        made[name] = (hint, Field(None if is_partial else ..., validation_alias=alias))
    return create_model(source.__name__, __base__=Shape, **made)


class Sparse(Shape):
    """The body of a response that leaves out fields which are null."""

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler):  # a return type would hide the fields from the schema
        written: dict[str, Any] = write(self)
        return {name: value for name, value in written.items() if value is not None}


class CameIn(Shape):
    """The door that a wake or a run came through, the token or hook behind it, and the outside data."""

    door: Door | None = Field(
        description="How it was booked, or started; of the run of a wake, how the wake was booked. Null: before this "
        "was recorded, or by the server itself."
    )
    token_id: str | None = Field(description="The token or hook that booked or started it. Null: an agent's own.")
    token_name: str | None
    outside_sources: list[str] = Field(
        description="Where the data came from that a run has read and its user did not write: origins of web pages, "
        "`hook:NAME`, `mcp:SERVER`; the first 5, with those of its wake and its session. Of a wake: those of the run "
        "that booked it, or the hook that it belongs to."
    )

    @computed_field(description="The outside sources in words; null if there are none.")
    def has_read(self) -> str | None:
        return describe_sources(self.outside_sources) or None

    @computed_field(description="The door and the token in words; null for the page and for an agent's own bookings.")
    def through(self) -> str | None:
        return describe_door(self.door, self.token_name)


CAME_IN = frozenset(CameIn.model_fields)  # left out of the shape that it is mixed with


class Done(Shape):
    ok: bool = True


class Deleted(Done):
    wakes_left: int = Field(
        default=0, description="Wakes that are still to be cancelled, in the background. They do not fire."
    )


# Pages of lists: send `next` as `page` to get the next one.


Most = Annotated[int, Query(alias="limit", ge=1, le=200, description="How many at most.")]
Page = Annotated[str | None, Query(max_length=200, description="The `next` of the page before.")]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadPage(Invalid):
    code = "bad_page"

    def __init__(self, page: str) -> None:
        super().__init__(f"`page` must be the `next` of the previous page, got {page!r}.", field="page")


def read_page(page: str | None) -> tuple[datetime, str] | None:
    """Parse where a page begins: after this time and id."""
    if page is None:
        return None
    try:
        at, _, last_id = base64.urlsafe_b64decode(page.encode()).decode().partition(" ")
        if not at.isascii() or len(at) > 18 or "\x00" in last_id:
            raise BadPage(page)
        return _EPOCH + timedelta(microseconds=int(at)), last_id
    except (binascii.Error, ValueError, OverflowError):
        raise BadPage(page) from None


def next_page(found: Sequence[T], most: int, place_of: Callable[[T], tuple[datetime, str]]) -> str | None:
    """Return where the next page begins, after the time and id of the last entry; None if there is none."""
    if len(found) < most:
        return None
    at, last_id = place_of(found[-1])
    micros = (at - _EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(f"{micros} {last_id}".encode()).decode()


# The scheduler's own fields of a wake; every other one is shown.
INTERNAL = frozenset({"user_id", "slot", "wall_clock", "first_due_at", "is_missed"}) | frozenset(
    {"ephemeral", "deferrals", "failures", "runs_started", "seen_at", "traceparent", "version"}
)
NOT_OF_RECALLS = frozenset(
    (
        "kind",
        "agent_id",
        "context_views",
        "session_config",
        "tools",
        "delivery_phase",
        "created_session_id",
        "muted",
        "ping_to",
    )
)


class BookingShape(Shape):
    """The time that was requested, and the one that was booked for it."""

    requested: str = Field(description="As it was written.")
    requested_at: AwareDatetime | None = Field(description="The instant that it means.")
    zone: str | None = Field(None, description="The zone in which it was read.")
    moved_by: list[str] = Field(description="Why another time was booked, in order.")
    final: AwareDatetime = Field(description="The booked time. A recurring wake has moved on since.")
    changed_by: ScheduledBy | None = Field(None, description="Who changed the time since it was booked; null: nobody.")


IsPaused = Annotated[bool, Field(description="Whether a pause holds it at its planned time.")]


class RecallShape(
    CameIn,
    shape_of(
        Wake,
        without=INTERNAL | NOT_OF_RECALLS | CAME_IN,
        every="interval_seconds",
        comment="internal_comment",
        instructions="additional_context_message",
    ),
):
    """A recall under the names of its door."""

    session_id: str
    trigger_at: AwareDatetime = Field(validation_alias="nominal_at")
    status: Annotated[str, BeforeValidator(recall_status)]
    booking: BookingShape | None
    is_paused: IsPaused


_HELD = "its node does not respond: it ends when that node is back, or when another takes over"


class StopAnswer(Sparse):
    """The run that was asked to stop, and its state then; or why there was none, or why it takes longer."""

    ok: bool
    run_id: str | None = None
    was: Literal["queued", "running"] | None = None
    reason: str | None = None

    @classmethod
    def of(cls, stopped: Stopped | None) -> Self:
        if stopped is None:
            return cls(ok=False, reason="no active run")
        reason = _HELD if stopped.is_delayed else None
        return cls(ok=True, run_id=stopped.run_id, was=stopped.was, reason=reason)
