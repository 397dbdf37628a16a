"""Servers of this machine and elsewhere, as commands find them: by options, environment, contexts and the lock file."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from network.tls_proxy import tls_proxy
from terminal import Terminal, a_terminal


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    with a_terminal(tmp_path_factory.mktemp("remote"), WAKEFUL_ALLOWED_HOSTS="localhost") as terminal:
        yield terminal


@pytest.fixture
def elsewhere(terminal, tmp_path):
    """A terminal of another user, who has no server."""
    place = {"WAKEFUL_DATA_DIR": str(tmp_path / "data"), "WAKEFUL_CONFIG_DIR": str(tmp_path / "config")}
    plain = {key: value for key, value in terminal.environment.items() if not key.startswith("WAKEFUL_")}
    return Terminal(plain | place, tmp_path)


@pytest.fixture
def token_file(terminal) -> str:
    return f"{terminal.environment['WAKEFUL_CONFIG_DIR']}/token"


@pytest.fixture
def url(terminal) -> str:
    return f"http://127.0.0.1:{terminal.environment['WAKEFUL_PORT']}"


def test_a_server_on_any_port_is_found_by_its_lock_file(terminal, tmp_path):
    environment = {key: value for key, value in terminal.environment.items() if key != "WAKEFUL_PORT"}
    here = Terminal(environment, tmp_path)
    assert "Wakeful" in here.run("agent", "ls").stdout
    assert "Wakeful" in Terminal(environment | {"WAKEFUL_PORT": "0"}, tmp_path).run("agent", "ls").stdout


def test_the_lock_file_of_a_server_that_was_killed_does_not_count(tmp_path, free_port):
    with a_terminal(tmp_path) as terminal:
        here = Terminal(terminal.environment | {"WAKEFUL_PORT": "0"}, tmp_path)
        pid = json.loads((tmp_path / "data" / "server.lock").read_text())["pid"]
        assert here.run("agent", "ls").returncode == 0
        os.kill(pid, signal.SIGKILL)
    assert (tmp_path / "data" / "server.lock").exists()
    refused = here.run("agent", "ls")
    assert (refused.returncode, "wakeful serve" in refused.stderr) == (3, True)


def test_a_port_in_the_environment_that_is_wrong_is_named(terminal, tmp_path, free_port):
    refused = Terminal(terminal.environment | {"WAKEFUL_PORT": str(free_port)}, tmp_path).run("agent", "ls")
    assert refused.returncode == 3
    assert f"127.0.0.1:{terminal.environment['WAKEFUL_PORT']}" in refused.stderr
    assert "unset it" in refused.stderr


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.mark.parametrize("is_after", [True, False])
def test_options_choose_a_server_before_and_after_the_command(elsewhere, url, token_file, is_after):
    options, command = ("--url", url, "--token-file", token_file), ("agent", "ls")
    done = elsewhere.run(*command, *options) if is_after else elsewhere.run(*options, *command)
    assert (done.returncode, "Wakeful" in done.stdout) == (0, True), done.stderr


def test_the_environment_chooses_a_server(elsewhere, url, token_file, tmp_path):
    environment = elsewhere.environment | {"WAKEFUL_URL": url, "WAKEFUL_TOKEN_FILE": token_file}
    assert "Wakeful" in Terminal(environment, tmp_path).run("agent", "ls").stdout
    assert Terminal(environment, tmp_path).run("migrate").returncode == 0  # they are not settings of a server


def test_a_wrong_token_is_refused_with_the_place_it_is_from(elsewhere, url):
    refused = elsewhere.run("--url", url, "--token", "wrong", "agent", "ls")
    assert refused.returncode == 1
    assert "The token is from --token." in refused.stderr


@contextmanager
def a_stranger() -> Iterator[tuple[int, list[str]]]:
    """A server that is not ours, and the headers that it was sent."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(str(self.headers))
            self.send_response(301)
            self.send_header("Location", "https://elsewhere.example.org/")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, sent
        server.shutdown()


def test_this_machines_token_is_not_sent_to_another_server(terminal):
    with a_stranger() as (port, sent):
        refused = terminal.run("--url", f"http://127.0.0.1:{port}", "agent", "ls")
    assert (refused.returncode, sent) == (1, [])
    assert "wakeful context add" in refused.stderr


def test_this_machines_token_is_used_for_its_own_address(terminal, url):
    assert terminal.run("--url", url.replace("127.0.0.1", "localhost"), "agent", "ls").returncode == 0


