"""Base classes and types of request and response bodies."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    Strict,
    StringConstraints,
    model_serializer,
)

ID = r"^[A-Za-z0-9-]{1,64}$"

Id = Annotated[str, StringConstraints(pattern=ID)]
PathId = Annotated[str, Path(pattern=ID)]
# One line that can be shown: no control characters, which one of the databases cannot keep either, and not only blanks.
LABEL = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=LABEL)]


Zone = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_+\-/]+$")]


def check_text(text: str) -> str:
    """Refuse what one of the databases cannot keep: NUL, or half of a character."""
    if "\x00" in text:
        raise ValueError("it has a NUL character in it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it has half of a character in it") from None
    return text


Text = Annotated[str, StringConstraints(max_length=100_000), AfterValidator(check_text)]

TimeField = Annotated[AwareDatetime, Strict(strict=False)]  # written as text, since JSON has no times


class RequestBody(BaseModel):
    """A body that someone sends. An unknown field is refused, not ignored; `true` and `"5"` are not numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shape(BaseModel):
    """A body that we answer with."""

    model_config = ConfigDict(from_attributes=True)


class Sparse(Shape):
    """A body in which a field with nothing to say is left out, not null."""

    @model_serializer(mode="wrap")
    def _leave_out(self, write: SerializerFunctionWrapHandler):  # annotated, it would hide its fields from the schema
        written: dict[str, Any] = write(self)
        return {name: value for name, value in written.items() if value is not None}


class Done(Shape):
    ok: bool = True
