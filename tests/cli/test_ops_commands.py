"""Commands about a server and its settings: login, open, status, logs, config, mcp; and how it starts."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from network.stranger import a_stranger
from terminal import Terminal, a_terminal

WAKEFUL = Path(sys.executable).with_name("wakeful")
MCP = Path(__file__).parents[1] / "support/mcp_server.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ops")


@pytest.fixture(scope="module")
def terminal(folder):
    with a_terminal(folder) as terminal:
        yield terminal


@pytest.fixture
def alone(tmp_path):
    """A terminal without a server."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(tmp_path / "data"), "WAKEFUL_CONFIG_DIR": str(tmp_path / "config")}
    return Terminal(plain | places | {"WAKEFUL_PORT": "0"}, tmp_path)


class Screen:
    """A command in a terminal of its own."""

    def __init__(self, environment: dict[str, str], *command: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [WAKEFUL, *command], env=environment | {"TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self.text = ""

    def wait_for(self, words: str, seconds: float = 30) -> str:
        until = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < until, self.text
            if select.select([self._ours], [], [], 0.5)[0]:
                try:
                    self.text += os.read(self._ours, 65536).decode()
                except OSError:
                    break  # it has ended
        assert words in self.text, self.text
        return self.text

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        code = self.process.wait(20)
        os.close(self._ours)
        return code


def test_login_is_for_another_user_by_name(terminal):
    me = terminal.read("login", "--user", "Owner")
    assert me["expires_in"] == 600
    refused = terminal.run("login", "--user", "Nobody")
    assert (refused.returncode, "'Nobody'" in refused.stderr) == (1, True)


def test_open_opens_a_browser_or_prints_the_link(terminal, tmp_path):
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    plain = {key: value for key, value in terminal.environment.items() if "DISPLAY" not in key and key != "BROWSER"}
    opened = Terminal(plain | {"BROWSER": f"{browser} %s"}, tmp_path).run("open")
    assert (opened.returncode, "Opened http://" in opened.stdout) == (0, True), opened.stderr
    assert "/login?code=" in seen.read_text()
    printed = Terminal(plain, tmp_path).run("open")
    assert "/login?code=" in printed.stdout
    assert "no browser" in printed.stderr


@pytest.mark.parametrize(
    "made",
    [
        {"url": "--renderer-cmd-prefix=touch"},
        {"url": "file:///etc/passwd"},
        {"url": "ssh://-oProxyCommand=touch/x"},
        {"url": "https://127.0.0.1:{port}/login?code=1"},
        {"url": "http://evil.example/login?code=1"},
        {"url": "http://127.0.0.1:{port}@evil.example/login?code=1"},
        {"url": "http://127.0.0.1:{port}\\@evil.example/login?code=1"},
        {"url": "http://127.0.0.1:1/login?code=1"},
        {"url": "http://127.0.0.1:nothing/login?code=1"},
        {"url": "http://127.0.0.1:{port}/\x1b]0;title\x07"},
        {"url": " http://127.0.0.1:{port}/login?code=1"},
        {"url": ["http://127.0.0.1:{port}/"]},
        {"path": "@evil.example/"},
        {"path": ".evil.example/"},
    ],
)
def test_open_takes_only_a_link_to_the_server_that_was_asked(tmp_path, made):
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    answer = {"url": None, "path": "/login?code=1", "expires_in": 600} | made
    with a_stranger(answer=answer) as (port, _):
        for key, value in answer.items():
            answer[key] = value.replace("{port}", str(port)) if isinstance(value, str) else value
        environment = {"WAKEFUL_CONFIG_DIR": str(tmp_path), "BROWSER": f"{browser} %s", "WAKEFUL_TOKEN": "named"}
        plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
        refused = Terminal(plain | environment, tmp_path).run("--url", f"http://127.0.0.1:{port}", "open")
    assert (refused.returncode, refused.stdout, seen.exists()) == (1, "", False)
    assert ("is not a link to" in refused.stderr, "\x1b" in refused.stderr.replace("\x1b[", "")) == (True, False)


def test_open_takes_the_public_address_in_this_machines_settings(tmp_path):
    public = {"WAKEFUL_PUBLIC_URL": "https://wakeful.example.org", "WAKEFUL_ALLOWED_HOSTS": "wakeful.example.org"}
    with a_terminal(tmp_path, **public) as there:
        assert there.run("login").stdout.startswith("https://wakeful.example.org/login?code=")
        elsewhere = {key: value for key, value in there.environment.items() if key not in public}
        refused = Terminal(elsewhere, tmp_path).run("login")
    assert (refused.returncode, "public_url" in refused.stderr) == (1, True)


def test_status_shows_one_screen(terminal):
    terminal.run("wake", "add", "Look at the garden", "--when", "1h", "--comment", "garden")
    terminal.run("pause", "--reason", "holiday")
    shown = terminal.run("status")
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) < 24
    for words in (f":{terminal.environment['WAKEFUL_PORT']}", "demo", "garden", "holiday", "SQLite", "free"):
        assert words in shown.stdout
    found = terminal.read("status")
    assert (found["ready"], found["problems"], found["store"]) == (True, [], "sqlite")
    terminal.run("resume")


def test_status_shows_each_agent_that_is_paused(terminal):
    terminal.run("agent", "add", "Night Watch")
    terminal.run("pause", "--agent", "Night Watch", "--for", "2h", "--reason", "day off")
    shown = terminal.run("status").stdout
    assert re.search(r"paused +Night Watch, until \S+ \S+ \(day off\); end it with `(.+)`", shown)
    assert "all agents" not in shown
    assert [each["agent"] for each in terminal.read("status")["paused_agents"]] == ["Night Watch"]
    command = re.search(r"end it with `wakeful (.+)`", shown)[1]
    assert terminal.run(*shlex.split(command)).returncode == 0
    assert re.search(r"paused +no\n", terminal.run("status").stdout)


def test_status_without_a_server_says_so(alone):
    refused = alone.run("status")
    assert (refused.returncode, "wakeful serve" in refused.stderr) == (3, True)


def test_logs_shows_the_last_lines(terminal):
    shown = terminal.run("logs")
    assert "schema migrated" in shown.stdout
    assert "\x1b" not in shown.stdout
    [line] = [
        each
        for each in map(json.loads, terminal.run("logs", "--json").stdout.splitlines())
        if "schema" in each["message"]
    ]
    assert line["fields"]["from"] == 0
    assert "schema migrated" not in terminal.run("logs", "--level", "warning").stdout
    refused = terminal.run("logs", "--since", "yesterday")
    assert (refused.returncode, refused.stderr.startswith("--since:")) == (1, True)


def test_logs_follows_until_ctrl_c_also_over_a_restart(tmp_path):
    with a_terminal(tmp_path) as terminal:
        screen = Screen(terminal.environment, "logs", "-f")
        screen.wait_for("schema migrated")
    screen.wait_for("Waiting for it")
    screen.text = ""
    with a_terminal(tmp_path):
        screen.wait_for("confine")
        assert screen.end() == 0
    assert "Traceback" not in screen.text


def test_config_shows_values_and_their_places_without_secrets(alone, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "wakeful.toml").write_text('model = "openai-chat:small"\nmodel_api_key = "very-secret"\n')
    (tmp_path / "key").write_text("also-secret-token-of-the-owner\n")
    environment = alone.environment | {"WAKEFUL_LOG_LEVEL": "debug", "WAKEFUL_TOKEN_FILE": str(tmp_path / "key")}
    here = Terminal(environment, tmp_path)
    shown = here.run("config", "show").stdout
    assert "very-secret" not in shown
    assert "also-secret" not in shown
    found = {each["setting"]: each for each in here.read("config", "show")["settings"]}
    assert found["model"] == {
        "setting": "model",
        "value": "openai-chat:small",
        "from": str(tmp_path / "config" / "wakeful.toml"),
    }
    assert (found["model_api_key"]["value"], found["token"]["value"]) == ("(hidden)", "(hidden)")
    assert found["token"]["from"] == "the environment, WAKEFUL_TOKEN_FILE"
    assert found["log_level"]["from"] == "the environment, WAKEFUL_LOG_LEVEL"
    assert found["grace_seconds"] == {"setting": "grace_seconds", "value": 300, "from": "default"}
    assert here.run("config", "path").stdout.strip() == str(tmp_path / "config" / "wakeful.toml")


def test_config_check_names_every_problem(alone, tmp_path):
    assert alone.run("config", "check").returncode == 0
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "wakeful.toml").write_text('prot = 1\nlease_seconds = "long"\n')
    refused = alone.run("config", "check")
    assert refused.returncode == 1
    assert "the nearest one is port" in refused.stderr
    assert "lease_seconds" in refused.stderr
    assert len(json.loads(alone.run("config", "check", "--json").stdout)["problems"]) == 2


