"""`wakeful mcp …`: Wakeful for programs that speak MCP, and the MCP servers of agents in the settings file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from wakeful.cli.nouns import Commands
from wakeful.cli.output import WRONG, AsJson, echo, fail, show_done, show_json, show_list
from wakeful.cli.server import NotReached, ask, failing
from wakeful.cli.target import find_running_server, read_settings, refuse_remote, target_of
from wakeful.core.sources import FILE_NAME, find_config_dir
from wakeful.mcp_server.commands import BRIDGE, Scope, config, serve_stdio

if TYPE_CHECKING:
    from wakeful.config.settings import Settings


app = Commands(runs_alone=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of an MCP server, as `wakeful mcp ls` shows it.")]
Value = "NAME=VALUE"


@app.callback()
def _start(
    context: typer.Context,
    scope: Scope = "schedule",
    name: Annotated[str, typer.Option(help="The name of the token that it makes for itself.")] = BRIDGE,
) -> None:
    """Let programs use your agents over MCP; and add, list and test MCP servers that agents use.

    Without a command: speak MCP on stdin and stdout, for programs that start it, and pass it on to the server.
    """
    if context.invoked_subcommand is None:
        serve_stdio(context, scope, name)
    elif context.invoked_subcommand != "config":
        refuse_remote("`wakeful mcp` edits the settings file of", also_chosen=True)


app.command()(config)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="A name for it: a-z, 0-9 and -. Its tools are called NAME_tool.")],
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND… | URL", help="After --: the program and its arguments. Or a web address."),
    ],
    read: Annotated[list[str] | None, typer.Option(metavar="PATH", help="It may read this; repeatable.")] = None,
    write: Annotated[list[str] | None, typer.Option(metavar="PATH", help="It may write this; repeatable.")] = None,
    network: Annotated[bool, typer.Option("--network", help="It may use the network; uvx and npx need that.")] = False,
    unconfined: Annotated[bool, typer.Option("--unconfined", help="It has all rights of the server's user.")] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar=Value,
            help="An environment variable of the program; repeatable. For a secret, write NAME=file:PATH, or "
            "NAME=env:VARIABLE for a variable of the server.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar=Value, help="A header for an address; values as for --env.")
    ] = None,
    for_users: Annotated[bool, typer.Option("--for-users", help="Users who are not owners may use it too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add an MCP server to the settings file: `wakeful mcp add files --read /srv/notes -- files-mcp /srv/notes`."""
    from wakeful.config.settings_file import add_mcp_server

    entry: dict[str, Any] = {}
    if len(command) == 1 and command[0].startswith(("http://", "https://")):
        entry["url"] = command[0]
    else:
        entry["command"] = command
    entry |= {key: value for key, value in {"read": read, "write": write}.items() if value}
    flags = {"network": network, "unconfined": unconfined, "for_users": for_users}
    entry |= {key: True for key, is_set in flags.items() if is_set}
    entry |= {key: _pairs(given, f"--{key}") for key, given in {"env": env, "header": header}.items() if given}
    if "header" in entry:
        entry["headers"] = entry.pop("header")
    path = _path()
    with failing():
        add_mcp_server(path, name, entry)
    told = (
        f"Added {name} to {path}. Test it with `wakeful mcp test {name}`. {_restart()} Then switch it on for an agent."
    )
    show_done({"name": name, "path": str(path)}, told, as_json)


@app.command(name="ls")
def list_servers(as_json: AsJson = False) -> None:
    """List the MCP servers in the settings file, and how each does on the running server."""
    settings = read_settings()
    states = _states()
    rows = [_describe(settings, name, states) for name in settings.mcp]
    rows += [
        {"name": name, "kind": state["kind"], "runs": None, "state": "removed from the file: restart the server"}
        for name, state in (states or {}).items()
        if name not in settings.mcp
    ]
    empty = f"No MCP servers in {_path()}. Add one with `wakeful mcp add NAME -- COMMAND`."
    columns = ("name", "kind", "runs", "state", "tools", "last_error")
    show_list({"mcp_servers": rows}, rows, columns, empty=empty, as_json=as_json)


@app.command(name="test")
def try_out(name: Name, as_json: AsJson = False) -> None:
    """Start an MCP server once as a run would, and list its tools; exit 0 only if that works."""
    settings = read_settings()
    if name not in settings.mcp:
        fail(f"There is no MCP server {name!r} in {_path()}. It has: {', '.join(settings.mcp) or 'none'}.")
    from wakeful.app.services import try_mcp_server

    state = (_states() or {}).get(name)
    trial = try_mcp_server(settings, name, is_unconfined=bool(state) and state["confinement"] == "unconfined")
    if as_json:
        show_json({"name": name, "tools": trial.tools, "problem": trial.problem, "note": trial.note})
    elif trial.problem is not None:
        fail(f"{name} does not work: {trial.problem}.")
    else:
        tools = "\n".join(f"  {tool}" for tool in trial.tools)
        echo(f"{name} works. It has {len(trial.tools)} tools:\n{tools}" if tools else f"{name} works, without tools.")
    if trial.problem is not None:
        raise typer.Exit(1)


@app.command()
def rm(name: Name, as_json: AsJson = False) -> None:
    """Remove an MCP server from the settings file."""
    from wakeful.config.settings_file import remove_mcp_server

    path = _path()
    with failing():
        remove_mcp_server(path, name)
    show_done({"name": name, "path": str(path)}, f"Removed {name} from {path}. {_restart()}", as_json)


def _path() -> Path:
    return find_config_dir(os.environ) / FILE_NAME


def _restart() -> str:
    running = find_running_server()
    if running is None:
        return "The server reads it at its next start."
    return f"Restart the server (pid {running.pid}), which read the file at its start."


def _pairs(given: list[str], option: str) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            fail(f"{option} must be NAME=VALUE, got {name!r}.", WRONG)
        kind, colon, rest = value.partition(":")
        pairs[name] = {kind: rest} if colon and kind in ("file", "env") else value
    return pairs


def _states() -> dict[str, Any] | None:
    """Return the MCP servers of the running server by name; None if none runs."""
    running = find_running_server()
    target = None if running is None else target_of(running)
    if target is None:
        return None
    try:
        answer = ask(target, "GET", "/mcp-servers")
    except NotReached:
        return None
    return {each["name"]: each for each in answer.body["mcp_servers"]} if answer.is_ok else None


def _describe(settings: "Settings", name: str, states: dict[str, Any] | None) -> dict[str, Any]:
    entry = settings.mcp[name]
    # Arguments and queries may have secrets in them.
    runs = entry.command[0] if entry.command else urlsplit(entry.url or "")._replace(query="").geturl()
    row: dict[str, Any] = {"name": name, "kind": entry.kind, "runs": runs}
    if states is None:
        return row | {"state": "no server runs"}
    if name not in states:
        return row | {"state": "new: restart the server"}
    state = states[name]
    return row | {"state": state["state"], "tools": state["tools"], "last_error": state["last_error"]}
