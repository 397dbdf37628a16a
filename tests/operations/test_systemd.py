"""`wakeful service`: the systemd unit, and the messages that the server sends to systemd."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from forked_process import Forked
from forked_process import run as run_process
from wakeful.app.listening import notify
from wakeful.operations.systemd import ServiceUnit


@pytest.fixture
def environment(tmp_path):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("WAKEFUL_")}
    ours = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": f"{tmp_path}/config"}
    return plain | ours | {"WAKEFUL_DATA_DIR": f"{tmp_path}/data", "WAKEFUL_CONFIG_DIR": f"{tmp_path}/wakeful"}


def run_forked(environment, *arguments):
    return run_process(arguments, environment, Path(environment["HOME"]) / "errors")


def test_it_is_installed_shown_and_removed(environment, tmp_path):
    unit = tmp_path / "config" / "systemd" / "user" / "wakeful.service"
    done = run_forked(environment, "service", "install", "--no-start", "--env", "WAKEFUL_PORT=8421")
    assert done.stdout.splitlines()[0] == f"Wrote {unit}."
    shown = run_forked(environment, "service", "show", "--env", "WAKEFUL_PORT=8421").stdout
    assert unit.read_text() == shown
    assert "Environment=WAKEFUL_PORT=8421" in shown
    run_forked(environment, "service", "uninstall")
    assert not unit.exists()
    again = run_forked(environment, "service", "uninstall")
    assert (again.returncode, "nothing to remove" in again.stderr) == (1, True)


def test_a_variable_without_a_value_is_refused(environment):
    refused = run_forked(environment, "service", "show", "--env", "WAKEFUL_PORT")
    assert (refused.returncode, "WAKEFUL_PORT=8421" in refused.stderr) == (2, True)


@pytest.mark.parametrize("is_system", [False, True])
def test_systemd_accepts_the_unit(is_system, tmp_path):
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    program = tmp_path / "a folder with 100% $pace" / "wakeful"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = ServiceUnit(
        program=(str(program), "serve"),
        is_system=is_system,
        environment={"WAKEFUL_X": 'with "quotes" and 100%'},
        credentials={"token": Path("/etc/wakeful/token")},
    )
    path = tmp_path / "wakeful.service"
    path.write_text(unit.render())
    scope = () if is_system else ("--user",)
    done = subprocess.run(
        [analyze, *scope, "verify", "--man=no", path],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)},
    )
    ours = [line for line in done.stderr.splitlines() if "wakeful.service" in line]  # an unknown key is only a remark
    assert ours == []
    assert done.returncode == 0, done.stderr


def test_the_server_says_when_it_is_ready_alive_and_stopping(environment, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(f"{tmp_path}/n")
        systemd.settimeout(30)
        given = {"NOTIFY_SOCKET": f"{tmp_path}/n", "WATCHDOG_USEC": "300000"}
        process = Forked(("serve", "--port", "0"), environment | given, tmp_path / "log")
        heard = [systemd.recv(1000).decode() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        while heard[-1] != "STOPPING=1":
            heard.append(systemd.recv(1000).decode())
        assert process.wait(30) == 0
        process.close()
    assert heard[:3] == ["READY=1", *["WATCHDOG=1\nSTATUS=Wakes are fired."] * 2]


def test_without_systemd_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
