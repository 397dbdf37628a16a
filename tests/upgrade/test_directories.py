"""Data of 0.1 knows no data directories: the first start gives them an id and binds the agents that have files."""

import asyncio
import json
import shutil

import pytest

from upgrade.old_data import copy_old_data, running_old_server
from wakeful.agentdb.keys.keys import load_device_key, to_recovery_key
from wakeful.app.files import restore_device_key
from wakeful.config import Settings
from wakeful.domain.errors import Unavailable


async def bindings(server):
    """Which agents are bound, and to which directory, as the store has it."""
    agents = [agent["id"] for agent in (await server.rest.get("/agents")).json()["agents"]]

    async def work(tx):
        return {agent_id: await tx.directories.of_agent(agent_id, server.node.clock.now()) for agent_id in agents}

    found = await server.node.store.read(work)
    return {agent_id: directory.id for agent_id, directory in found.items() if directory is not None}


async def rows(server, old):
    return await server.rest.get(f"/agents/{old.facts['agent_id']}/db/tables/prices/rows")


async def test_the_directory_gets_an_id_and_agents_with_files_are_bound_to_it(upgraded, old):
    stored = json.loads((old.settings["data_dir"] / "directory.json").read_text())
    shared = "database_url" in old.settings
    # An embedded store has one directory for ever, so nobody is bound there.
    assert await bindings(upgraded) == ({old.facts["agent_id"]: stored["id"]} if shared else {})
    assert (await rows(upgraded, old)).json()["total"] == 7


@pytest.fixture
def old_postgres(tmp_path, postgres_url):
    """The copy on PostgreSQL; an embedded store has one node and one directory."""
    return copy_old_data("postgres", tmp_path, postgres_url)


def another_node_of_0_1(old, tmp_path):
    """The directories of a second node of 0.1 with a disk of its own, where the agent's memory has been forked."""
    for name in ("data", "config"):
        shutil.copytree(old.settings[f"{name}_dir"], tmp_path / f"second-{name}")
    return old.settings | {"data_dir": tmp_path / "second-data", "config_dir": tmp_path / "second-config"}


def authorize(server, old):
    server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
    return server


async def test_of_two_nodes_with_files_of_one_agent_the_first_to_start_has_them(old_postgres, tmp_path):
    old = old_postgres
    second = another_node_of_0_1(old, tmp_path)
    async with running_old_server(old.settings) as one, running_old_server(second) as two:
        authorize(one, old)
        authorize(two, old)
        assert (await rows(one, old)).status_code == 200
        refused = (await rows(two, old)).json()["error"]
        assert refused["code"] == "memory_elsewhere"
        notices = (await one.rest.get("/notifications")).json()["notifications"]
        [forked] = [each for each in notices if each["code"] == "memory_forked"]
        assert str(second["data_dir"]) in forked["body"]
    assert (second["data_dir"] / "agents" / old.facts["agent_id"] / "db.sqlite").exists()
    async with running_old_server(second) as two:  # and it stays so, told once
        authorize(two, old)
        notices = (await two.rest.get("/notifications")).json()["notifications"]
        assert len([each for each in notices if each["code"] == "memory_forked"]) == 1


async def test_a_key_that_opens_nothing_is_not_taken_for_the_right_one(old_postgres, tmp_path):
    """A key that was lost before the upgrade can be restored after it."""
    old = old_postgres
    right = to_recovery_key(load_device_key(old.settings["config_dir"]))
    lost = old.settings | {"config_dir": tmp_path / "lost"}
    load_device_key(tmp_path / "lost")  # makes another one
    async with running_old_server(lost) as server:
        authorize(server, old)
        found = (await server.rest.get(f"/agents/{old.facts['agent_id']}/db")).json()
        assert found["state"] == "locked"
    await asyncio.to_thread(restore_device_key, Settings.model_validate(lost), right)
    async with running_old_server(lost) as server:
        assert (await rows(authorize(server, old), old)).json()["total"] == 7
    load_device_key(tmp_path / "third")
    with pytest.raises(Unavailable, match="wakeful key restore"):
        async with running_old_server(old.settings | {"config_dir": tmp_path / "third"}):
            pass
