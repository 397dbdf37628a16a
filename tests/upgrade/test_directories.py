"""Data of 0.1 knows no data directories: the first start gives them an id, and moves files to a shared store."""

import asyncio
import json
import shutil

import pytest

from upgrade.old_data import copy_old_data, running_old_server
from wakeful.config.settings import Settings
from wakeful.core.device_key import load_device_key, to_recovery_key
from wakeful.core.errors import Unavailable
from wakeful.datadir.device_key import restore_device_key


async def rows(server, old):
    return await server.rest.get(f"/agents/{old.facts['agent_id']}/db/tables/prices/rows")


async def test_the_directory_gets_an_id_and_a_shared_store_gets_the_files(upgraded, old):
    assert json.loads((old.settings["data_dir"] / "directory.json").read_text())["id"]
    assert old.agent_folder.exists() == ("database_url" not in old.settings)
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


async def test_of_two_nodes_with_the_same_files_both_serve_them(old_postgres, tmp_path):
    old = old_postgres
    second = another_node_of_0_1(old, tmp_path)
    async with running_old_server(old.settings) as one, running_old_server(second) as two:
        for server in (one, two):
            assert (await rows(authorize(server, old), old)).json()["total"] == 7
        notices = (await one.rest.get("/notifications")).json()["notifications"]
        assert "memory_forked" not in [each["code"] for each in notices]
    assert not (second["data_dir"] / "agents" / old.facts["agent_id"]).exists()


async def test_a_key_that_opens_nothing_is_not_taken_for_the_right_one(old_postgres, tmp_path):
    """A key that was lost before the upgrade can be restored after it."""
    old = old_postgres
    right = to_recovery_key(load_device_key(old.settings["config_dir"]))
    lost = old.settings | {"config_dir": tmp_path / "lost"}
    load_device_key(tmp_path / "lost")  # makes another one
    async with running_old_server(lost) as server:
        authorize(server, old)
        refused = (await server.rest.get(f"/agents/{old.facts['agent_id']}/db")).json()["error"]
        assert refused["code"] == "files_not_moved"
        assert "device key" in refused["message"]
    await asyncio.to_thread(restore_device_key, Settings.model_validate(lost), right)
    async with running_old_server(lost) as server:
        assert (await rows(authorize(server, old), old)).json()["total"] == 7
    load_device_key(tmp_path / "third")
    with pytest.raises(Unavailable, match="wakeful key restore"):
        async with running_old_server(old.settings | {"config_dir": tmp_path / "third"}):
            pass
