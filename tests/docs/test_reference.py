"""The reference is what the code says."""

import re
import runpy
from pathlib import Path

import pytest
from typer.core import TyperGroup

from wakeful.cli.main import COMMANDS, load

ROOT = Path(__file__).parents[2]
PAGES = ("rest.md", "frames.md", "tools.md", "times.md")


@pytest.fixture(scope="module")
def rendered() -> dict[str, str]:
    return runpy.run_path(str(ROOT / "scripts/reference_docs.py"))["render"]()


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_is_current(rendered, page):
    written = (ROOT / "docs/reference" / page).read_text(encoding="utf-8")
    assert rendered[page] == written, "run `make docs`"


def test_the_types_of_the_page_are_current():
    for name, text in runpy.run_path(str(ROOT / "scripts/page_types.py"))["render"]().items():
        assert (ROOT / "web/src/api" / name).read_text(encoding="utf-8") == text, "run `make docs`"


def test_the_options_of_agent_edit_are_current():
    script = runpy.run_path(str(ROOT / "scripts/agent_options.py"))
    assert script["PAGE"].read_text(encoding="utf-8") == script["render"](), "run `make docs`"


def test_the_help_of_every_command_is_current():
    script = runpy.run_path(str(ROOT / "scripts/cli_docs.py"))
    text = script["render"]()
    assert script["PAGE"].read_text(encoding="utf-8") == text, "run `make docs`"
    assert set(re.findall(r"^## `wakeful (.+)`$", text, re.MULTILINE)) == commands() | groups()
    assert "--install-completion" not in text  # of one group alone, under a name that is not a program


def test_every_scope_is_in_the_reference(rendered):
    scopes = re.findall(r"^\| `(\w+ \S+)` \| (\S+) \|", rendered["rest.md"], re.MULTILINE)
    open_routes = {route for route, scope in scopes if scope == "–"}
    assert open_routes == {"GET /healthz", "GET /readyz", "GET /login", "POST /login", "POST /hooks/{hook_id}"}


def test_every_command_is_documented():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`wakeful ([a-z]+(?: [a-z][a-z-]*)?)", page))
    known = commands()
    assert known == {each if each in known else each.split(" ")[0] for each in named}


def groups() -> set[str]:
    return {name for name in COMMANDS if isinstance(load(name), TyperGroup)}


def commands() -> set[str]:
    loaded = {name: load(name) for name in COMMANDS}
    groups = {name: each.commands for name, each in loaded.items() if isinstance(each, TyperGroup)}
    alone = {name for name, each in loaded.items() if name not in groups or each.invoke_without_command}
    return alone | {f"{name} {each}" for name, found in groups.items() for each in found}
