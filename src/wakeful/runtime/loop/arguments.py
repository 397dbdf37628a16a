"""The arguments of a tool call, as a model wrote them."""

import json
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import ToolCallPart

from wakeful.domain.errors import Invalid

MAX_DEPTH = 100  # levels; what is kept and sent goes through encoders that give up at 254
_LARGEST = 2**63


class UnreadableArguments(Invalid):
    code = "bad_arguments"


class TooDeep(UnreadableArguments):
    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} was not called: its arguments are nested more than {MAX_DEPTH} levels deep. Send them flatter."
        )


def read_arguments(call: ToolCallPart) -> dict[str, Any]:
    """Read them with everything JSON can carry, so that the tool itself can say what it does not take.

    Raises BadArguments for what is no object, or nested so deeply that it could not be saved.
    """
    try:
        found: Any = call.args if isinstance(call.args, dict) else json.loads(call.args or "{}")
    except RecursionError:
        raise TooDeep(call.tool_name) from None
    except ValueError:  # what the model wrote is not JSON
        found = None
    if not isinstance(found, dict):
        raise UnreadableArguments(f"{call.tool_name} was not called: its arguments are not a JSON object.")
    arguments = cast("dict[str, Any]", found)
    if _is_too_deep(arguments):
        raise TooDeep(call.tool_name)
    return arguments


def keepable_call(call: ToolCallPart) -> ToolCallPart:
    """Return a call that can be saved and sent: arguments that are nested too deeply are left out."""
    try:
        read_arguments(call)
    except TooDeep:
        return replace(call, args='{"unreadable": "nested too deeply"}')
    except UnreadableArguments:  # no JSON; as text it can be kept
        return call
    return call


def _is_too_deep(value: object) -> bool:
    """Look level by level: a function that calls itself would end at a depth of its own."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [below for each in level for below in _children(each)]
        if not level:
            return False
    return True


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return list(cast("list[object]", value)) if isinstance(value, list) else []


def to_keep(value: Any) -> Any:
    """Return them in a form that can be kept and sent: no half characters, no numbers beyond 64 bits."""
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case int() if not -_LARGEST <= value < _LARGEST:
            return str(value)
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {to_keep(name): to_keep(each) for name, each in items}
        case list():
            return [to_keep(each) for each in cast("list[Any]", value)]
        case _:
            return value
