"""An agent's database of 0.1 whose columns hide SQLite's row id, after an upgrade on both backends."""

import asyncio
from datetime import timedelta

import pytest

from wakeful.core.clock import ManualClock


@pytest.fixture
def db(upgraded, old):
    return Db(upgraded.rest, f"/agents/{old.facts['agent_id']}/db")


class Db:
    """The routes of one agent's database."""

    def __init__(self, rest, path):
        self._rest = rest
        self._path = path

    async def get(self, path, **params):
        return self._read(await self._rest.get(f"{self._path}{path}", params=params))

    async def send(self, method, path, body=None):
        return self._read(await self._rest.request(method, f"{self._path}{path}", json=body))

    async def rows(self, table, show="active"):
        found = await self.get(f"/tables/{table}/rows", show=show)
        return {row[0]: dict(zip(found["columns"][1:], row[1:], strict=True)) for row in found["rows"]}

    @staticmethod
    def _read(answer):
        assert answer.is_success, answer.text
        return answer.json()


async def test_columns_are_renamed_at_the_first_open_and_the_owner_is_told_once(upgraded, db, old):
    # Several requests at once, as a page sends them: one of them renames, and the others wait.
    await asyncio.gather(*(db.get("/schema") for _ in range(5)))
    tables = {
        table["name"]: [column["name"] for column in table["columns"]] for table in (await db.get("/schema"))["tables"]
    }
    assert tables["odd"][:3] == ["id", "rowid_2", "note"]
    assert tables["loose"][:3] == ["RowID_2", "oid_2", "note"]
    told = [
        notice
        for notice in (await upgraded.rest.get("/notifications")).json()["notifications"]
        if notice["code"] == "columns_renamed"
    ]
    assert len(told) == 1
    assert "odd.rowid is now rowid_2" in told[0]["body"]
    changes = (await db.get("/changelog"))["changes"]
    renames = [
        change for change in changes if change["op"] == "schema" and "renamed_columns" in (change["detail"] or {})
    ]
    assert {change["table_name"] for change in renames} == {"odd", "loose"}
    assert len((await db.get("/snapshots"))["snapshots"]) == 5
    assert (await db.get("/verify"))["intact"]


@pytest.mark.parametrize("table", ["odd", "loose"])
async def test_one_row_is_one_row(db, table):
    before = await db.rows(table)
    assert len(before) > 1
    gone = next(iter(before))
    await db.send("POST", f"/tables/{table}/rows/delete", {"row_ids": [gone]})
    assert (await db.rows(table)).keys() == before.keys() - {gone}
    assert gone in await db.rows(table, "deleted")
    await db.send("POST", f"/tables/{table}/rows/restore", {"row_ids": [gone]})
    after = await db.rows(table)
    assert {key: row["note"] for key, row in after.items()} == {key: row["note"] for key, row in before.items()}
    assert (await db.get("/verify"))["intact"]


async def test_runs_from_before_the_upgrade_are_undone(upgraded, db):
    changes = (await db.get("/changelog", limit=200))["changes"]
    run_id = next(change["run_id"] for change in changes if change["table_name"] == "memories" and change["run_id"])
    before = await db.rows("memories")
    answer = await upgraded.rest.post(f"/runs/{run_id}/undo-data")
    assert answer.json()["undone"] == 1, answer.text
    assert len(await db.rows("memories")) == len(before) - 1
    assert (await db.get("/verify"))["intact"]


async def test_a_purge_takes_the_deleted_row_alone(upgraded, db, old):
    await db.send("POST", "/tables/odd/rows/delete", {"row_ids": [1]})
    data = upgraded.node.services.data
    [user] = [user for user in (await upgraded.rest.get("/users")).json()["users"] if user["name"] != "Grace"]
    data.files.clock = ManualClock(upgraded.node.clock.now() + timedelta(days=31))
    await data.run(await data.person(old.facts["agent_id"], user["id"]), "purge")
    assert (await db.rows("odd", "all")).keys() == {2, 3}
    assert (await db.get("/verify"))["intact"]
