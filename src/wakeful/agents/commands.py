"""`wakeful agent …`: list, create and change agents.

The options of `add` and `edit` are made from settings.json, which is generated from the request's body.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from wakeful.cli.arguments import Yes, confirm, read_seconds, show_seconds
from wakeful.cli.nouns import Commands
from wakeful.cli.output import (
    WRONG,
    AsJson,
    describe_deletion,
    echo,
    fail,
    harmless,
    printable,
    show_done,
    show_json,
    show_list,
    show_one,
)
from wakeful.cli.server import Server, connect

# Options of `wakeful agent add` and `edit`, made from settings.json, which is generated from the request's body.


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


app = Commands()

AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="An agent, by name, id or the beginning of the id.")]
_MAX_WAKES = 200  # of one page of GET /wakes
Mode = Literal["ambient", "reactive", "project", "manual"]


@app.command(name="ls")
def list_agents(as_json: AsJson = False) -> None:
    """List agents."""
    found = connect().get("agents")
    rows = [
        {
            **each,
            "mode": each["schedule"]["mode"],
            "model": each["model"] or "(server)",
            "timezone": each["timezone"] or (f"{each['zone']} (yours)" if each["is_zone_known"] else "(not known)"),
        }
        for each in found["agents"]
    ]
    columns = ("id", "name", "model", "timezone", "self_scheduling", "mode", "toolsets")
    show_list(found, rows, columns, empty="No agents. Create one with `wakeful agent add NAME`.", as_json=as_json)


@app.command()
def show(agent: AgentName, as_json: AsJson = False) -> None:
    """Show an agent and its settings, by the names of the options of `wakeful agent edit`."""
    server = connect()
    _show(server.get("agents", server.agent_id(agent)), as_json)


@app.command()
@takes_settings(without="name")
def add(name: Annotated[str, typer.Argument(help="Its name.")], settings: Given, as_json: AsJson = False) -> None:
    """Create an agent."""
    server = connect()
    made = server.post("agents", body={"name": name, **to_changes(settings, server)})
    show_done(made, f"Created agent {made['id']}.", as_json)


@app.command()
def instructions(agent: AgentName, as_json: AsJson = False) -> None:
    """List the files that instruct an agent (AGENTS.md, its skills), and whether prompts use each."""
    server = connect()
    found = server.get("agents", server.agent_id(agent), "instructions")
    rows = [{**each, "state": "used" if each["accepted"] else "not used: not accepted"} for each in found["files"]]
    show_list(found, rows, ("path", "size", "state"), empty="No AGENTS.md and no skills.", as_json=as_json)


@app.command()
def accept(
    agent: AgentName,
    file: Annotated[str, typer.Argument(help="AGENTS.md, or skills/NAME.md.")] = "AGENTS.md",
    yes: Yes = False,
) -> None:
    """Read a file that instructs an agent, and accept it as it is, so that prompts use it."""
    server = connect()
    agent_id = server.agent_id(agent)
    found = {each["path"]: each for each in server.get("agents", agent_id, "instructions")["files"]}
    if file not in found:
        fail(f"There is no file {file!r}. The agent has: {', '.join(found) or 'none'}.")
    if found[file]["accepted"]:
        echo(f"{file} is accepted already.")
        return
    echo(printable(found[file]["text"]))
    confirm(f"\nUse this {file} in every prompt of this agent?", yes)
    server.post("agents", agent_id, "instructions", *file.split("/"), "accept", body={"digest": found[file]["digest"]})
    echo(f"Accepted {file}.")


@app.command()
@takes_settings()
def edit(agent: AgentName, settings: Given, as_json: AsJson = False) -> None:
    """Change settings of an agent. Switching self-scheduling off cancels what it booked."""
    if not settings:
        fail("Nothing to change: give at least one option, such as --prompt or --toolset.", WRONG)
    server = connect()
    _show(server.patch("agents", server.agent_id(agent), body=to_changes(settings, server)), as_json)


@app.command()
def mode(
    agent: AgentName,
    mode: Annotated[Mode | None, typer.Argument(help="Its new mode; without one, show the current one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how freely an agent may book its own next run, or set a mode, which sets all limits."""
    server = connect()
    agent_id = server.agent_id(agent)
    if mode is None:
        found = server.get("agents", agent_id)
    else:
        found = server.patch("agents", agent_id, body={"schedule": {"mode": mode}})
    (show_json if as_json else show_one)(found["schedule"])


@app.command(name="next-run")
def next_run(agent: AgentName, as_json: AsJson = False) -> None:
    """Show an agent's next run. `wakeful wake add --as next-run` books one."""
    server = connect()
    found = server.get("agents", server.agent_id(agent), "next-run")
    if as_json:
        show_json(found)
    elif found["next_run"] is None:
        echo("No next run is booked.")
    else:
        show_one(found["next_run"])


@app.command()
def rm(agent: AgentName, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete an agent: its wakes are cancelled, its runs stopped, and its database is erased."""
    server = connect()
    chosen = server.agent(agent)
    wakes = len(server.get("wakes", agent_id=chosen["id"], live=True, limit=_MAX_WAKES)["wakes"])
    count = f"{wakes} or more" if wakes == _MAX_WAKES else wakes
    booked = f"its booked wakes ({count}) are cancelled" if wakes else "it has no booked wakes"
    confirm(
        f"Its runs are stopped, {booked}, and the key of its database is destroyed: neither the database nor a backup "
        "of it can be read again. Its sessions stay readable. This cannot be undone.\n"
        f"Delete the agent {harmless(chosen['name'])} ({chosen['id']})?",
        yes,
    )
    done = server.delete("agents", chosen["id"])
    show_done(done, describe_deletion(done, "Deleted."), as_json)


def _show(agent: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(agent)
        return
    model = agent["model"] or "(the server's own)"
    zone = agent["timezone"] or (f"{agent['zone']} (yours)" if agent["is_zone_known"] else "(not known)")
    rows = {"id": agent["id"], **to_rows(agent), "model": model, "zone": zone}
    if agent["hidden_toolsets"]:
        names = ", ".join(agent["hidden_toolsets"])
        rows["hidden-toolset"] = f"{names} (hidden from its model: turn on --self-scheduling)"
    show_one(rows)
