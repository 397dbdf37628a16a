"""Tab completes commands, options and values, in a real shell. zsh and fish are tried where they are installed."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

COMMANDS = Path(sys.executable).parent
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "--private", "-i"],
}
LOAD = {
    "bash": 'eval "$(wakeful completion bash)"',
    "zsh": 'autoload -Uz compinit; compinit -D; eval "$(wakeful completion zsh)"',
    "fish": "wakeful completion fish | source",
}
SHELLS = [shell for shell in START if shell == "bash" or shutil.which(shell)]
HOME, END = "\x01", "\r"  # Ctrl-A goes to the start of the line


class Typed:
    """A shell on a terminal, into which a test types."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._shown = ""

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def expect(self, words: str) -> None:
        """Read until the shell has shown some words, and forget what came before."""
        self._read_until(words)
        self._shown = self._shown.partition(words)[2]

    def _read_until(self, words: str) -> None:
        until = time.monotonic() + 60
        while words not in self._shown:
            assert select.select([self._terminal], [], [], until - time.monotonic())[0], (words, self._shown)
            self._shown += os.read(self._terminal, 4096).decode(errors="replace")

    def complete(self, line: str) -> str:
        """Type a line and Tab, and return the words that are then in the line."""
        self.type(f"{line}\t")
        time.sleep(1)  # what a shell shows meanwhile depends on the shell, so there is nothing to wait for
        self.type(f"{HOME}echo 'now:' {END}")
        self.expect("\nnow: ")
        self._read_until("\n")
        return self._shown.partition("\n")[0].strip()


@contextmanager
def typing(shell: str, home: Path) -> Iterator[Typed]:
    environment = {"HOME": str(home), "PATH": f"{COMMANDS}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> "}
    ours, theirs = pty.openpty()
    command = ["setsid", "--ctty", *START[shell]]  # fish does not start without a controlling terminal
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=home)
    os.close(theirs)
    try:
        typed = Typed(ours)
        typed.type(f"{LOAD[shell]}; echo rea''dy{END}")
        typed.expect("ready")
        yield typed
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.parametrize("shell", SHELLS)
def test_tab_completes(shell, tmp_path):
    (tmp_path / "shopping.csv").touch()
    with typing(shell, tmp_path) as typed:
        assert typed.complete("wakeful compl") == "wakeful completion"
        assert typed.complete("wakeful wake ad") == "wakeful wake add"
        assert typed.complete("wakeful pause --for to") == "wakeful pause --for tomorrow"
        assert typed.complete("wakeful wake add milk --on-m") == "wakeful wake add milk --on-miss"
        assert typed.complete("wakeful db import notes shopp") == "wakeful db import notes shopping.csv"


def test_a_shell_without_a_script_is_refused():
    done = subprocess.run([COMMANDS / "wakeful", "completion", "tcsh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr
