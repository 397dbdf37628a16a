"""Without what only Linux has, everything can be imported, and a server works and says what is missing."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forked_process import Forked
from other_system import be_elsewhere
from terminal import Terminal

TESTS = Path(__file__).parents[1]
SUPPORT = TESTS / "support"
SOURCE = TESTS.parent / "src"
GUARD = SOURCE / "wakeful/sandbox/guard.py"
AWAY = f"import sys; sys.path.insert(0, {str(SUPPORT)!r}); import other_system; other_system.take_linux_away();"
IMPORT_ALL = """
import importlib, pkgutil, types
sys.modules["_scproxy"] = types.ModuleType("_scproxy")  # of macOS, for urllib
sys.modules["_scproxy"]._get_proxies = sys.modules["_scproxy"]._get_proxy_settings = dict
import wakeful
for module in pkgutil.walk_packages(wakeful.__path__, "wakeful."):
    if "__main__" not in module.name:
        importlib.import_module(module.name)
"""


@pytest.mark.whole
def test_every_module_can_be_imported():
    done = subprocess.run([sys.executable, "-c", AWAY + IMPORT_ALL], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_server_works_and_says_what_is_missing(tmp_path):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(tmp_path / "data"), "WAKEFUL_CONFIG_DIR": str(tmp_path / "config")}
    server = Forked(("serve", "--port", "0"), plain | places, tmp_path / "log", be_elsewhere)
    try:
        port = re.search(r"http://127.0.0.1:(\d+)", server.stdout.readline())
        assert port is not None, (tmp_path / "log").read_text()
        terminal = Terminal(plain | places | {"WAKEFUL_PORT": port[1]}, tmp_path)
        wake = terminal.run("wake", "add", "Write ping to ping.txt with write_file.", "--when", "1h", "--quiet")
        ended = terminal.run("wake", "run", wake.stdout.strip(), "--wait")
        assert (ended.returncode, "success" in ended.stdout) == (0, True), ended.stderr
        said = (tmp_path / "log").read_text()
        assert "can read the server's memory" in said
        assert "programs cannot be confined on this machine" in said
        assert "needs Linux" in said
    finally:
        server.close()


def start_guard(script: str) -> subprocess.Popen[str]:
    """Run a script under a guard, from a shell that stands for the server."""
    code = f"{AWAY} import runpy; runpy.run_path({str(GUARD)!r}, run_name='__main__')"
    server = '"$0" -c "$1" $$ null /bin/sh -c "$2" & wait $!'
    return subprocess.Popen(
        ["/bin/sh", "-c", server, sys.executable, code, script], stdout=subprocess.PIPE, text=True, process_group=0
    )


def test_a_guard_returns_the_exit_code():
    with start_guard("echo done; exit 7") as server:
        assert server.communicate(timeout=30)[0] == "done\n"
        assert server.returncode == 7


def test_a_guard_kills_the_rest_of_the_command():
    with start_guard("sleep 600 & echo $!") as server:
        left = int(server.stdout.readline())
        assert server.wait(30) == 0
        assert is_gone(left)


def test_a_guard_ends_with_its_server():
    with start_guard("echo $$; exec sleep 600") as server:
        child = int(server.stdout.readline())
        assert not is_gone(child, seconds=1)
        server.kill()
        assert is_gone(child)


def is_gone(pid: int, seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
        if state in ("", "Z"):
            return True
        time.sleep(0.05)
    return False
