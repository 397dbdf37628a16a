"""`wakeful node …`: the nodes that share a store, for owners."""

from typing import Any

from wakeful.cli.nouns import Noun, NounCommands
from wakeful.cli.server import Server

app = NounCommands(Noun(name="node", label=lambda node: f"{node['name']}  {node['place']}"))


def _rows(_server: Server, found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            **node,
            "name": f"{node['name']} (this one)" if node["id"] == found["this_id"] else node["name"],
            "state": "no heartbeat" if not node["is_alive"] else "draining" if node["is_draining"] else "running",
        }
        for node in found["nodes"]
    ]


app.ls(
    "List the nodes: version, last heartbeat, runs, and the number of agents whose files they used last.",
    ("id", "name", "state", "version", "runs", "agents", "seen_at", "place"),
    empty="No nodes.",
    rows=_rows,
)
app.act(
    "drain",
    "Have a node claim no more runs and hand back those it has. It lasts until the node restarts.",
    tell="{name} drains: other nodes continue its runs. It can be restarted.",
)
app.act("undrain", "Have a node claim runs again.", tell="{name} claims runs again.")
