"""Parse and sanitise the arguments of a tool call."""

import json
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import ToolCallPart

from wakeful.core.errors import Invalid
from wakeful.core.texts import to_storable

MAX_DEPTH = 100  # levels; the JSON encoders further on fail at 254
_LARGEST = 2**63


class UnreadableArguments(Invalid):
    code = "bad_arguments"


class TooDeep(UnreadableArguments):
    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} was not called: its arguments are nested more than {MAX_DEPTH} levels deep. Send them flatter."
        )


def read_arguments(call: ToolCallPart) -> dict[str, Any]:
    """Parse the arguments of a call. Any JSON object is accepted: the tool validates it.

    Raises UnreadableArguments if they are not an object, or nested too deeply to be saved.
    """
    try:
        found: Any = call.args if isinstance(call.args, dict) else json.loads(call.args or "{}")
    except RecursionError:
        raise TooDeep(call.tool_name) from None
    except ValueError:  # not JSON
        found = None
    if not isinstance(found, dict):
        raise UnreadableArguments(f"{call.tool_name} was not called: its arguments are not a JSON object.")
    arguments = cast("dict[str, Any]", found)
    if _is_too_deep(arguments):
        raise TooDeep(call.tool_name)
    return arguments


def keepable_call(call: ToolCallPart) -> ToolCallPart:
    """Return a call that can be saved and sent: without arguments that are nested too deeply."""
    try:
        read_arguments(call)
    except TooDeep:
        return replace(call, args='{"unreadable": "nested too deeply"}')
    except UnreadableArguments:
        pass  # not JSON: it can be saved as text
    return call


def _is_too_deep(value: object) -> bool:
    """Check level by level: recursion would hit Python's own limit."""
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
    """Return a value that can be saved and sent: without NUL, unpaired surrogates and integers beyond 64 bits."""
    match value:
        case str():
            return to_storable(value)
        case int() if not -_LARGEST <= value < _LARGEST:
            return str(value)
        case dict():
            items = cast("dict[str, Any]", value).items()
            return {to_keep(name): to_keep(each) for name, each in items}
        case list():
            return [to_keep(each) for each in cast("list[Any]", value)]
        case _:
            return value
