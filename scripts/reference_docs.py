"""Write docs/reference/{rest,frames,tools,times}.md from the code; a test compares them."""

import dataclasses
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from fastapi.routing import APIRoute

from wakeful.app.building import build
from wakeful.config import Settings
from wakeful.domain.agents.agents import TOOLSETS
from wakeful.domain.events import SessionFrame, UserFrame, wire_name
from wakeful.domain.wakes.when import FORMS
from wakeful.server.app import create_app
from wakeful.server.login_attempts import Tries
from wakeful.tools.registry import Tool

FOLDER = Path(__file__).parent.parent / "docs/reference"

REST = """\
# REST

<!-- Written by `make docs` from the routes themselves; edit there. -->

Every request but `GET /healthz` and the login needs a token: `Authorization: Bearer TOKEN`, or the cookie and the page
secret of a browser that has logged in ([access](../access.md)). *Scope* is the least a token needs; `read` < `chat` <
`schedule` < `admin`, each includes the ones before. Bodies are JSON. The server describes each route in full at
`/openapi.json`.

Failures have one shape, `{"error": {"code", "message", "hint"?, "field"?}}`: 400 for a request that is wrong in itself,
401 without a token that counts, 403 for one that may not, 404 for what does not exist or is someone else's, 409 for the
wrong moment, 413 and 429 for too much, 422 for a value of the wrong form, 503 when something we need does not answer.
Lists come in pages: `next` of one is `page` of the following.

| route | scope | what it does |
|---|---|---|
"""

FRAMES = """\
# Frames

<!-- Written by `make docs` from src/wakeful/domain/events.py; edit there. -->

What the sockets send. Each frame is a JSON object with a `type`. Fields with a question mark are left out when there is
nothing to say. How they come and in which order: [Sockets](../sockets.md). As JSON Schema: `GET /ws/schema`.

## `/ws/sessions/{id}`

| type | fields | when |
|---|---|---|
"""

FRAMES_OF_USER = """
## `/ws/events`

| type | fields | when |
|---|---|---|
"""

TOOLS = """\
# Tools

<!-- Written by `make docs` from src/wakeful/tools; edit there. -->

What a model can be shown. An agent's `toolsets` choose; a tool that is off is not shown at all, and with
self-scheduling off neither are the tools that book. A call that is refused answers the model with the reason and shows
in the stream as `tool_call` with `success: false`.
"""


TIMES = """\
# Times

<!-- Written by `make docs` from src/wakeful/domain/wakes/when.py; edit there. -->

How a time is written: in `when` of a booking or an edit, and in `--when` on the command line. The examples of a row are
accepted as they stand; anything that is none of these forms is refused with the text and this list, never guessed.
Case, extra spaces and one dot at the end do not matter; `at` may be left out, and a clock may stand first (`9am
tomorrow`).

A wall-clock time needs a time zone: the one in the text, else the parameter `timezone`, else the agent's, else its
user's. If none is known, that is an error. A time in a spring gap means the first instant after it; one that comes
twice in autumn means the first.

| examples | meaning |
|---|---|
"""

WITHOUT_TOOLSET = """\
Shown by other settings of an agent: the first two by its [skills](../skills.md), the last by its list of
[profiles](../profiles.md). The tools of [MCP servers](../mcp-servers.md) come besides.
"""


def render() -> dict[str, str]:
    """Return the text of each page by its name."""
    return {
        "rest.md": REST + "".join(_routes()),
        "frames.md": FRAMES + _frames(SessionFrame) + FRAMES_OF_USER + _frames(UserFrame),
        "tools.md": TOOLS + "".join(_toolsets()),
        "times.md": TIMES + "".join(_forms()),
    }


def _forms() -> list[str]:
    return [f"| {', '.join(f'`{each}`' for each in form.examples)} | {form.means} |\n" for form in FORMS]


def _routes() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        node = build(Settings.model_validate({"data_dir": folder, "config_dir": folder, "token": "t"}))
        app = create_app("0", node.services, Tries(node.clock), list, heartbeat_seconds=20)
    scopes = _scopes(app.routes)
    rows: list[str] = []
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            scope = scopes.get((method.upper(), path), "–")
            first = (operation.get("description") or operation["summary"]).split("\n")[0]
            rows.append(f"| `{method.upper()} {path}` | {scope} | {first} |\n")
    return sorted(rows, key=lambda row: row.split("`")[1].split(" ")[1])


def _scopes(routes: Any) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for route in _flat(routes):
        scope = next((name for name in _needs(route.dependant)), None)
        if scope is not None:
            found |= {(method, route.path_format): scope for method in route.methods}
    return found


def _flat(routes: Any) -> list[APIRoute]:
    flat: list[APIRoute] = []
    for route in routes:
        if isinstance(route, APIRoute):
            flat.append(route)
        else:
            inner = getattr(getattr(route, "original_router", None) or route, "routes", None)
            flat += _flat(inner or [])
    return flat


def _needs(dependant: Any) -> list[str]:
    names = [each.call.scope for each in dependant.dependencies if hasattr(each.call, "scope")]
    return [f"`{name}`" for name in names]


def _frames(union: Any) -> str:
    return "".join(
        f"| `{_type(frame)}` | {_fields(frame)} | {(frame.__doc__ or '').strip().splitlines()[0]} |\n"
        for frame in get_args(union)
    )


def _type(frame: Any) -> str:
    return get_args(get_type_hints(frame)["type"])[0]


def _fields(frame: Any) -> str:
    hints: Mapping[str, Any] = get_type_hints(frame)
    names = [field.name for field in dataclasses.fields(frame) if field.name != "type"]
    return ", ".join(f"`{wire_name(name)}`{'?' if NoneType in get_args(hints[name]) else ''}" for name in names) or "–"


def _toolsets() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        catalog = build(Settings.model_validate({"data_dir": folder, "config_dir": folder})).catalog
    parts: list[str] = []
    for toolset in TOOLSETS:
        parts.append(f"\n## `{toolset}`\n\n" + "\n".join(map(_tool, catalog.of([toolset]))))
    others = "\n".join(map(_tool, catalog.without_toolset()))
    parts.append(f"\n## Without a toolset\n\n{WITHOUT_TOOLSET}\n{others}")
    return parts


def _tool(tool: Tool) -> str:
    required = set(tool.schema.get("required", []))
    rows = [
        f"| `{name}` | {'yes' if name in required else 'no'} | {schema.get('description', '')} |"
        for name, schema in tool.schema.get("properties", {}).items()
    ]
    again = " May be called again after a crash." if tool.is_repeatable else ""
    table = "\n".join(["| argument | needed | meaning |", "|---|---|---|", *rows])
    return f"### `{tool.name}`\n\n{tool.description}{again}\n\n{table}\n"


if __name__ == "__main__":
    for name, text in render().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
