"""A data directory that a server has used, and processes of `wakeful serve` on it."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import forked_process

TOKEN = "a-token-for-all-tests"
COLUMNS = [{"name": "title", "type": "text"}]


class Place:
    """A data and a config directory below one folder, and perhaps a PostgreSQL database."""

    def __init__(self, folder: Path, database_url: str | None = None) -> None:
        self.folder = folder
        self.data, self.config = folder / "data", folder / "config"
        self.log = folder / "log"
        plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
        shared = {} if database_url is None else {"WAKEFUL_DATABASE_URL": database_url}
        self.environment = (
            plain
            | shared
            | {
                "WAKEFUL_DATA_DIR": str(self.data),
                "WAKEFUL_CONFIG_DIR": str(self.config),
                "WAKEFUL_TOKEN": TOKEN,
                "WAKEFUL_MODEL": "demo",
            }
        )

    def copy(self, folder: Path) -> "Place":
        """Copy the directories as they are."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return Place(folder, self.environment.get("WAKEFUL_DATABASE_URL"))

    def files(self) -> list[Path]:
        """Return every file except those in workspaces, relative to the folder."""
        found = (path for root in (self.data, self.config) for path in sorted(root.rglob("*")) if path.is_file())
        return [path.relative_to(self.folder) for path in found if "workspace" not in path.parts]

    def refused(self, *arguments: str) -> str:
        """Start a server that must refuse to start, and return its log."""
        with self.tried(*arguments) as running:
            assert running is None
        return self.log.read_text()

    @contextmanager
    def served(self, *arguments: str) -> Iterator["Running"]:
        """Start a server, and stop it gracefully unless it has ended."""
        with self.tried(*arguments) as running:
            assert running is not None, self.log.read_text()
            yield running

    @contextmanager
    def tried(self, *arguments: str) -> Iterator["Running | None"]:
        """Start a server; yield None if it refuses to start, and then the log has the reason."""
        self.log.unlink(missing_ok=True)
        running = Running(forked_process.Forked(("serve", "--port", "0", *arguments), self.environment, self.log))
        try:
            if running.find_address():
                yield running
                running.stop()
            else:
                assert running.process.wait(20) == 1
                yield None
        finally:
            running.close()
        assert "Traceback" not in self.log.read_text(), self.log.read_text()


class Running:
    """A server process and a client of its owner."""

    def __init__(self, process: forked_process.Forked) -> None:
        self.process = process
        self.said = ""  # on its standard output
        self._client: httpx.Client | None = None
        self._has_ended = False

    def find_address(self) -> bool:
        """Read until the server prints its address; False if it ends before."""
        while (found := re.search(r"Wakeful \S+ on (http://\S+)", self.said)) is None:
            line = self.process.stdout.readline()
            if not line:
                return False
            self.said += line
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._client = httpx.Client(base_url=found[1], headers=headers, timeout=20, verify=False)
        return True

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        assert self._client is not None
        return self._client.request(method, path, json=body)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.is_success, answer.text
        return answer.json()

    def post(self, path: str, body: Any) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.is_success, answer.text
        return answer.json()

    def notices(self) -> list[str]:
        return [notice["code"] for notice in self.get("/notifications")["notifications"]]

    def stop(self) -> None:
        if not self._has_ended:
            self.process.send_signal(signal.SIGTERM)
            self._has_ended = True
            assert self.process.wait(20) == 0
            self.said += self.process.stdout.read()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        self._has_ended = True

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self.process.close()
