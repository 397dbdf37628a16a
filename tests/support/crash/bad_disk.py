"""A server whose disk fails when a test wants it: a preloaded library returns EIO to SQLite."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import IO

import pytest

_SOURCE = Path(__file__).with_name("bad_disk.c")
_SERVER = """
import sys
sys.executable = sys.argv.pop(1)  # database workers are started with this one, and get the library too
from wakeful.cli.main import app
app(sys.argv[1:], prog_name="wakeful")
"""


class BadDisk:
    """Fails what is done to SQLite's files below a folder: r (read), w (write), s (sync), or several."""

    def __init__(self, folder: Path, data_dir: Path) -> None:
        compiler = which("gcc") or which("cc")
        if compiler is None or sys.platform != "linux":
            pytest.skip("needs Linux and a C compiler, to put a failing disk between SQLite and the system")
        self._control = folder / "what fails"
        library = folder / "bad_disk.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, _SOURCE, "-ldl"], check=True)
        self._environment = {
            "LD_PRELOAD": str(library),
            "BAD_DISK": str(data_dir),
            "BAD_DISK_FILE": str(self._control),
        }
        # A worker is started without any environment, so what starts it puts it there.
        self.python = folder / "python"
        given = " ".join(f"{name}='{value}'" for name, value in self._environment.items())
        self.python.write_text(f'#!/bin/sh\n{given} exec {sys.executable} "$@"\n')
        self.python.chmod(0o700)

    def fail(self, what: str) -> None:
        beside = self._control.with_suffix(".new")
        beside.write_text(what)
        beside.replace(self._control)

    def work(self) -> None:
        self._control.unlink(missing_ok=True)

    def use_in_workers(self) -> None:
        """Start the database workers of this process on this disk."""
        sys.executable = str(self.python)

    def launch(self, arguments: tuple[str, ...], environment: Mapping[str, str], errors: Path) -> "Launched":
        """Start a server on this disk."""
        return Launched([str(self.python), "-c", _SERVER, str(self.python), *arguments], environment, errors)


class Launched:
    """As much of a `forked_process.Forked` as tests need, of a process with a fresh interpreter."""

    def __init__(self, command: list[str], environment: Mapping[str, str], errors: Path) -> None:
        with errors.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=dict(environment), stdout=subprocess.PIPE, stderr=log, text=True, cwd=os.sep
            )
        assert self._process.stdout is not None
        self.stdout: IO[str] = self._process.stdout
        self.pid = self._process.pid

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> int:
        return self._process.wait(timeout)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self.stdout.close()
