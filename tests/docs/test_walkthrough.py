"""The walkthrough names functions that exist, in the modules it links to."""

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LINKS = sorted(
    set(re.findall(r"\[`([\w.]+)`\]\((\.\./src/[\w/]+\.py)\)", (DOCS / "walkthrough.md").read_text("utf-8")))
)


def names_in(module: Path) -> set[str]:
    """Return the functions and classes of a module, methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{each.name}" for each in methods}
    return found


def test_the_walkthrough_links_to_functions():
    assert len(LINKS) > 30


@pytest.mark.parametrize(("name", "path"), LINKS)
def test_a_linked_function_exists(name, path):
    assert name in names_in(DOCS / path), f"docs/walkthrough.md links to {name} in {path}, which does not define it"
