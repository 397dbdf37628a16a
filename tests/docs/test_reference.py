"""The reference is what the code says, and the examples run."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
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


def test_every_scope_is_in_the_reference(rendered):
    scopes = re.findall(r"^\| `(\w+ \S+)` \| (\S+) \|", rendered["rest.md"], re.MULTILINE)
    open_routes = {route for route, scope in scopes if scope == "–"}
    assert open_routes == {"GET /healthz", "GET /login", "POST /login"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The server as the quickstart starts it, on a free port."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(tmp_path / "data"), "WAKEFUL_CONFIG_DIR": str(tmp_path / "config")}
    process = subprocess.Popen(
        [Path(sys.executable).parent / "wakeful", "serve", "--port", "0"],
        env=plain | places,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    address = re.search(r"http://(\S+)", process.stdout.readline())
    assert address is not None
    yield address[1]
    process.kill()
    process.communicate()


async def test_the_client_of_the_quickstart_sees_its_agent_wake(tmp_path, capsys, server):
    text = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {"__name__": "quickstart"}
    exec(compile(code, "quickstart.md", "exec"), names)
    await names["main"](server, (tmp_path / "config" / "token").read_text().strip())
    shown = capsys.readouterr().out
    assert "'tool': 'write_file'" in shown
    assert "'action': 'scheduled'" in shown
    assert "'action': 'fired'" in shown
    assert "buy milk" in shown.rpartition("'action': 'fired'")[2]


def test_every_command_is_documented():
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`wakeful ([a-z]+(?: [a-z][a-z-]*)?)", page))
    known = commands()
    assert known == {each if each in known else each.split(" ")[0] for each in named}


def commands() -> set[str]:
    loaded = {name: load(name) for name in COMMANDS}
    groups = {name: each.commands for name, each in loaded.items() if isinstance(each, TyperGroup)}
    return (loaded.keys() - groups) | {f"{name} {each}" for name, found in groups.items() for each in found}
