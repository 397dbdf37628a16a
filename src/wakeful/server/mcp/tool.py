"""Declaration of a tool that programs call over MCP: its name, arguments, answer, and the scope that it needs."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from wakeful.domain.doors.params import fields_of
from wakeful.domain.errors import Invalid
from wakeful.domain.people.accounts import Identity
from wakeful.domain.texts import problem_in_words, show
from wakeful.domain.types import Scope
from wakeful.server.rest.shapes import Shape, Text
from wakeful.server.services import Services

T = TypeVar("T")
A = TypeVar("A", bound="Arguments")

# Seconds since the call began, those it waits at most, and what is going on.
Progress = Callable[[float, float, str], Awaitable[None]]

_writing: set[asyncio.Task[Any]] = set()  # so that none is collected before it ends


class BadArguments(Invalid):
    code = "invalid_value"


class Arguments(BaseModel):
    """Arguments of a tool. Unknown ones are refused, not ignored; `true` and `"5"` are not numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def to_request(self, request: type[T]) -> T:
        """Make a request of the domain from the arguments that were given."""
        return request(
            **{name: getattr(self, name) for name in self.model_fields_set if getattr(self, name) is not None}
        )


def arguments_of(request: type[Any], *, without: Collection[str] = ()) -> type[Arguments]:
    """Make arguments from the fields of a request, with their descriptions and limits."""
    made: dict[str, Any] = {}
    for each in fields_of(request, without):
        kind: Any = Text if each.type is str else each.type
        default = ... if each.is_required else each.default
        field = Field(default, description=each.param.description, **each.param.limits)
        made[each.name] = (kind | None if each.is_nullable else kind, field)
    return create_model(request.__name__, __base__=Arguments, **made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: the services of the node, and the caller, set by the gate."""

    services: Services
    caller: Identity
    progress: Progress
    waiting: Callable[[float], AbstractContextManager[None]]  # takes the seconds; limited for each token

    @property
    def user_id(self) -> str:
        return self.caller.user.id


class Told(Shape):
    """The structured content of a result."""

    message: str = Field("", description="What a model must know about it, such as the next step or a warning.")


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a call. Some clients show their model the structured content, others the text."""

    content: Told
    data: str = ""  # of the content, as text

    @property
    def text(self) -> str:
        return "\n\n".join(filter(None, (self.content.message, self.data)))


@dataclass(frozen=True, kw_only=True)
class McpTool:
    """A tool. It calls services that REST calls too."""

    name: str
    title: str
    description: str
    scope: Scope
    arguments: type[Arguments]
    answer: type[Told]
    act: Callable[[Call, Any], Awaitable[Answer]]
    is_read_only: bool = False
    is_destructive: bool = False  # ends something
    is_idempotent: bool = False

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        return self.arguments.model_json_schema()

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        return self.answer.model_json_schema(mode="serialization")

    async def __call__(self, call: Call, given: dict[str, Any]) -> Answer:
        """Check the arguments and act."""
        try:
            arguments = self.arguments.model_validate(given)
        except ValidationError as error:
            raise _explain(self, error) from None
        return await self.act(call, arguments)


def _explain(tool: McpTool, error: ValidationError) -> BadArguments:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(step) for step in first["loc"]) or "arguments"
    message = f"`{field}` {problem_in_words(first['type'], first['msg'])}"
    message += "." if first["type"] == "missing" else f", got {show(first['input'])}."
    if first["type"] in ("extra_forbidden", "missing"):
        message += f" {tool.name} takes: {', '.join(tool.arguments.model_fields) or 'no arguments'}."
    return BadArguments(message, field=field)


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Do what was asked for to its end, even if the client disconnects meanwhile and its request is cancelled."""
    task = asyncio.create_task(work)
    _writing.add(task)
    task.add_done_callback(_writing.discard)
    return await asyncio.shield(task)
