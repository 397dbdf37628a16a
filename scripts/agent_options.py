"""Write src/wakeful/agents/settings.json, from which `wakeful agent add` and `edit` make their options."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wakeful.agents.rest import NULLABLE, AgentChange, BudgetsChange

PAGE = Path(__file__).parent.parent / "src/wakeful/agents/settings.json"
Schema = Mapping[str, Any]


def render() -> str:
    """Return the text of the file."""
    schema = AgentChange.model_json_schema()
    return json.dumps([*_settings(schema, schema["$defs"], ())], indent=2, ensure_ascii=False) + "\n"


def _settings(schema: Schema, shapes: Mapping[str, Schema], group: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield each setting as its path in the body, its type and its limits; groups of settings are flattened."""
    for name, field in schema["properties"].items():
        [kind] = [each for each in field["anyOf"] if each.get("type") != "null"]
        if "$ref" in kind:
            yield from _settings(shapes[kind["$ref"].rpartition("/")[2]], shapes, (*group, name))
            continue
        items = kind.get("items", {})
        yield {
            "path": [*group, name],
            "type": kind["type"],
            "choices": kind.get("enum") or items.get("enum"),
            "is_nullable": name in NULLABLE or name in BudgetsChange.model_fields or name.startswith("quiet_"),
            "help": field["description"],
        }


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
