"""The examples of the documentation work as they are written, except that the servers have other ports."""

import ast
import json
import os
import re
import signal
import socket
import subprocess
import textwrap
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from doc_blocks import CRASHED, REASONS, ROOT, SHELLS, STOPPED, Block, all_blocks, is_bash, split_console, to_pattern
from forked_process import Forked
from wakeful.config.settings import Settings

pytestmark = pytest.mark.whole

BLOCKS = all_blocks()
RUN = [block for block in BLOCKS if block.is_run and block.language in (*SHELLS, "python")]
SETUP = next(block for block in RUN if block.page == "docs/quickstart.md" and block.language == "bash")
MCP = next(block for block in BLOCKS if block.page == "docs/mcp-servers.md" and block.language == "toml")
PRIVATE = next(block for block in BLOCKS if block.page == "docs/tutorials/watch-a-page.md" and block.language == "toml")
OTHER_PORTS = ("8091", "8092")  # of programs that the tutorials start
PAGES = sorted({block.page for block in RUN if not block.starts_server and not block.mark})
SHOWN = {  # what a page's commands must have printed, besides the lines in its console blocks
    "docs/agenda.md": ("hourly", "paused", "Resumed."),
    "docs/doors/next-run.md": ("reactive", "run_now", "next_run", "success"),
    "docs/doors/recalls.md": ("Skipped.", "success", "You scheduled it for", "Cancelled."),
    "docs/doors/scheduler.md": ("A fresh start", "success", "session", "run_now"),
    "docs/quickstart.md": ("success", "'tool': 'write_file'", "'action': 'scheduled'", "'action': 'fired'", "buy milk"),
}
ON_A_NEW_SERVER = ("docs/cli-examples.md", "docs/cli-database.md")  # they show everything that a command prints
HOME = "/home/me"  # in the documentation
NOT_SETTINGS = {"mcp"}
MARK = "== block "
RESET = """
curl -s -X PATCH $URL/agents/$AGENT -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '{"mcp_servers": []}'  # of the examples, which do not exist
"""


@dataclass(frozen=True)
class Place:
    """A server for all pages, started in an empty home directory, and how to stop it."""

    process: Forked
    environment: dict[str, str]
    port: str

    def run(self, script: str, folder: Path) -> str:
        """Run the quickstart's setup and a script in bash, and return what they print."""
        curl = 'curl() { command curl --fail-with-body "$@"; }'  # else a refusal would look like a success
        end = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"  # else a failed script would leave programs behind
        setup = f"{curl}\n{end}\ncd {ROOT}\n{SETUP.text}\ncd {folder}\n"
        ports = {"8420": self.port} | {port: str(free_port()) for port in OTHER_PORTS}
        script = setup + script
        for written, real in ports.items():
            script = script.replace(written, real)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=280,
        )
        assert done.returncode == 0, done.stdout[-3000:]
        printed = done.stdout.replace(self.environment["HOME"], HOME)
        for written, real in ports.items():
            printed = printed.replace(f":{real}", f":{written}")
        return printed


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("home")
    config = home / ".config/wakeful"
    (config / "secrets").mkdir(parents=True)
    (config / "secrets/files").write_text("secret")
    (config / "wakeful.toml").write_text(f"{PRIVATE.text}\n{MCP.text}")
    yield from _serve(_plain(home) | {"WEATHER_AUTH": "secret"})


@pytest.fixture(scope="module")
def new_place(tmp_path_factory) -> Iterator[Place]:
    """A server that no other page has used, without a settings file."""
    yield from _serve(_plain(tmp_path_factory.mktemp("new")))


@pytest.fixture(scope="module")
def operated_place(tmp_path_factory) -> Iterator[Place]:
    """A server in which nothing is wrong, for the handbook; that of the other pages has programs that do not exist."""
    yield from _serve(_plain(tmp_path_factory.mktemp("operated")))


def _place_of(page: str) -> str:
    if page.startswith("docs/operate/"):
        return "operated_place"
    return "new_place" if page in ON_A_NEW_SERVER else "place"


