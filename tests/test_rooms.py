"""Import rules beyond import-linter: pure rules import only each other, the standard library and cronsim."""

import ast
import sys
from pathlib import Path

import wakeful

ROOT = Path(wakeful.__file__).parent
CORE = (
    "addresses", "budget", "call_words", "errors", "events", "identity", "ids", "labels", "outside", "records",
    "search", "texts", "types", "values", "zones",
)  # fmt: skip
PURE = sorted(
    [
        *(ROOT / "timing").rglob("*.py"),
        *(path for path in ROOT.glob("*/rules.py") if path.parent.name != "sandbox"),
        *(ROOT / f"core/{name}.py" for name in CORE),
        *(ROOT / f"{name}.py" for name in ("hooks/schemes", "notices/texts")),
        *(ROOT / f"{name}.py" for name in ("homes/instructions", "loop/promises")),
        *(ROOT / f"models/{name}.py" for name in ("names", "providers")),
    ]
)
NAMES = {".".join(["wakeful", *path.relative_to(ROOT).with_suffix("").parts]) for path in PURE}


def imported_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= named & NAMES or {node.module or ""}
    return names


def test_pure_rules_import_only_the_standard_library_and_cronsim():
    allowed = sys.stdlib_module_names | {"cronsim"}
    strangers = {
        f"{path.name}: {name}"
        for path in PURE
        for name in imported_names(path)
        if name.split(".")[0] not in allowed and name not in NAMES
    }
    assert not strangers


def test_pure_rules_do_no_input_or_output():
    acting = {"asyncio", "logging", "os", "pathlib", "socket", "sqlite3", "subprocess", "threading", "time"}
    used = {name.split(".")[0] for path in PURE for name in imported_names(path)}
    assert not used & acting


def test_no_file_ends_with_a_comment_about_code_that_was_moved_away():
    assert [
        str(path) for path in ROOT.rglob("*.py") if path.read_text().rstrip().rpartition("\n")[2].startswith("#")
    ] == []
