"""Options of `wakeful agent add` and `edit`, made from settings.json, which is generated from the request's body."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from wakeful.cli.arguments import read_seconds, show_seconds
from wakeful.cli.output import WRONG, fail
from wakeful.cli.server import Server

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMES = {  # of options, if they differ from those of the fields
    "allowed_models": "allow-model",
    "ask_before": "ask-before",
    "days": "day",
    "mcp_servers": "mcp-server",
    "profiles": "profile",
    "subagents": "subagent",
    "system_prompt": "prompt",
    "timezone": "zone",
    "toolsets": "toolset",
}
_HELP = {"days": "A day on which it may run."}  # of options that are written differently from the field
_SECONDS = "_seconds"
_OF_AGENTS = ("profiles", "subagents")  # agents, by id or name
_annotated: Any = Annotated  # for types that are made at run time


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting of an agent, and its option."""

    path: tuple[str, ...]  # in the body of the request
    type: str  # string, integer, number, boolean or array
    choices: tuple[str, ...] | None
    is_nullable: bool
    help: str

    @property
    def field(self) -> str:
        return self.path[-1]

    @property
    def option(self) -> str:
        return "--" + _NAMES.get(self.field, self.field.removesuffix(_SECONDS).replace("_", "-"))

    def read(self, given: Any, server: Server) -> Any:
        """Return the value of the option as the request takes it; '' empties a list, or removes the value."""
        if isinstance(given, list):
            values = [each for each in cast("list[str]", given) if each]
            if self.field == "days":
                return [_read_day(each) for each in values]
            return [server.agent_id(each) for each in values] if self.field in _OF_AGENTS else values
        if given == "" and self.is_nullable:
            return None
        if self.choices and given not in (*self.choices, True, False):
            fail(f"{self.option} must be one of {', '.join(self.choices)}, got {given!r}.", WRONG)
        if self.field.endswith(_SECONDS):
            return read_seconds(given, self.option)
        if self.type in ("integer", "number"):
            return _read_number(given, self)
        return given


@cache
def list_settings() -> tuple[Setting, ...]:
    """Return every setting of an agent."""
    listed = json.loads(Path(__file__).with_name("settings.json").read_text(encoding="utf-8"))
    return tuple(
        Setting(
            path=tuple(each["path"]),
            type=each["type"],
            choices=each["choices"] and tuple(each["choices"]),
            is_nullable=each["is_nullable"],
            help=each["help"],
        )
        for each in listed
    )


Given = dict[Setting, Any]  # the settings that were given as options


def takes_settings(without: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take an option for every setting but one; it gets those that were given as `settings`, by path."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        chosen = {each.field: each for each in list_settings() if each.field != without}
        own = inspect.signature(command).parameters

        def run(**given: Any) -> None:
            settings = {chosen[name]: given.pop(name) for name in chosen if name in given}
            command(**given, settings={each: value for each, value in settings.items() if value not in (None, [])})

        options = [_make_parameter(each) for each in chosen.values()]
        taken = [each for each in own.values() if each.name != "settings"]
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature([*taken, *options])  # pyright: ignore[reportFunctionMemberAccess]
        run.__annotations__ = {each.name: each.annotation for each in (*taken, *options)}
        return run

    return decorate


def to_changes(given: Mapping[Setting, Any], server: Server) -> dict[str, Any]:
    """Return the body of a request with the settings that were given."""
    body: dict[str, Any] = {}
    for setting, value in given.items():
        place = body
        for group in setting.path[:-1]:
            place = place.setdefault(group, {})
        place[setting.field] = setting.read(value, server)
    return body


def to_rows(agent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an agent by the names of their options."""
    rows: dict[str, Any] = {}
    for setting in list_settings():
        value: Any = agent
        for name in setting.path:
            value = value[name]
        if setting.field == "days":
            value = [DAYS[each] for each in value]
        elif setting.field.endswith(_SECONDS):
            value = show_seconds(value, units=4)
        rows[setting.option.removeprefix("--")] = value
    return rows


def _make_parameter(setting: Setting) -> inspect.Parameter:
    names = f"{setting.option}/--no-{setting.option[2:]}" if setting.type == "boolean" else setting.option
    option = typer.Option(names, help=_help(setting), metavar=_metavar(setting))
    kinds: dict[str, Any] = {"boolean": bool | None, "array": list[str] | None}
    annotation = _annotated[kinds.get(setting.type, str | None), option]
    return inspect.Parameter(setting.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _help(setting: Setting) -> str:
    text = _HELP.get(setting.field, setting.help).replace("null: ", "'' for ")
    if setting.type == "array":
        return f"{text} May be repeated, and replaces the list so far. '' alone: none."
    return f"{text} '' removes it." if setting.is_nullable and "'' for" not in text else text


def _metavar(setting: Setting) -> str | None:
    choices = DAYS if setting.field == "days" else setting.choices
    if choices:
        return f"<{'|'.join(choices)}>"
    if setting.field.endswith(_SECONDS):
        return "DURATION"
    return {"boolean": None, "integer": "N", "number": "DOLLARS"}.get(setting.type, "TEXT")


def _read_day(text: str) -> int:
    if text.lower()[:3] not in DAYS:
        fail(f"--day must be one of {', '.join(DAYS)}, got {text!r}.", WRONG)
    return DAYS.index(text.lower()[:3])


def _read_number(text: str, setting: Setting) -> int | float:
    try:
        return int(text) if setting.type == "integer" else float(text)
    except ValueError:
        fail(f"{setting.option} must be a {'whole ' if setting.type == 'integer' else ''}number, got {text!r}.", WRONG)
