"""`wakeful agent …`: list, create and change agents."""

from typing import Annotated, Any, Literal

import typer

from wakeful.agents.options import Given, takes_settings, to_changes, to_rows
from wakeful.cli.arguments import Yes, confirm
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
from wakeful.cli.server import connect

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
