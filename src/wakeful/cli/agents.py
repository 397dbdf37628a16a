"""`wakeful agent …`, `wakeful runs`."""

from typing import Annotated, Any

import typer

from wakeful.cli.client import connect
from wakeful.cli.show import AsJson, show_json, show_one, show_table

app = typer.Typer(help="Look at agents and make them.", no_args_is_help=True)


@app.command(name="ls")
def list_agents(as_json: AsJson = False) -> None:
    """List agents."""
    found = connect().get("agents")
    if as_json:
        show_json(found)
        return
    rows = [
        {**each, "mode": each["schedule"]["mode"], "model": each["model"] or "(server)"} for each in found["agents"]
    ]
    columns = ("id", "name", "model", "timezone", "self_scheduling", "mode", "toolsets")
    show_table(rows, columns, empty="No agents. Make one with `wakeful agent add NAME`.")


@app.command()
def show(agent_id: str, as_json: AsJson = False) -> None:
    """Show an agent."""
    found = connect().get("agents", agent_id)
    (show_json if as_json else show_one)(found)


@app.command()
def add(
    name: str,
    model: Annotated[str | None, typer.Option(help="Its model; without it, the server's own.")] = None,
    prompt: Annotated[str, typer.Option(help="Its system prompt.")] = "",
    zone: Annotated[str | None, typer.Option(help="Its IANA time zone.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make an agent."""
    body: dict[str, Any] = {"name": name, "system_prompt": prompt}
    body |= {key: value for key, value in (("model", model), ("timezone", zone)) if value is not None}
    made = connect().post("agents", body=body)
    show_json(made) if as_json else typer.echo(f"Made agent {made['id']}.")


@app.command()
def rm(agent_id: str, as_json: AsJson = False) -> None:
    """End an agent: its wakes are cancelled and its runs stopped."""
    done = connect().delete("agents", agent_id)
    show_json(done) if as_json else typer.echo("Ended.")


def runs(
    status: Annotated[str | None, typer.Option(help="Only those with this status.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's.")] = None,
    wake: Annotated[str | None, typer.Option(help="Only those of this wake.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=200)] = 50,
    as_json: AsJson = False,
) -> None:
    """List runs, the latest first."""
    found = connect().get("runs", status=status, agent_id=agent, wake_id=wake, limit=limit)
    if as_json:
        show_json(found)
        return
    columns = ("id", "nominal_at", "trigger", "kind", "status", "reason", "error")
    show_table(found["runs"], columns, empty="Nothing has run yet.")
