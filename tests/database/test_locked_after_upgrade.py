"""An agent's database of 0.1 that 0.2 has never opened is locked, and stays as it is."""

import pytest

from upgrade.old_data import copy_old_data, running_old_server
from wakeful.agentdb import file
from wakeful.agentdb.keys import Vault
from wakeful.core.device_key import load_device_key

pytestmark = pytest.mark.upgrade


@pytest.fixture
def old(tmp_path):
    """On PostgreSQL every database was opened when it was moved there."""
    old = copy_old_data("sqlite", tmp_path)
    key = load_device_key(old.settings["config_dir"])
    vault = Vault(lambda _: old.agent_folder, lambda: key)
    connection = file.connect(str(old.agent_folder / "db.sqlite"), vault.open(old.facts["agent_id"]).current)
    connection.execute("ALTER TABLE prices RENAME TO kept; CREATE TABLE prices (id INTEGER PRIMARY KEY, RowID TEXT)")
    connection.close()
    return old


async def test_it_is_shown_as_locked_and_neither_used_nor_replaced(old):
    async with running_old_server(old.settings) as server:
        server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
        agent = f"/agents/{old.facts['agent_id']}"
        assert (await server.rest.get(f"{agent}/db")).json()["state"] == "locked"
        table = {"name": "new", "purpose": "x", "columns": [{"name": "a", "type": "text"}]}
        for answer in (
            await server.rest.get(f"{agent}/db/tables/prices/rows"),
            await server.rest.post(f"{agent}/db/tables", json=table),
            await server.rest.post(f"{agent}/db/rotate-key", json={}),
        ):
            error = answer.json()["error"]
            assert error["code"] == "database_locked", error
            assert "prices.RowID" in error["message"]
            assert "Start 0.2 once" in error["message"]
        notices = (await server.rest.get("/notifications")).json()["notifications"]
        assert not [each for each in notices if each["code"].startswith("database_")]
    assert not list(old.agent_folder.glob("quarantine/*"))
