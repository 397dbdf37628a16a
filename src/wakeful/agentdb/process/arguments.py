"""What may be asked of a database at all, before it goes to a worker."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from collections.abc import Mapping
from typing import Any

from wakeful.agentdb.errors import DataInvalid

MOST_LEVELS = 200  # of objects and lists in each other; the JSON that a worker reads has at most 254


def check(arguments: Mapping[str, Any]) -> None:
    """Refuse numbers that JSON has no word for, and values nested too deep. Level by level: depth costs no stack."""
    level: list[Any] = [arguments]
    for _ in range(MOST_LEVELS):
        deeper: list[Any] = []
        for each in level:
            for value in each.values() if isinstance(each, Mapping) else each:
                if value.__class__ is float:
                    if not math.isfinite(value):
                        raise DataInvalid(
                            f"A number in it is {value}, which cannot be kept. Use null or a text for it."
                        )
                elif isinstance(value, Mapping | list | tuple):
                    deeper.append(value)
        if not deeper:
            return
        level = deeper
    raise DataInvalid(f"A value in it is nested too deep; {MOST_LEVELS} levels is the most. Keep it as a text.")
