"""`wakeful agent …`, `wakeful runs`."""

from typing import Annotated, Any, Literal

import typer

from wakeful.cli.client import connect, fail, to_body
from wakeful.cli.show import AsJson, PageOption, in_words, show_done, show_json, show_list, show_one

app = typer.Typer(help="List, create and change agents.", no_args_is_help=True, rich_markup_mode=None)

AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="An agent's id or name.")]
Model = Annotated[str | None, typer.Option(help="Its model; without it, the server's own.")]
AllowedModel = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-model",
        help="A model that its schedules may ask for besides its own; may be repeated, and replaces the list so far. "
        "'' alone: none. Only an owner may set it.",
    ),
]
Prompt = Annotated[str | None, typer.Option(help="Its system prompt.")]
Zone = Annotated[str | None, typer.Option(help="Its IANA time zone; '' for yours, which it has without one.")]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
Toolset = Annotated[
    list[str] | None,
    typer.Option(help="A toolset; may be repeated, and replaces the list so far. '' alone: none."),
]
SelfScheduling = Annotated[
    bool | None, typer.Option("--self-scheduling/--no-self-scheduling", help="Whether it may book its own wakes.")
]
DatabaseMb = Annotated[int | None, typer.Option("--database-mb", help="How much its own database may hold, in MB.")]
Mode = Literal["ambient", "reactive", "project", "manual"]

_NAMES = {  # of options in a request, if they differ
    "allowed_model": "allowed_models",
    "prompt": "system_prompt",
    "toolset": "toolsets",
    "zone": "timezone",
}


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
    """Show an agent."""
    server = connect()
    found = server.get("agents", server.agent_id(agent))
    (show_json if as_json else show_one)(found)


@app.command()
def add(
    name: str,
    model: Model = None,
    allowed_model: AllowedModel = None,
    prompt: Prompt = None,
    zone: Zone = None,
    description: Description = None,
    toolset: Toolset = None,
    self_scheduling: SelfScheduling = None,
    database_mb: DatabaseMb = None,
    mode: Annotated[Mode | None, typer.Option(help="How freely it may book its own next run.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create an agent."""
    changes = _changes(locals())
    if mode is not None:
        changes["schedule"] = {"mode": mode}
    made = connect().post("agents", body=changes)
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
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Read a file that instructs an agent, and accept it as it is, so that prompts use it."""
    server = connect()
    agent_id = server.agent_id(agent)
    found = {each["path"]: each for each in server.get("agents", agent_id, "instructions")["files"]}
    if file not in found:
        fail(f"There is no file {file!r}. The agent has: {', '.join(found) or 'none'}.")
    if found[file]["accepted"]:
        typer.echo(f"{file} is accepted already.")
        return
    typer.echo(found[file]["text"])
    if not yes and not typer.confirm(f"\nUse this {file} in every prompt of this agent?", err=True):
        fail("Nothing was accepted.")
    server.post("agents", agent_id, "instructions", *file.split("/"), "accept", body={"digest": found[file]["digest"]})
    typer.echo(f"Accepted {file}.")


@app.command()
def edit(
    agent: AgentName,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    model: Model = None,
    allowed_model: AllowedModel = None,
    prompt: Prompt = None,
    zone: Zone = None,
    description: Description = None,
    toolset: Toolset = None,
    self_scheduling: SelfScheduling = None,
    database_mb: DatabaseMb = None,
    as_json: AsJson = False,
) -> None:
    """Change settings of an agent. Switching self-scheduling off cancels what it booked."""
    changes = _changes(locals())
    if not changes:
        fail("Nothing to change: give at least one option, such as --prompt or --toolset.", 2)
    server = connect()
    changed = server.patch("agents", server.agent_id(agent), body=changes)
    (show_json if as_json else show_one)(changed)


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
        typer.echo("No next run is booked.")
    else:
        show_one(found["next_run"])


@app.command()
def rm(agent: AgentName, as_json: AsJson = False) -> None:
    """Delete an agent: its wakes are cancelled and its runs stopped."""
    server = connect()
    done = server.delete("agents", server.agent_id(agent))
    show_done(done, "Deleted.", as_json)


def runs(
    status: Annotated[str | None, typer.Option(help="Only runs with this status.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's, by id or name.")] = None,
    wake: Annotated[str | None, typer.Option(help="Only runs of this wake.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 50,
    page: PageOption = None,
    as_json: AsJson = False,
) -> None:
    """List runs and what each used, the latest first."""
    server = connect()
    found = server.get("runs", status=status, agent_id=server.agent_id(agent), wake_id=wake, limit=limit, page=page)
    columns = ("id", "nominal_at", "trigger", "kind", "status", "note", "tokens", "cost", "reason", "error")
    rows = [_with_usage(run) for run in found["runs"]]
    show_list(found, rows, columns, empty="Nothing has run yet.", as_json=as_json)


def _with_usage(run: dict[str, Any]) -> dict[str, Any]:
    run = {**run, "note": in_words(run["note"])}
    used = run["usage"]
    if used is None:
        return run
    cost = None if used["cost"] is None else f"${used['cost']:.4f}"
    return {**run, "tokens": used["input_tokens"] + used["output_tokens"], "cost": cost}


def _changes(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an agent that a command sets; '' empties a list, or removes the time zone."""
    changes = to_body(arguments, _NAMES, without=("agent", "mode", "as_json"))
    for name in changes.keys() & {"toolsets", "allowed_models"}:
        changes[name] = [each for each in changes[name] if each]
    return changes if changes.get("timezone") != "" else changes | {"timezone": None}
