"""Grants and MCP servers after an upgrade: commands are confined or refused, programs of 0.1 run as before."""

import logging

import pytest

from confined import at_level
from live_server import of_kind, running_server
from upgrade.old_data import change, running_old_server
from wakeful.mcp.rules import McpServer
from wakeful.sandbox.rules import find_confinement

pytestmark = pytest.mark.upgrade

OLD = McpServer(name="old", command=("true",))
LIMITED = McpServer(name="old", command=("true",), network=True, is_limited=True)
NEW = McpServer(name="new", command=("true",))
ELSEWHERE = McpServer(name="elsewhere", url="http://127.0.0.1:9/mcp")


async def get(server, path, token):
    return await server.call("GET", path, token=token)


async def test_a_grant_of_the_shell_holds_and_its_commands_are_confined(upgraded, old):
    token, agent_id = old.facts["token"], old.facts["shell_agent_id"]
    assert "shell" in (await get(upgraded, f"/agents/{agent_id}", token))["toolsets"]
    assert (await get(upgraded, "/about", token))["shell"] == find_confinement().of(is_unconfined=False)
    await upgraded.learn_schema()
    begun = await upgraded.call("POST", "/sessions", token=token, json={"title": "Shell", "agent_id": agent_id})
    async with upgraded.watch(begun["id"], token=token) as client:
        await client.say(f"run cat {old.settings['config_dir']}/device.key")
        [made] = of_kind(await client.until("stream_end"), "tool_call")
    key = (old.settings["config_dir"] / "device.key").read_text().strip()
    assert made["success"] is (find_confinement().level != "none")
    assert "Exit code 1." in made["result"] or not made["success"]
    assert key not in made["result"]


async def test_where_commands_cannot_be_confined_the_agents_user_is_told_once_what_to_do(upgraded, old):
    agent = await upgraded.node.agents.get(old.facts["shell_agent_id"], (await me(upgraded, old))["id"])
    for _ in range(2):
        await upgraded.node.services.notices.add_shell_refused(agent, at_level("none")())
    told = (await get(upgraded, "/notifications", old.facts["token"]))["notifications"]
    [notice] = [each for each in told if each["code"] == "shell_refused"]
    assert notice["title"] == "Janitor's commands are not run"
    for words in ("landlock: not in this kernel", "install bubblewrap", "shell_unconfined = true"):
        assert words in notice["body"]


async def me(server, old):
    return (await get(server, "/me", old.facts["token"]))["user"]


async def confinements(old, *servers):
    """Start a server with these MCP servers and return how each is run, with its note."""
    async with running_old_server(old.settings | {"mcp": {server.name: server for server in servers}}) as server:
        listed = (await get(server, "/mcp-servers", old.facts["token"]))["mcp_servers"]
    return {each["name"]: (each["confinement"], each["note"]) for each in listed}


async def test_programs_of_before_run_as_before_and_say_so_and_new_ones_are_confined(old, caplog):
    await change(old, "INSERT INTO unconfined_mcp_servers VALUES ('*')")  # as an upgrade from 0.1 does
    confined = find_confinement().of(is_unconfined=False)
    with caplog.at_level(logging.WARNING):
        first = await confinements(old, OLD, ELSEWHERE)
    [said] = [record for record in caplog.records if record.message == "MCP server runs unconfined"]
    assert (said.server, "add read, write or network to [mcp.old]" in said.note) == ("old", True)
    assert first["elsewhere"][0] is None
    assert first["old"][0] == "unconfined"
    assert first["old"][1].startswith("Runs unconfined, as before the upgrade: add read, write or network to [mcp.old]")

    second = await confinements(old, OLD, NEW)
    assert (second["old"][0], second["new"][0]) == ("unconfined", confined)

    assert (await confinements(old, LIMITED))["old"][0] == confined
    assert (await confinements(old, OLD))["old"][0] == confined  # it was confined once


async def test_on_a_new_store_every_program_is_confined(tmp_path):
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    async with running_server(settings, mcp={"old": OLD}) as server:
        [told] = (await server.call("GET", "/mcp-servers"))["mcp_servers"]
    assert told["confinement"] == find_confinement().of(is_unconfined=False)
