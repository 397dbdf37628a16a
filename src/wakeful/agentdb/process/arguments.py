"""A check of arguments before they are sent to a worker."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Mapping
from typing import Any

from wakeful.agentdb.errors import DataInvalid

MAX_LEVELS = 200  # of nested objects and lists; the JSON that a worker reads has at most 254


def check(arguments: Mapping[str, Any]) -> None:
    """Refuse infinite numbers and NaN, and values nested too deep. Level by level, so depth costs no stack."""
    level: list[Any] = [arguments]
    for _ in range(MAX_LEVELS):
        deeper: list[Any] = []
        for each in level:
            for value in each.values() if isinstance(each, Mapping) else each:
                if value.__class__ is float:
                    if not math.isfinite(value):
                        raise DataInvalid(f"A number must be finite, got {value}. Use null or a text for it.")
                elif isinstance(value, Mapping | list | tuple):
                    deeper.append(value)
        if not deeper:
            return
        level = deeper
    raise DataInvalid(f"A value must be nested at most {MAX_LEVELS} levels deep. Store it as a text.")
