"""The arguments of a tool call, as a model wrote them."""

import json
from typing import Any, cast

from pydantic_ai.messages import ToolCallPart

_LARGEST = 2**63


def read_arguments(call: ToolCallPart) -> dict[str, Any] | None:
    """Read them with everything JSON can carry, so that the tool itself can say what it does not take."""
    if isinstance(call.args, dict):
        return call.args
    try:
        found: Any = json.loads(call.args or "{}")
    except (ValueError, RecursionError):  # what the model wrote is not JSON
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


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
