"""Data of 0.1 has no mark of a successful start: it starts without complaint, and a lost store or key is missed."""

import os

import pytest

from upgrade.old_data import running_old_server
from wakeful.datadir.lost_data import DeviceKeyMissing, StoreMissing
from wakeful.homes import directories

TELLING = ("store_behind", "database_unreadable", "database_behind")


async def test_it_starts_without_complaint_and_is_marked(upgraded, old):
    found = await upgraded.rest.get(f"/agents/{old.facts['agent_id']}/db")
    assert found.json()["tables"]
    notices = (await upgraded.rest.get("/notifications")).json()["notifications"]
    assert [notice for notice in notices if notice["code"] in TELLING] == []
    assert upgraded.node.recovery_key is None  # 0.1 has shown it
    marked = directories.find_directory(old.settings["data_dir"])
    assert marked is not None
    assert marked.started_at is not None
    assert marked.key_fingerprint is not None


async def test_without_its_store_it_is_refused(old, postgres_url):
    if "database_url" in old.settings:
        old.settings["database_url"] = None  # nobody set it again
    else:
        os.truncate(old.settings["data_dir"] / "wakeful.sqlite", 0)
    with pytest.raises(StoreMissing, match="files of 1 agent in agents/"):
        async with running_old_server(old.settings):
            pass


async def test_without_its_device_key_it_is_refused(old):
    (old.settings["config_dir"] / "device.key").unlink()
    with pytest.raises(DeviceKeyMissing, match="wakeful key restore"):
        async with running_old_server(old.settings):
            pass