def test_a_redirect_is_named_and_not_followed(elsewhere):
    with a_stranger() as (port, _):
        refused = elsewhere.run("--url", f"http://127.0.0.1:{port}", "--token", "t", "agent", "ls")
    assert refused.returncode == 1
    assert "https://elsewhere.example.org/" in refused.stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://wakeful.example.org", "--insecure"),
        ("wakeful.example.org", "is not the address of a server"),
        ("https://me:secret@wakeful.example.org", "is not the address of a server"),
        ("http://127.0.0.1:99999", "is not the address of a server"),
    ],
)
def test_an_address_that_is_not_fit_is_refused(elsewhere, address, words):
    refused = elsewhere.run("--url", address, "--token", "t", "agent", "ls")
    assert refused.returncode == 2
    assert words in refused.stderr


def test_insecure_allows_http_to_another_machine(elsewhere):
    tried = elsewhere.run("--url", "http://wakeful.invalid", "--token", "t", "--insecure", "agent", "ls")
    assert tried.returncode == 3
    assert "the host name 'wakeful.invalid' is not known" in tried.stderr


async def test_a_server_behind_tls_is_reached_with_its_own_authority(elsewhere, terminal, token_file, tmp_path):
    async with tls_proxy("localhost", int(terminal.environment["WAKEFUL_PORT"]), tmp_path) as port:
        options = ("--url", f"https://localhost:{port}", "--token-file", token_file)
        untrusted = await asyncio.to_thread(elsewhere.run, *options, "agent", "ls")
        trusted = await asyncio.to_thread(elsewhere.run, *options, "--ca", str(tmp_path / "proxy.pem"), "agent", "ls")
        plain = await asyncio.to_thread(
            elsewhere.run, "--url", f"http://localhost:{port}", "--token", "t", "agent", "ls"
        )
    assert (untrusted.returncode, "--ca FILE" in untrusted.stderr) == (3, True), untrusted.stderr
    assert (trusted.returncode, "Wakeful" in trusted.stdout) == (0, True), trusted.stderr
    assert (plain.returncode, "https://" in plain.stderr) == (3, True), plain.stderr


def test_a_server_without_tls_is_named(elsewhere, url):
    refused = elsewhere.run("--url", url.replace("http", "https"), "--token", "t", "agent", "ls")
    assert refused.returncode == 3
    assert "begins with http://" in refused.stderr


def test_contexts_are_added_used_listed_and_removed(elsewhere, url, token_file, tmp_path):
    added = elsewhere.run("context", "add", "home", url, "--token-file", token_file)
    assert added.returncode == 0, added.stderr
    assert "as Owner with the scope admin" in added.stdout
    saved = tmp_path / "config" / "contexts.json"
    assert saved.stat().st_mode & 0o777 == 0o600
    assert "Wakeful" in elsewhere.run("agent", "ls", "--context", "home").stdout
    assert elsewhere.run("agent", "ls").returncode == 1  # local, which has no token
    assert elsewhere.run("context", "use", "home").returncode == 0
    assert "Wakeful" in elsewhere.run("agent", "ls").stdout
    assert "Wakeful" in elsewhere.run("--url", url, "agent", "ls").stdout  # the saved token of that address
    listed = elsewhere.run("context", "ls")
    assert url in listed.stdout
    assert Path(token_file).read_text().strip() not in listed.stdout
    assert [each["current"] for each in elsewhere.read("context", "ls")["contexts"]] == [False, True]
    removed = elsewhere.run("context", "rm", "home")
    assert "the server of this machine" in removed.stdout
    assert json.loads(saved.read_text()) == {"current": "local", "contexts": {}}


def test_a_context_is_not_saved_with_a_wrong_token(elsewhere, url, tmp_path):
    refused = elsewhere.run("context", "add", "home", url, "--token", "wrong")
    assert refused.returncode == 1
    assert not (tmp_path / "config" / "contexts.json").exists()


def test_a_context_that_does_not_exist_is_named(elsewhere):
    for arguments in (("context", "use", "hom"), ("context", "rm", "hom"), ("agent", "ls", "--context", "hom")):
        refused = elsewhere.run(*arguments)
        assert (refused.returncode, "'hom'" in refused.stderr) == (1, True)


@pytest.mark.parametrize("command", [("serve",), ("migrate",), ("key", "show")])
def test_commands_for_this_machine_do_not_take_a_server(elsewhere, url, command):
    refused = elsewhere.run("--url", url, *command)
    assert refused.returncode == 2
    assert "this machine" in refused.stderr
