"""Servers of this machine and elsewhere, as commands find them: by options, environment, contexts and the lock file."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from network.stranger import a_stranger
from network.tls_proxy import tls_proxy
from terminal import Terminal, a_terminal, typed
from wakeful.app.listening import announced
from wakeful.cli.chat.conversation import SessionStream
from wakeful.cli.output import Failed
from wakeful.cli.server import NotReached, ask, connect
from wakeful.client import connection as client_target
from wakeful.core import addresses


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


def test_this_machines_token_is_not_sent_to_another_server(terminal):
    with a_stranger() as (port, sent):
        refused = terminal.run("--url", f"http://127.0.0.1:{port}", "agent", "ls")
    assert (refused.returncode, sent) == (1, [])
    assert "wakeful context add" in refused.stderr


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "LOCALHOST"])
def test_this_machines_token_is_used_for_its_own_address(terminal, url, host):
    assert terminal.run("--url", url.replace("127.0.0.1", host), "agent", "ls").returncode == 0


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_this_machines_token_is_not_sent_to_another_address_with_the_same_port(terminal, url, host):
    address = url.replace("127.0.0.1", f"[{host}]" if ":" in host else host)
    with a_stranger(host, int(terminal.environment["WAKEFUL_PORT"])) as (_, sent):
        refused = terminal.run("--url", address, "agent", "ls")
    assert (refused.returncode, sent) == (1, [])
    assert f"runs at {url}" in refused.stderr


@pytest.fixture
def stopped(elsewhere, tmp_path):
    """A terminal of a user whose server has left its token, and does not run."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "token").write_text("wkf_secret\n")
    return elsewhere


@pytest.mark.parametrize("named_by", ["WAKEFUL_PORT", "--url", "WAKEFUL_URL", "wakeful.toml"])
def test_this_machines_token_is_not_sent_while_its_server_does_not_run(stopped, tmp_path, named_by):
    with a_stranger() as (port, sent):
        url = f"http://127.0.0.1:{port}"
        (tmp_path / "config" / "wakeful.toml").write_text(f"port = {port}\n" if named_by == "wakeful.toml" else "")
        named = {"WAKEFUL_PORT": str(port), "WAKEFUL_URL": url}
        environment = {key: value for key, value in named.items() if key == named_by}
        options = ("--url", url) if named_by == "--url" else ()
        refused = Terminal(stopped.environment | environment, tmp_path).run(*options, "agent", "ls")
    assert sent == []
    assert refused.returncode == (1 if "URL" in named_by.upper() else 3)
    assert (str(tmp_path / "data") in refused.stderr, "wakeful serve" in refused.stderr) == (True, True)


def test_a_token_in_the_settings_file_is_this_machines_too(elsewhere, tmp_path):
    (tmp_path / "config").mkdir()
    with a_stranger() as (port, sent):
        (tmp_path / "config" / "wakeful.toml").write_text(f'port = {port}\ntoken = "a-token-of-the-server"\n')
        assert elsewhere.run("agent", "ls").returncode == 3
        assert sent == []
        # A token that the user names goes where they say.
        named = Terminal(elsewhere.environment | {"WAKEFUL_TOKEN": "named"}, tmp_path).run("agent", "ls")
    assert (named.returncode, len(sent), "Bearer named" in sent[0]) == (1, 1, True)


@pytest.mark.parametrize(
    ("bound", "asked", "reached"),
    [
        ("127.0.0.1", "localhost", "127.0.0.1"),
        ("0.0.0.0", "localhost", "127.0.0.1"),
        ("0.0.0.0", "0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", None, "127.0.0.1"),
        ("127.0.0.3", "127.0.0.3", "127.0.0.3"),
        ("127.0.0.3", "localhost", "127.0.0.3"),
        ("127.0.0.3", None, "127.0.0.3"),
        ("[::]", "localhost", "::1"),  # it has no IPv4
        ("[::]", None, "::1"),
        ("[::1]", "[::1]", "::1"),
    ],
)
async def test_this_machines_token_goes_to_the_address_of_the_lock_file(stopped, tmp_path, bound, asked, reached):
    with a_stranger(reached, answer={"agents": []}) as (port, sent):
        async with announced(tmp_path / "data", f"http://{bound}:{port}", "0"):
            await asyncio.sleep(0)  # it begins
            options = () if asked is None else ("--url", f"http://{asked}:{port}")
            done = await asyncio.to_thread(stopped.run, *options, "agent", "ls")
    assert ("Bearer wkf_secret" in "".join(sent)) is True, done.stderr


