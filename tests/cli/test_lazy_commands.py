"""Commands import what they need and no more, so that they answer at once."""

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from threading import Thread

import pytest

from wakeful.cli.main import COMMANDS, load

HEAVY = {"pydantic", "pydantic_ai", "fastapi", "starlette", "uvicorn", "apsw", "asyncpg", "apprise", "httpx2", "rich"}
HEAVY |= {"prompt_toolkit", "websockets"}  # for conversations alone
WATCH = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from wakeful.cli.main import app
app(sys.argv[1:])
"""


@pytest.fixture
def port():
    """The port of a server that has no wakes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"wakes": [], "next": null}')

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("wake", "ls"),
        ("wake", "--help"),
        ("db", "rows", "--help"),
        ("serve", "--help"),
        ("chat", "--help"),
    ],
)
def test_a_command_imports_nothing_of_the_server(tmp_path, port, arguments):
    environment = {"WAKEFUL_CONFIG_DIR": str(tmp_path), "WAKEFUL_TOKEN": "t", "WAKEFUL_PORT": str(port)}
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *arguments], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert HEAVY & set(json.loads(done.stderr)) == set()


@pytest.mark.parametrize(
    ("words", "modules"),
    [
        (("wa",), set()),
        (("wake", "ad"), {"wakes.commands", "cli.zone"}),
        (("db", "rows", "--sh"), {"database.commands"}),
    ],
    ids=["a command", "a subcommand", "an option"],
)
def test_completing_a_word_imports_only_the_module_of_its_command(words, modules):
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *words],
        env={"_WAKEFUL_COMPLETE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(words[-1])
    imported = set(json.loads(done.stderr))
    assert HEAVY & imported == set()
    named = {place.place.partition(":")[0] for place in COMMANDS.values()} - {"cli.completion", "cli.options"}
    assert {name.removeprefix("wakeful.") for name in imported} & named == modules


@pytest.mark.parametrize("arguments", [("-m", "wakeful", "--version"), ("-m", "wakeful", "version")])
def test_the_package_is_a_command_too(arguments):
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{version('wakeful')}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_command_says(name):
    real = load(name).get_short_help_str(200).removesuffix(".")
    assert COMMANDS[name].help.removesuffix(".") in (real, real.partition(". ")[0])
