"""`wakeful` as a process forked from one that has imported it: importing takes longer than most of them run."""

import multiprocessing
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

import pytest

HELPERS = str(Path(__file__).parent)  # a PYTHONPATH with them

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["preload"])


class Forked:
    """As much of a `subprocess.Popen` as tests need; its standard error goes into a file."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        environment: Mapping[str, str],
        errors: Path,
        prepare: Callable[[], None] | None = None,  # called in the process first; a function of a module
    ) -> None:
        here, there = _processes.Pipe(duplex=False)
        self._process = fork(_run, arguments, dict(environment), there, errors, prepare)
        there.close()
        self.stdout: IO[str] = os.fdopen(os.dup(here.fileno()), encoding="utf-8")
        here.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def read_addresses(self) -> list[str]:
        """Read what `wakeful serve` prints up to its login link, and return the address and that link."""
        said = ""
        while "/login?code=" not in said and (line := self.stdout.readline()):
            said += line
        return re.findall(r"http://\S+", said)

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("wakeful", timeout)
        return self._process.exitcode

    def close(self) -> None:
        """Kill it if it still runs, and close its pipe."""
        self._process.kill()
        self._process.join()
        self._process.close()
        self.stdout.close()


def fork(target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start a function in a process of its own."""
    _warm_up()
    process = _processes.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


@cache
def _warm_up() -> None:
    """Start the process that the others are forked from. It finds our modules only by PYTHONPATH."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", HELPERS)
        forkserver.ensure_running()


def run(arguments: tuple[str, ...], environment: Mapping[str, str], errors: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    errors.unlink(missing_ok=True)
    process = Forked(arguments, environment, errors)
    try:
        said = process.stdout.read()
        code = process.wait(60)
    finally:
        process.close()
    return subprocess.CompletedProcess(arguments, code, said, errors.read_text(encoding="utf-8"))


def _run(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    out: Connection,
    errors: Path,
    prepare: Callable[[], None] | None,
) -> None:
    from wakeful.cli.main import app

    assert (
        "preload" in sys.modules
    )  # else every test would take its time to import everything, and nobody would know why
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out.fileno(), 1)
    out.close()
    file = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 2)
    os.close(file)
    if prepare is not None:
        prepare()
    sys.argv = ["wakeful", *arguments]
    app(arguments, prog_name="wakeful")
