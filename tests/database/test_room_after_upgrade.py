"""A database that 0.2 wrote can be filled, emptied and filled again, and its key opens it elsewhere."""

from contextlib import closing

import pytest
import sqlcipher3

pytestmark = pytest.mark.upgrade


async def test_a_full_database_of_0_2_is_got_out_of_by_deleting_rows(upgraded, old):
    agent = f"/agents/{old.facts['agent_id']}"
    assert (await upgraded.rest.patch(agent, json={"database_mb": 1})).is_success
    body = {"name": "notes", "purpose": "x", "columns": [{"name": "text", "type": "text"}]}
    assert (await upgraded.rest.post(f"{agent}/db/tables", json=body)).is_success
    rows = {"rows": [{"text": "x" * 50_000}]}
    ids = []
    while (answer := await upgraded.rest.post(f"{agent}/db/tables/notes/rows", json=rows)).is_success:
        ids += answer.json()["row_ids"]
    assert "rows/delete, then write again" in answer.json()["error"]["message"]
    assert (await upgraded.rest.post(f"{agent}/db/tables/notes/rows/delete", json={"row_ids": ids})).is_success
    again = await upgraded.rest.post(f"{agent}/db/tables/notes/rows", json=rows)
    assert again.is_success, again.text
    assert (await upgraded.rest.get(f"{agent}/db/verify")).json()["intact"]
    prices = (await upgraded.rest.get(f"{agent}/db/tables/prices/rows")).json()
    assert prices["total"] == 7


async def test_the_key_of_a_database_of_0_2_opens_it_in_another_program(upgraded, old):
    agent = f"/agents/{old.facts['agent_id']}"
    name = (await upgraded.rest.get(agent)).json()["name"]
    found = (await upgraded.rest.post(f"{agent}/db/key", json={"confirm": name})).json()
    with closing(sqlcipher3.connect(found["path"])) as connection:
        connection.execute(found["pragma"])
        assert connection.execute("SELECT count(*) FROM prices WHERE _deleted_at IS NULL").fetchall() == [(7,)]
