"""`wakeful node …`: the nodes that share a store, for owners."""

from typing import Annotated, Any

import typer

from wakeful.cli.output import AsJson, OutputZone, harmless, show_done, show_list
from wakeful.cli.server import Candidate, Server, connect, pick

app = typer.Typer(
    help="List the nodes that share a store, and drain them; for owners.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="A node, by name, id or the beginning of the id.")]


@app.command(name="ls")
def list_nodes(_zone: OutputZone = None, as_json: AsJson = False) -> None:
    """List the nodes: version, last heartbeat, runs, and the number of agents whose files they used last."""
    found = connect().get("nodes")
    rows = [_row(node, found["this_id"]) for node in found["nodes"]]
    columns = ("id", "name", "state", "version", "runs", "agents", "seen_at", "place")
    show_list(found, rows, columns, empty="No nodes.", as_json=as_json)


@app.command()
def drain(node: NodeName, as_json: AsJson = False) -> None:
    """Have a node claim no more runs and hand back those it has. It lasts until the node restarts."""
    server = connect()
    done = server.post("nodes", _find(server, node), "drain")
    show_done(done, f"{harmless(done['name'])} drains: other nodes continue its runs. It can be restarted.", as_json)


@app.command()
def undrain(node: NodeName, as_json: AsJson = False) -> None:
    """Have a node claim runs again."""
    server = connect()
    done = server.post("nodes", _find(server, node), "undrain")
    show_done(done, f"{harmless(done['name'])} claims runs again.", as_json)


def _find(server: Server, wanted: str) -> str:
    nodes: list[dict[str, Any]] = server.get("nodes")["nodes"]
    found = [Candidate(each["id"], f"{each['name']}  {each['place']}", each["name"]) for each in nodes]
    return pick(found, wanted, "node", "wakeful node ls").id


def _row(node: dict[str, Any], this_id: str) -> dict[str, Any]:
    state = "no heartbeat" if not node["is_alive"] else "draining" if node["is_draining"] else "running"
    name = f"{node['name']} (this one)" if node["id"] == this_id else node["name"]
    return {**node, "name": name, "state": state}
