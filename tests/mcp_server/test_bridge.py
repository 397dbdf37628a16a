"""`wakeful mcp`, the bridge for programs that start others, with the SDK's stdio client; and `wakeful mcp config`."""

import asyncio
import json
import stat
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from live_server import TOKEN, running_server
from mcp_client import ERAS, connected, make_token, text_of
from openai_server import say

TODO = "Read notes.txt with read_file."
CLIENTS = ["claude-code", "claude-desktop", "cursor", "gemini", "vscode", "codex", "opencode", "goose"]


@pytest.fixture
async def server(settings):
    async with running_server(settings) as server:
        yield server


def env_of(server, tmp_path):
    return {
        "WAKEFUL_URL": server.address,
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "mine"),
        "HOME": str(tmp_path),
    }


def bridge(server, tmp_path, *options):
    from mcp import StdioServerParameters

    args = ["-m", "wakeful", "mcp", *options]
    return StdioServerParameters(command=sys.executable, args=args, env=env_of(server, tmp_path))


async def command(server, tmp_path, *args, env=None):
    """Run a command and return its exit code, standard output and standard error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "wakeful", *args,
        env=env_of(server, tmp_path) if env is None else env, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def tokens(server):
    return {each["name"]: each for each in (await server.call("GET", "/tokens"))["tokens"] if each["name"] != "owner"}


@pytest.mark.parametrize("mode", ERAS)
async def test_the_bridge_books_and_asks_with_a_token_of_its_own(server, tmp_path, mode):
    from mcp import Client

    server.provider.then(say("Four."))
    async with Client(bridge(server, tmp_path), mode=mode, cache=None) as client:
        assert "book_wake" in [tool.name for tool in (await client.list_tools()).tools]
        booked = await client.call_tool("book_wake", {"instructions": TODO, "when": "1h"})
        assert not booked.is_error, text_of(booked)
        answer = await client.call_tool("ask_agent", {"message": "Two and two?"})
        assert text_of(answer) == "Four."
        refused = await client.call_tool("cancel_wake", {"wake_id": "unknown"})
        assert refused.is_error
    wake = await server.call("GET", f"/wakes/{booked.structured_content['wake_id']}")
    assert (wake["door"], wake["token_name"]) == ("mcp", "wakeful mcp")
    assert (await tokens(server))["wakeful mcp"]["scope"] == "schedule"
    saved = tmp_path / "mine" / "mcp-tokens.json"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert TOKEN not in saved.read_text()


async def test_the_bridge_keeps_its_token_and_makes_no_new_one_when_it_is_revoked(server, tmp_path):
    from mcp import Client

    for _ in range(2):
        async with Client(bridge(server, tmp_path, "--scope", "read"), mode="legacy", cache=None) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert "why" in listed
            assert "book_wake" not in listed
    [token] = (await tokens(server)).values()
    await server.call("DELETE", f"/tokens/{token['id']}")
    async with Client(bridge(server, tmp_path, "--scope", "read"), mode="legacy", cache=None) as client:
        refused = await client.call_tool("list_agents", {})
    assert refused.is_error
    assert "it was revoked" in text_of(refused)
    assert await tokens(server) == {}


@pytest.mark.parametrize("name", CLIENTS)
async def test_config_prints_a_block_whose_token_works_and_replaces_the_one_before(server, tmp_path, name):
    code, first, told = await command(server, tmp_path, "mcp", "config", name)
    assert code == 0, told
    assert f"the name {name}" in told
    code, second, _ = await command(server, tmp_path, "mcp", "config", name)
    made = await tokens(server)
    assert (list(made), made[name]["scope"]) == ([name], "schedule")
    entry = parse(name, second)
    if name == "claude-desktop":
        assert entry["args"][-3:] == ["mcp", "--name", "claude-desktop"]
        assert first == second
        saved = json.loads((tmp_path / "mine" / "mcp-tokens.json").read_text())
        secret = saved[server.address][name]["token"]
    else:
        assert entry["url"] == f"{server.address}/mcp"
        secret = entry["secret"]
        assert parse(name, first)["secret"] != secret
    async with connected(server, secret) as client:
        assert not (await client.call_tool("list_agents", {})).is_error


@pytest.mark.parametrize("given", ["url", "port", "data directory"])
async def test_the_printed_program_needs_no_owners_token(settings, tmp_path, given):
    from mcp import Client, StdioServerParameters

    async with running_server(settings) as server:  # its token is in no file
        env = {"WAKEFUL_TOKEN": TOKEN, "WAKEFUL_CONFIG_DIR": str(tmp_path / "mine"), "HOME": str(tmp_path)} | {
            "url": {"WAKEFUL_URL": server.address.replace("127.0.0.1", "localhost")},
            "port": {"WAKEFUL_PORT": server.address.rpartition(":")[2], "WAKEFUL_DATA_DIR": str(tmp_path / "none")},
            "data directory": {"WAKEFUL_DATA_DIR": str(settings["data_dir"])},
        }[given]
        code, block, told = await command(server, tmp_path, "mcp", "config", "claude-desktop", env=env)
        assert (code, TOKEN in block) == (0, False), told
        entry = json.loads(block)["mcpServers"]["wakeful"]
        assert "WAKEFUL_TOKEN" not in entry["env"]
        started = StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"])
        async with Client(started, mode="legacy", cache=None) as client:
            booked = await client.call_tool("book_wake", {"instructions": TODO, "when": "1h"})
        assert not booked.is_error, text_of(booked)
        wake = await server.call("GET", f"/wakes/{booked.structured_content['wake_id']}")
        assert wake["token_name"] == "claude-desktop"


async def test_the_printed_program_trusts_what_the_command_did(settings, tmp_path):
    async with running_server(settings, allowed_hosts=["0.0.0.0"]) as server:
        for host, is_insecure in (("127.0.0.1", False), ("0.0.0.0", True)):
            env = env_of(server, tmp_path) | {"WAKEFUL_URL": server.address.replace("127.0.0.1", host)}
            asked = ("--insecure", "--ca", "authority.pem", "mcp", "config", "claude-desktop")
            code, block, told = await command(server, tmp_path, *asked, env=env)
            assert code == 0, told
            args = json.loads(block)["mcpServers"]["wakeful"]["args"]
            options = args[args.index("--ca") : args.index("mcp")]
            assert options == ["--ca", str(Path.cwd() / "authority.pem"), *(["--insecure"] if is_insecure else [])]


def parse(name, text):
    """Read the block as the client would."""
    if name == "claude-code":
        words = text.replace("\\\n", "").split()
        assert words[:5] == ["claude", "mcp", "add", "--scope", "user"]  # else for one directory alone
        return {"url": words[words.index("wakeful") + 1], "secret": words[-1].strip("'")}
    if name == "claude-desktop":
        return json.loads(text)["mcpServers"]["wakeful"]
    if name == "codex":
        entry = tomllib.loads(text)["mcp_servers"]["wakeful"]
        return {"url": entry["url"], "secret": entry["http_headers"]["Authorization"].removeprefix("Bearer ")}
    if name == "goose":
        entry = yaml.safe_load(text)["extensions"]["wakeful"]
        return {"url": entry["uri"], "secret": entry["headers"]["Authorization"].removeprefix("Bearer ")}
    outer = {"cursor": "mcpServers", "gemini": "mcpServers", "vscode": "servers", "opencode": "mcp"}[name]
    entry = json.loads(text)[outer]["wakeful"]
    return {
        "url": entry["httpUrl" if name == "gemini" else "url"],
        "secret": entry["headers"]["Authorization"].removeprefix("Bearer "),
    }


async def test_an_unknown_client_is_refused_with_the_known_ones(server, tmp_path):
    code, _, told = await command(server, tmp_path, "mcp", "config", "netscape")
    assert (code, "claude-code, claude-desktop, cursor" in told) == (2, True)
    assert await tokens(server) == {}


async def test_the_bridge_says_when_no_server_answers(server, tmp_path):
    from mcp import Client

    secret = await make_token(server, "schedule", "wakeful mcp")
    nowhere = "http://127.0.0.1:9"
    folder = tmp_path / "mine"
    folder.mkdir()
    saved = {nowhere: {"wakeful mcp": {"scope": "schedule", "token": secret}}}
    (folder / "mcp-tokens.json").write_text(json.dumps(saved))
    started = bridge(server, tmp_path)
    started.env["WAKEFUL_URL"] = nowhere
    async with Client(started, mode="legacy", cache=None) as client:
        refused = await client.call_tool("list_agents", {})
    assert f"No Wakeful server answers at {nowhere}" in text_of(refused)
