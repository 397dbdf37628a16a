"""Write web/src/api/{rest,frames}.generated.ts from the server's own description of itself; a test compares them."""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.app.building import build
from wakeful.config import Settings
from wakeful.server.app import create_app
from wakeful.server.login_attempts import Tries
from wakeful.server.ws.frame_schema import describe_frames

FOLDER = Path(__file__).parent.parent / "web/src/api"
HEAD = "// Written by `make docs` from {origin}; edit there.\n\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
Schema = Mapping[str, Any]


def render() -> dict[str, str]:
    """Return the text of each file by its name."""
    described = _openapi()
    shapes = "".join(_declare(name, schema) for name, schema in sorted(described["components"]["schemas"].items()))
    return {
        "rest.generated.ts": HEAD.format(origin="the server's OpenAPI document") + shapes + _routes(described["paths"]),
        "frames.generated.ts": HEAD.format(origin="the server's /ws/schema") + "".join(_frames()),
    }


def _openapi() -> Schema:
    with tempfile.TemporaryDirectory() as folder:
        node = build(Settings.model_validate({"data_dir": folder, "config_dir": folder, "token": "t"}))
        return create_app("0", node.services, Tries(node.clock), list, heartbeat_seconds=20).openapi()


def _frames() -> Iterator[str]:
    declared: set[str] = set()
    for socket, schema in describe_frames().items():
        for name, frame in schema["$defs"].items():
            if name not in declared:
                declared.add(name)
                yield _declare(name, frame)
        union = " | ".join(_type(each) for each in schema["anyOf"])
        yield f"export type {socket.capitalize()}Frame = {union};\n\n"


def _declare(name: str, schema: Schema) -> str:
    note = f"/** {' '.join(schema['description'].split())} */\n" if "description" in schema else ""
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{note}export type {_name(name)} = {_type(schema)};\n\n"
    return f"{note}export interface {_name(name)} {_object(schema)}\n\n"


def _object(schema: Schema) -> str:
    required = set(schema.get("required", ()))
    # A frame's own type is always sent, though it has a default.
    fields = [
        f"  {key}{'' if key in required or 'const' in each else '?'}: {_type(each)};\n"
        for key, each in schema["properties"].items()
    ]
    return "{\n" + "".join(fields) + "}"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return _name(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[union])))
    match schema.get("type"):
        case "array":
            inner = _type(schema.get("items", {}))
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
        case "object" if "properties" in schema:
            return _object(schema)
        case "object":
            inner = schema.get("additionalProperties")
            return f"Record<string, {_type(inner) if isinstance(inner, dict) else 'unknown'}>"
        case str(name):
            return PLAIN[name]
        case _:
            return "unknown"


def _routes(paths: Mapping[str, Schema]) -> str:
    rows = [
        f'  "{method.upper()} {path}": {_route(operation)};\n'
        for path, methods in sorted(paths.items())
        for method, operation in methods.items()
    ]
    return "/** What each route takes and answers. */\nexport interface Routes {\n" + "".join(rows) + "}\n"


def _route(operation: Schema) -> str:
    parts = [f"{place}: {_parameters(operation, place)}" for place in ("path", "query")]
    body = operation.get("requestBody")
    content = _content(body) if body else None
    optional = "" if body and body.get("required") else "?"
    parts.append(f"body{optional}: {content}" if content else "body?: undefined")
    answered = next(answer for status, answer in operation["responses"].items() if status.startswith(("2", "3")))
    parts.append(f"answer: {_content(answered) or 'undefined'}")
    return "{ " + "; ".join(parts) + " }"


def _parameters(operation: Schema, place: str) -> str:
    fields = [
        f"{each['name']}{'' if each.get('required') else '?'}: {_type(each['schema'])}"
        for each in operation.get("parameters", ())
        if each["in"] == place
    ]
    return "{ " + "; ".join(fields) + " }" if fields else "Record<never, never>"


def _content(described: Schema) -> str | None:
    content = described.get("content", {}).get("application/json")
    return _type(content["schema"]) if content else None


def _name(name: str) -> str:
    return re.sub(r"\W", "_", name)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in render().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
