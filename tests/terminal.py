"""A server as `wakeful serve` starts it, and a terminal in which commands are typed."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import forked_process


class Terminal:
    """Runs commands with the environment of a server."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.environment = environment
        self._folder = folder

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return forked_process.run(arguments, self.environment, self._folder / "errors")

    def read(self, *arguments: str):
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextmanager
def a_terminal(folder: Path, **settings: str) -> Iterator[Terminal]:
    """Start a server with its data in a folder, and open a terminal beside it."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(folder / "data"), "WAKEFUL_CONFIG_DIR": str(folder / "config"), **settings}
    process = forked_process.Forked(("serve", "--port", "0"), plain | places, folder / "log")
    try:
        port = re.search(r"http://127.0.0.1:(\d+)", process.stdout.readline())
        assert port is not None, (folder / "log").read_text()
        yield Terminal(plain | places | {"WAKEFUL_PORT": port[1], "COLUMNS": "80"}, folder)
    finally:
        process.close()