FILE = """\
# My server.
model = "demo"  # for now

[mcp.old]  # from last year
command = ["old-mcp"]

# The end.
"""


def test_mcp_add_keeps_comments_and_permissions(alone, tmp_path):
    file = tmp_path / "config" / "wakeful.toml"
    file.parent.mkdir()
    file.write_text(FILE)
    file.chmod(0o600)
    options = ("--read", "/srv/notes", "--env", "LOG=warn", "--env", "KEY=file:secrets/files")
    added = alone.run("mcp", "add", "files", *options, "--", "files-mcp", "--root", "/srv")
    assert added.returncode == 0, added.stderr
    assert "next start" in added.stdout
    text = file.read_text()
    assert all(line in text for line in FILE.splitlines())
    assert 'env = {LOG = "warn", KEY = {file = "secrets/files"}}' in text
    assert 'command = ["files-mcp", "--root", "/srv"]' in text
    assert file.stat().st_mode & 0o777 == 0o600
    assert alone.run("mcp", "rm", "files").returncode == 0
    assert all(line in file.read_text() for line in FILE.splitlines())


def test_mcp_add_makes_a_file_that_only_its_owner_can_read(alone, tmp_path):
    assert alone.run("mcp", "add", "weather", "https://weather.example.org/mcp").returncode == 0
    file = tmp_path / "config" / "wakeful.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each["kind"] for each in alone.read("mcp", "ls")["mcp_servers"]] == ["http"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("Bad Name", "--", "x"), "the name must be"),
        (("a", "--network", "--unconfined", "--", "x"), "exclude each other"),
        (("a", "--read", "notes", "--", "x"), "absolute paths"),
        (("a", "--env", "KEY", "--", "x"), "NAME=VALUE"),
        (("a", "--header", "X=1", "--", "x"), "headers"),
    ],
)
def test_mcp_add_refuses_what_a_start_would_refuse(alone, tmp_path, arguments, words):
    refused = alone.run("mcp", "add", *arguments)
    assert refused.returncode in (1, 2)
    assert words in refused.stderr
    assert not (tmp_path / "config" / "wakeful.toml").exists()


