"""Data of 0.2 starts without complaint, and its lost store or key is missed."""

import os

import pytest

from upgrade.old_data import running_old_server
from wakeful.datadir.lost_data import DeviceKeyMissing, StoreMissing

pytestmark = pytest.mark.upgrade

TELLING = ("store_behind", "database_unreadable", "database_behind")


async def test_it_starts_without_complaint(upgraded, old):
    found = await upgraded.rest.get(f"/agents/{old.facts['agent_id']}/db")
    assert found.json()["tables"]
    notices = (await upgraded.rest.get("/notifications")).json()["notifications"]
    assert [notice for notice in notices if notice["code"] in TELLING] == []
    assert upgraded.node.recovery_key is None  # 0.2 has shown it


async def test_without_its_store_it_is_refused(old, postgres_url):
    if "database_url" in old.settings:
        old.settings["database_url"] = None  # nobody set it again
        traces = r"directory\.json, which says that a server ran here.*The store was on PostgreSQL"
    else:
        traces = "files of 1 agent in agents/"
        os.truncate(old.settings["data_dir"] / "wakeful.sqlite", 0)
    with pytest.raises(StoreMissing, match=traces):
        async with running_old_server(old.settings):
            pass


async def test_without_its_device_key_it_is_refused(old):
    (old.settings["config_dir"] / "device.key").unlink()
    with pytest.raises(DeviceKeyMissing, match="wakeful key restore"):
        async with running_old_server(old.settings):
            pass
