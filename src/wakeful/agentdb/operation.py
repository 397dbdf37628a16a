"""Declarations of the operations on an agent's database.

`@operation` stands on the function that a worker runs; the function's arguments are the operation's arguments. Worker
dispatch, the service, time limits, quota, changelog and the names in error texts are all taken from the declaration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

Scope = Literal["read", "chat", "admin"]  # of core/identity.py, whose import would delay a worker's start by 27 ms
Kind = Literal["read", "write", "upkeep"]  # upkeep: the host's own work, in transactions of its own
Door = Literal["tool", "route", "command"]  # through which the reader of an error came

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. Its function is called with an OpenDatabase and the arguments by name."""

    name: str
    run: Callable[..., Any]
    kind: Kind
    scope: Scope  # that a person's token needs
    path: str | None  # method and path of its route, below an agent's database
    command: str | None  # of `wakeful db`
    is_long: bool = False  # reads or writes a whole file, and has more time for that
    creates_file: bool = False
    uses_reserve: bool = False  # works in a full file
    is_bounded: bool = False  # writes no more than the request holds, so the changelog need not measure it
    copies_file: bool = False  # the journal is emptied first, because only the file itself is copied
    keeps_host_values: bool = False  # may write values as large as the host's own
    logged_as: str | None = None  # op of its changelog entries; None: by what happened to each row
    logged_arguments: Mapping[str, str] | None = None  # in an entry of their own: name there, and argument
    agent_actor: str = "agent"  # actor in the changelog when an agent calls it
    table_arguments: tuple[str, ...] = ("table",)  # the first one given names the table for subscribers

    def table_in(self, arguments: Mapping[str, Any]) -> str | None:
        """Return the table that a call is about; None: more than one, or none."""
        return next((arguments[name] for name in self.table_arguments if arguments.get(name)), None)


OPERATIONS: dict[str, Operation] = {}


def operation(
    name: str,
    kind: Kind = "read",
    *,
    scope: Scope | None = None,
    path: str | None = None,
    command: str | None = None,
    **traits: Any,
) -> Callable[[Function], Function]:
    """Declare the function below as an operation. Without a scope, reading takes `read` and all else `chat`."""

    def declare(function: Function) -> Function:
        needed: Scope = scope or ("read" if kind == "read" else "chat")
        OPERATIONS[name] = Operation(
            name=name, run=function, kind=kind, scope=needed, path=path, command=command, **traits
        )
        return function

    return declare


class _Reader:
    """The reader of the errors of the current request. A worker has one request at a time."""

    door: Door = "tool"


def address(door: Door) -> None:
    """Let error texts name operations as they are called at this door."""
    _Reader.door = door


def name_of(name: str) -> str:
    """Return what the reader of an error calls an operation: a tool, a route or a command."""
    declared = OPERATIONS[name]
    if _Reader.door == "route" and declared.path is not None:
        method, path = declared.path.split(" ")
        return f"{method} /agents/{{agent_id}}/db{path}"
    if _Reader.door == "command" and declared.command is not None:
        return f"`wakeful db {declared.command}`"
    return f"db_{name}"