def test_mcp_servers_are_tested_and_the_running_server_has_to_be_restarted(terminal):
    command = (sys.executable, str(MCP))
    folders = [f"--read={path}" for path in (sys.prefix, sys.base_prefix, str(MCP.parents[1]))]
    added = terminal.run("mcp", "add", "tests", *folders, "--", *command)
    assert "Restart the server (pid " in added.stdout
    tested = terminal.run("mcp", "test", "tests")
    assert (tested.returncode, "tests_add" in tested.stdout) == (0, True), tested.stderr
    assert [each["state"] for each in terminal.read("mcp", "ls")["mcp_servers"]] == ["new: restart the server"]
    twice = terminal.run("mcp", "add", "tests", "--", "x")
    assert (twice.returncode, "wakeful mcp rm tests" in twice.stderr) == (1, True)
    terminal.run("mcp", "add", "broken", "--", "no-such-program")
    failed = terminal.run("mcp", "test", "broken")
    assert (failed.returncode, "does not work" in failed.stderr) == (1, True)
    for name in ("tests", "broken"):
        terminal.run("mcp", "rm", name)


def test_mcp_is_refused_for_a_server_elsewhere(alone):
    refused = alone.run("--url", "https://wakeful.example.org", "mcp", "add", "a", "--", "x")
    assert (refused.returncode, "Run it on the server's machine" in refused.stderr) == (2, True)


def test_mcp_is_refused_while_commands_use_a_server_elsewhere(alone, tmp_path):
    away = Terminal(alone.environment | {"WAKEFUL_URL": "https://wakeful.example.org"}, tmp_path)
    refused = away.run("mcp", "add", "a", "--", "x")
    assert (refused.returncode, "--context local" in refused.stderr) == (2, True)
    assert away.run("--context", "local", "mcp", "add", "a", "--", "x").returncode == 0


def test_a_first_start_says_what_it_does_and_ends_with_the_login_link(alone):
    screen = Screen(alone.environment, "serve")
    screen.wait_for("/login?code=")
    lines = [line for line in screen.text.splitlines() if line.strip()]
    assert lines[0].startswith("\x1b[33mFirst start: creating a store in ")
    assert "Log in (once, within 10 minutes): http" in lines[-1]
    assert len(lines) <= 10, lines
    assert screen.end(signal.SIGTERM) == 0


def test_a_port_of_this_server_is_explained(terminal, folder):
    refused = terminal.run("serve", "--port", terminal.environment["WAKEFUL_PORT"])
    assert refused.returncode == 1
    assert "this server runs there already" in refused.stderr
    pid = json.loads((folder / "data" / "server.lock").read_text())["pid"]
    assert f"kill {pid}" in refused.stderr


def test_a_port_of_another_server_is_explained(terminal, alone):
    refused = alone.run("serve", "--port", terminal.environment["WAKEFUL_PORT"])
    assert refused.returncode == 1
    assert re.search(r"another Wakeful server \(\d+\.\d+\.\d+\), pid \d+", refused.stderr)
    assert f"--port {int(terminal.environment['WAKEFUL_PORT']) + 1}" in refused.stderr
