"""Write web/src/api/*.generated.ts: types from OpenAPI and the frame schema, labels and limits from the rules."""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wakeful.app.building import build
from wakeful.app.http import create_app
from wakeful.config.settings import Settings
from wakeful.core import labels, types
from wakeful.core.types import Bounds
from wakeful.http.tries import Tries
from wakeful.stream.sockets import describe_frames
from wakeful.timing.bounds import PRESETS

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
        "server.generated.ts": HEAD.format(origin="src/wakeful/core and the REST API") + _constants(described),
    }


def _constants(described: Schema) -> str:
    """Declare the server's codes, labels and limits that the page shows."""
    values: dict[str, Any] = {
        "TOOLSETS": {name: asdict(each) for name, each in labels.TOOLSETS.items()},
        "MODES": {name: asdict(each) | {"bounds": _bounds(PRESETS[name])} for name, each in labels.MODES.items()},
        "WAKE_KINDS": labels.WAKE_KINDS,
        "RUN_STATUSES": labels.RUN_STATUSES,
        "RUN_NOTES": labels.RUN_NOTES,
        "SERVER_NOTES": labels.SERVER_NOTES,
        "RESULT_KINDS": labels.RESULT_KINDS,
        "REASONS": labels.REASONS,
        "IMAGE_TYPES": types.IMAGE_TYPES,
        "MAX_IMAGES": types.MAX_IMAGES,
        "MAX_IMAGE_BYTES": types.MAX_IMAGE_BYTES,
        "MAX_LENGTH": _max_lengths(described["components"]["schemas"]),
    }
    return "\n".join(
        f"export const {name} = {json.dumps(value, indent=2, ensure_ascii=False)} as const;\n"
        for name, value in values.items()
    )


def _bounds(bounds: Bounds) -> dict[str, Any]:
    """Return a preset in the fields of REST's BoundsShape."""
    quiet = {"quiet_from": bounds.quiet_from, "quiet_to": bounds.quiet_to}
    return {
        "max_horizon_seconds": int(bounds.max_horizon.total_seconds()),
        "min_interval_seconds": int(bounds.min_interval.total_seconds()),
        "daily_cap": bounds.daily_cap,
        **{name: at and at.isoformat("minutes") for name, at in quiet.items()},
    }


def _max_lengths(schemas: Mapping[str, Schema]) -> dict[str, dict[str, int]]:
    """Return the maximum length of each field of a request, as the server enforces it."""
    found = {
        name: {key: most for key, each in schema.get("properties", {}).items() if (most := _max_length(each))}
        for name, schema in sorted(schemas.items())
    }
    return {name: lengths for name, lengths in found.items() if lengths}


def _max_length(schema: Schema) -> int | None:
    return schema.get("maxLength") or next(filter(None, map(_max_length, schema.get("anyOf", ()))), None)


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