async def test_this_machines_token_is_not_sent_after_the_server_has_ended(stopped, tmp_path, monkeypatch):
    for name, value in stopped.environment.items():
        monkeypatch.setenv(name, value)
    with a_stranger(answer={"agents": []}) as (port, sent):
        async with announced(tmp_path / "data", f"http://127.0.0.1:{port}", "0"):
            await asyncio.sleep(0)
            server = connect()
            await asyncio.to_thread(server.get, "agents")
        assert len(sent) == 1
        with pytest.raises(Failed, match="No server answers"):
            server.get("agents")
        with pytest.raises(NotReached):
            ask(server.target, "GET", "/logs")
        states: asyncio.Queue[str | None] = asyncio.Queue()
        chat = asyncio.create_task(anext(SessionStream(server, "1", states.put_nowait).frames()))
        assert await asyncio.wait_for(states.get(), 10) == "no connection (NotRunning); connecting again"
        chat.cancel()
        server.close()
    assert len(sent) == 1


LOOPBACK = ["localhost", "LocalHost", "127.0.0.1", "127.8.8.8", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"]
ELSEWHERE = [
    "127.0.0.1.evil.example",
    "127.evil.example",
    "localhost.evil.example",
    "localhost.",
    "127.0.0.1.",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.01",
    "127.0.0.1\u3002",
    "１２７.0.0.1",
    "0.0.0.0",
    "::",
    "::ffff:8.8.8.8",
    "::1%evil.example",
    "8.8.8.8",
    "",
]


@pytest.mark.parametrize("is_loopback", [addresses.is_loopback, client_target.is_loopback])
@pytest.mark.parametrize(
    ("host", "expected"), [*((host, True) for host in LOOPBACK), *((host, False) for host in ELSEWHERE)]
)
def test_loopback_is_an_address_and_not_the_beginning_of_a_name(is_loopback, host, expected):
    assert is_loopback(host) is expected


async def test_a_message_of_another_server_cannot_control_the_terminal(elsewhere):
    message = {"error": {"code": "no", "message": "\x1b]0;owned\x07\x9b2J\nno", "hint": "\u202egpj"}}
    with a_stranger(answer=message, status=400) as (port, _):
        async with typed(
            "--url", f"http://127.0.0.1:{port}", "--token", "t", "agent", "ls", environment=elsewhere.environment
        ) as command:
            await command.until("gpj")
    assert not any(each in command.raw for each in ("\x1b]", "\x07", "\x9b", "\u202e"))
    assert "\\x1b]0;owned\\x07\\x9b2J\nno \\u202egpj" in command.shown


def test_a_redirect_is_named_and_not_followed(elsewhere):
    with a_stranger() as (port, _):
        refused = elsewhere.run("--url", f"http://127.0.0.1:{port}", "--token", "t", "agent", "ls")
    assert refused.returncode == 1
    assert "https://elsewhere.example.org/" in refused.stderr


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://wakeful.example.org", "--insecure"),
        ("http://127.0.0.1.evil.example:8420", "--insecure"),
        ("http://127.1:8420", "--insecure"),
        ("http://me@127.0.0.1:8420", "is not the address of a server"),
        ("http://127.0.0.1:8420@evil.example", "is not the address of a server"),
        ("wakeful.example.org", "is not the address of a server"),
        ("https://me:s3cret@wakeful.example.org", "is not the address of a server"),
        ("https://me:s3#cret@wakeful.example.org", "is not the address of a server"),
        ("http://127.0.0.1:99999", "is not the address of a server"),
    ],
)
def test_an_address_that_is_not_fit_is_refused(elsewhere, address, words):
    refused = elsewhere.run("--url", address, "--token", "t", "agent", "ls")
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "s3" not in refused.stderr


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