def _serve(environment: dict[str, str]) -> Iterator[Place]:
    log = Path(environment["HOME"]) / "log"
    process = Forked(("serve", "--port", "0"), environment, log)
    port = re.search(r"http://127.0.0.1:(\d+)", process.stdout.readline())
    assert port is not None, log.read_text()
    yield Place(process, environment | {"WAKEFUL_PORT": port[1]}, port[1])
    process.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _plain(home: Path) -> dict[str, str]:
    ours = ("WAKEFUL_", "XDG_", "MAKE", "MFLAGS", "ARGS", "VIRTUAL_ENV")  # `make test ARGS=…` exports its options
    plain = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return plain | {"HOME": str(home), "TZ": "UTC"}


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, tmp_path, request):
    place = request.getfixturevalue(_place_of(page))
    blocks = [block for block in RUN if block.page == page and not block.starts_server and not block.mark]
    printed = place.run("\n".join(_script_of(block, tmp_path) for block in blocks) + RESET, tmp_path)
    for block in blocks:
        own = printed.partition(f"{MARK}{block}\n")[2].partition(MARK)[0]
        assert _missing(block, own) == [], own
    assert [words for words in SHOWN.get(page, ()) if words not in printed] == []


@pytest.mark.parametrize("block", [block for block in RUN if block.starts_server], ids=str)
def test_a_block_that_starts_a_server_starts_one(block, tmp_path):
    command, _ = split_console(block.text)
    # Its own process group: make does not pass SIGTERM on to the server.
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=ROOT,
        env=_plain(tmp_path) | {"WAKEFUL_PORT": "0", "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    printed = ""
    try:
        while "/login?code=" not in printed:  # in the last line
            line = process.stdout.readline()
            assert line, printed
            printed += re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8420", line.replace(str(tmp_path), "~"))
        assert _missing(block, printed) == [], printed
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)


def test_blocks_for_a_stopped_server_run(place, tmp_path):
    place.process.send_signal(signal.SIGTERM)
    place.process.wait(30)
    blocks = [block for block in RUN if block.mark == STOPPED]
    assert blocks
    path = SETUP.text.splitlines()[0]
    for block in blocks:
        command, _ = split_console(block.text)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{path}\ncd {tmp_path}\n{command}"],
            cwd=ROOT,
            env=place.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout
        assert _missing(block, done.stdout.replace(place.environment["HOME"], HOME)) == []


def test_an_interrupted_run_is_continued(tmp_path):
    [block] = [block for block in RUN if block.mark == CRASHED]
    (tmp_path / "home").mkdir()
    limits = {"WAKEFUL_MAX_ATTEMPTS": "1", "WAKEFUL_FETCH_PRIVATE_HOSTS": "127.0.0.1"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        environment = _plain(tmp_path / "home") | limits | {"SILENT": url}
        with contextmanager(_serve)(environment) as place:
            place.run('wakeful wake add "fetch $SILENT" > /dev/null', tmp_path)
            held, _ = silent.accept()  # it is in the middle of a tool call; leaving the block kills the server
        held.close()
    with contextmanager(_serve)(environment) as place:
        wait = "until wakeful inbox ls | grep -q interrupted; do sleep 0.1; done\n"
        printed = place.run(wait + _script_of(block, tmp_path), tmp_path)
    assert _missing(block, printed) == [], printed


def test_what_is_not_run_says_why():
    assert {block.mark for block in BLOCKS if not block.is_run} <= REASONS
    assert {block.mark for block in BLOCKS if block.is_run} == {"", STOPPED, CRASHED}


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in SHELLS], ids=str)
def test_commands_are_correct_bash(block):
    command = split_console(block.text)[0] if block.language == "console" else block.text
    assert command
    assert is_bash(command)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=str)
def test_python_compiles(block):
    ast.parse("async def excerpt():\n" + textwrap.indent(block.text, "    ") if not block.is_run else block.text)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "json"], ids=str)
def test_json_can_be_parsed(block):
    try:
        json.loads(block.text)
    except ValueError:
        for line in block.text.splitlines():
            json.loads(line)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "toml"], ids=str)
def test_settings_have_names_that_exist(block):
    names = {name.removesuffix("_file") for name in tomllib.loads(block.text)}
    assert names <= Settings.model_fields.keys() | NOT_SETTINGS


def test_blocks_name_their_language():
    assert {block.language for block in BLOCKS} <= {
        *SHELLS,
        *("python", "json", "toml", "yaml", "nginx", "caddyfile", "markdown", "text", ""),
    }


def _script_of(block: Block, folder: Path) -> str:
    if block.language == "python":
        file = folder / f"line{block.line}.py"
        file.write_text(block.text)
        script = f"python {file}"
    else:
        script = split_console(block.text)[0] if block.language == "console" else block.text
    return f"printf '\\n{MARK}{block}\\n'\n{script}"


def _missing(block: Block, printed: str) -> list[str]:
    """Return the lines in a console block that were not printed; `…` stands for anything."""
    _, expected = split_console(block.text) if block.language == "console" else ("", [])
    return [line for line in expected if not re.search(to_pattern(line), printed)]
