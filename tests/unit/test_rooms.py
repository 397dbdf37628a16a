"""Import rules beyond import-linter: the domain imports only the standard library and cronsim."""

import ast
import sys
from pathlib import Path

import wakeful

DOMAIN = Path(wakeful.__file__).parent / "domain"


def imported_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_the_domain_imports_only_the_standard_library_and_cronsim():
    allowed = sys.stdlib_module_names | {"cronsim"}
    strangers = {
        f"{path.name}: {name}"
        for path in DOMAIN.rglob("*.py")
        for name in imported_names(path)
        if name.split(".")[0] not in allowed and not f"{name}.".startswith("wakeful.domain.")
    }
    assert not strangers


def test_the_domain_does_no_input_or_output():
    acting = {"asyncio", "logging", "os", "pathlib", "socket", "sqlite3", "subprocess", "threading", "time"}
    used = {name.split(".")[0] for path in DOMAIN.rglob("*.py") for name in imported_names(path)}
    assert not used & acting
