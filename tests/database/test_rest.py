"""An agent's own database over REST: read, edit, export, undo, erase."""

import json
import re
from contextlib import asynccontextmanager, closing

import pytest
import sqlcipher3

from live_server import eventually, of_kind, running_server
from openai_server import call, calls, say

TASKS = "title,cost\nmilk,2\nbread,3\ntea,5\n"

# A request, the status of its refusal, the field that it names, and a part of its message.
REFUSED = [
    ("GET", "/tables/tasks/rows?where=[1]", None, 400, "where", "[1]"),
    ("GET", "/tables/tasks/rows?where={oops", None, 400, "where", "{oops"),
    ("GET", '/tables/tasks/rows?where={"colour":1}', None, 400, "where", "colour"),
    ("GET", '/tables/tasks/rows?where={"cost":{"about":1}}', None, 400, "where", "about"),
    ("GET", "/tables/tasks/rows?sort=colour", None, 400, "sort", "colour"),
    ("GET", "/tables/tasks/rows?show=some", None, 422, "show", "some"),
    ("GET", "/tables/tasks/rows?limit=0", None, 422, "limit", "0"),
    ("GET", "/tables/chores/rows", None, 404, "table", "chores"),
    ("GET", "/tables/_changelog/rows", None, 404, "table", "_changelog"),
    ("GET", "/tables/tasks/export?format=xls", None, 422, "format", "xls"),
    ("GET", "/views/none/export", None, 404, "name", "none"),
    ("POST", "/tables/tasks/rows", {"rows": []}, 422, "rows", "[]"),
    ("POST", "/tables/tasks/rows", {"rows": [{"colour": 1}]}, 400, "rows", "colour"),
    ("POST", "/tables/tasks/rows", {"rows": [{"_created_at": "now"}]}, 400, "rows", "_created_at"),
    ("PATCH", "/tables/tasks/rows", {"row_ids": [], "changes": {"cost": 1}}, 422, "row_ids", "[]"),
    ("PATCH", "/tables/tasks/rows", {"row_ids": [1], "changes": {}}, 422, "changes", "{}"),
    ("PATCH", "/tables/tasks/rows", {"row_ids": [1], "changes": {"colour": 1}}, 400, "changes", "colour"),
    ("POST", "/tables/tasks/rows/delete", {"row_ids": [2**63]}, 422, "row_ids.0", "9223372036854775808"),
    ("POST", "/query", {"sql": "SELECT colour FROM tasks"}, 400, None, "colour"),
    ("POST", "/query", {"sql": "SELECT :a", "params": {"b": 1}}, 400, "params", "a"),
    ("POST", "/query", {"sql": "SELECT 1", "limit": 10_000}, 422, "limit", "10000"),
    ("POST", "/query", {"sql": "SELECT 1", "more": 1}, 422, "more", "1"),
    ("POST", "/query", {"sql": "DELETE FROM tasks"}, 403, "sql", "SELECT"),
    ("POST", "/query", {"sql": "SELECT * FROM main.tasks"}, 403, None, "main."),
    ("POST", "/execute", {"sql": "SELECT 1"}, 403, "sql", "POST /agents/{agent_id}/db/query"),
    (
        "POST",
        "/execute",
        {"sql": "DELETE FROM tasks"},
        403,
        None,
        "POST /agents/{agent_id}/db/tables/{table}/rows/delete",
    ),
    ("POST", "/execute", {"sql": "DROP TABLE tasks"}, 403, None, "POST /agents/{agent_id}/db/migrate"),
    ("POST", "/execute", {"sql": "UPDATE _changelog SET actor = 'agent'"}, 403, None, "_changelog"),
    ("POST", "/tables", {"name": "a/b", "purpose": "x", "columns": [{"name": "a"}]}, 422, "name", "a/b"),
    (
        "POST",
        "/tables",
        {"name": "tasks", "purpose": "x", "columns": [{"name": "a"}]},
        409,
        "name",
        "POST /agents/{agent_id}/db/tables/{table}/columns",
    ),
    ("POST", "/tables/chores/columns", {"columns": [{"name": "a"}]}, 404, "table", "chores"),
    ("POST", "/tables/tasks/columns", {"columns": [{"name": "a", "unique": True}]}, 400, "columns", "db/migrate"),
    ("POST", "/migrate", {"purpose": "x", "up_sql": 'CREATE TABLE "a/b" (c)'}, 400, "name", "a/b"),
    ("POST", "/migrate", {"purpose": "x", "up_sql": "ATTACH 'x' AS y"}, 403, None, "ATTACH"),
    ("POST", "/tables/tasks/rows/upsert", {"rows": [{"cost": 1}], "conflict_columns": ["title"]}, 400, "rows", "title"),
    ("PUT", "/views/1st", {"sql": "SELECT 1"}, 422, "view", "1st"),
    ("PUT", "/views/v", {"sql": "SELECT :a"}, 400, "parameters", "a"),
    ("PUT", "/views/v", {"sql": "SELECT 1", "render": "map"}, 422, "render", "map"),
    ("PUT", "/views/none/pin", {"pinned": True}, 404, "name", "none"),
    ("POST", "/import", {"table": "tasks", "text": "colour\nred"}, 400, "text", "colour"),
    ("POST", "/import", {"table": "tasks", "text": "title\na,b"}, 400, "text", "Line 2"),
    ("POST", "/import", {"table": "1st", "text": "title\na"}, 400, "table", "1st"),
    ("POST", "/import", {"table": "t", "text": "a b\n1"}, 400, "text", "a b"),
    ("POST", "/import", {"table": "new", "text": "a\n1", "create": False}, 404, "table", "new"),
    ("POST", "/changelog/1/take-back", None, 404, "change_id", "1"),
    ("POST", "/snapshots/none/recover", {"table": "tasks", "new_name": "x"}, 404, "snapshot", "none"),
    ("POST", "/snapshots/none/recover", {"table": "tasks"}, 409, "new_name", "tasks"),
    ("POST", "/tables/tasks/columns", {"columns": [{"name": "rowid"}]}, 400, "columns", "rowid_2"),
    ("POST", "/tables", {"name": "json_each", "purpose": "x", "columns": [{"name": "a"}]}, 400, "name", "json_each"),
    ("GET", "/changelog?before=0", None, 422, "before", "0"),
    ("DELETE", "", {"confirm": "someone"}, 400, "confirm", "someone"),
]


class Shelf:
    """The database of the first agent, as a person reaches it."""

    def __init__(self, server, agent):
        self.server = server
        self.agent = agent
        self.path = f"/agents/{agent['id']}/db"
        self.folder = server.workspaces / agent["id"]

    async def call(self, method, path="", **more):
        return await self.server.call(method, self.path + path, **more)

    async def refused(self, method, path="", **more):
        """Ask for what is refused; return how, and with what words."""
        answer = await self.server.rest.request(method, self.path + path, **more)
        assert answer.is_client_error, answer.text
        error = answer.json()["error"]
        assert "db_" not in error["message"]  # people have no such tools
        return answer.status_code, error["code"], error.get("field"), error["message"]

    async def rows(self, **query):
        return await self.call("GET", "/tables/tasks/rows", params=query)

    async def titles(self, **query):
        found = await self.rows(**query)
        return [row[found["columns"].index("title")] for row in found["rows"]]

    async def delete(self, *row_ids):
        return await self.call("POST", "/tables/tasks/rows/delete", json={"row_ids": list(row_ids)})

    async def changes(self, **query):
        return (await self.call("GET", "/changelog", params=query))["changes"]

    async def let_agent(self, name, **arguments):
        """Have the agent call a tool in a run of its own; return the run's id."""
        self.server.provider.then(calls(*call(name, json.dumps(arguments))), say("Done."))
        session = await self.server.session()
        asked = {"content": "Go."}
        run = (await self.server.call("POST", f"/sessions/{session}/messages", json=asked))["run_id"]

        async def is_over():
            return (await self.server.run(run))["finished_at"]

        await eventually(is_over)
        assert (await self.server.run(run))["status"] == "success"
        return run


@asynccontextmanager
async def a_shelf(settings, **more):
    async with running_server(settings, **more) as server:
        yield Shelf(server, await server.change_agent(toolsets=["database"]))


@pytest.fixture
async def shelf(server):
    return Shelf(server, await server.change_agent(toolsets=["database"]))


@pytest.fixture
async def tasks(shelf):
    await shelf.call("POST", "/import", json={"table": "tasks", "text": TASKS})
    return shelf


async def test_before_the_first_write_there_is_nothing_and_looking_makes_nothing(shelf):
    found = await shelf.call("GET")
    assert (found["state"], found["is_on"], found["tables"], found["views"]) == ("none", True, [], [])
    assert (found["used_bytes"], found["quota_bytes"], found["in_flight"]) == (0, 100 * 1024 * 1024, 0)
    assert found["default_quota_bytes"] == 100 * 1024 * 1024
    assert (await shelf.call("GET", "/schema"))["tables"] == []
    assert await shelf.changes() == []
    assert await shelf.call("GET", "/verify") == {"intact": True, "broken_at": None, "is_cut_off": False}
    assert (await shelf.refused("GET", "/tables/tasks/rows"))[:3] == (404, "data_not_found", "table")
    assert not list(shelf.folder.rglob("db.*"))


async def test_a_database_says_how_full_it_is_and_what_is_in_it(tasks):
    found = await tasks.call("GET")
    assert found["state"] == "open"
    assert found["tables"] == [{"name": "tasks", "purpose": "Imported from a file.", "rows": 3, "deleted_rows": 0}]
    assert 0 < found["used_bytes"] < found["quota_bytes"]


async def test_the_schema_tells_the_hosts_own_columns_and_tables_apart(tasks):
    schema = await tasks.call("GET", "/schema")
    [table] = schema["tables"]
    kinds = {column["name"]: (column["type"], column["system"]) for column in table["columns"]}
    assert kinds["title"] == ("TEXT", False)
    assert kinds["cost"] == ("INTEGER", False)
    assert kinds["_deleted_at"] == ("TEXT", True)
    assert schema["system_tables"] == []
    system = (await tasks.call("GET", "/schema", params={"system": True}))["system_tables"]
    assert "_changelog" in [each["name"] for each in system]


async def test_rows_come_filtered_sorted_and_a_page_at_a_time(tasks):
    assert await tasks.titles() == ["milk", "bread", "tea"]
    assert await tasks.titles(sort="cost", desc=True) == ["tea", "bread", "milk"]
    assert await tasks.titles(where='{"cost": {"gte": 3}}') == ["bread", "tea"]
    assert await tasks.titles(where='[{"title": {"like": "%e%"}}, {"title": {"like": "%b%"}}]') == ["bread"]
    page = await tasks.rows(sort="title", limit=1, offset=1)
    assert (page["total"], page["row_count"], page["columns"][0]) == (3, 1, "_row_id")
    assert await tasks.titles(sort="title", limit=1, offset=1) == ["milk"]


async def test_rows_are_added_changed_deleted_and_restored_by_a_person(tasks):
    added = await tasks.call("POST", "/tables/tasks/rows", json={"rows": [{"title": "salt", "cost": 1}]})
    [row_id] = added["row_ids"]
    assert added["inserted"] == 1
    changed = await tasks.call(
        "PATCH", "/tables/tasks/rows", json={"row_ids": [row_id], "changes": {"title": "pepper"}}
    )
    assert changed == {"updated": 1, "row_ids": [row_id]}
    assert await tasks.delete(row_id, 1) == {"deleted": 2, "row_ids": [1, row_id]}
    assert await tasks.titles() == ["bread", "tea"]
    assert await tasks.titles(show="deleted") == ["milk", "pepper"]
    assert await tasks.titles(show="all") == ["milk", "bread", "tea", "pepper"]
    restored = await tasks.call("POST", "/tables/tasks/rows/restore", json={"row_ids": [row_id]})
    assert restored == {"restored": 1, "row_ids": [row_id]}
    assert await tasks.titles() == ["bread", "tea", "pepper"]
    ops = [(each["op"], each["actor"], each["run_id"]) for each in await tasks.changes(table="tasks", row_id=row_id)]
    assert ops == [(op, "user", None) for op in ("restore", "soft_delete", "update", "insert")]


async def test_what_is_refused_names_the_field_and_the_value(tasks):
    for method, path, body, status, field, value in REFUSED:
        answered = await tasks.refused(method, path, json=body)
        assert (answered[0], answered[2]) == (status, field), (path, body, answered)
        assert value in answered[3]
    assert await tasks.titles() == ["milk", "bread", "tea"]
    assert len(await tasks.changes()) == 5  # what the import wrote, and nothing since


async def test_numbers_that_sqlite_cannot_keep_are_refused(tasks):
    for number in (2**63, 2**64, -(2**63) - 1):
        refused = await tasks.refused("POST", "/tables/tasks/rows", json={"rows": [{"title": "x", "cost": number}]})
        assert refused[0] == 400, refused
    assert await tasks.titles() == ["milk", "bread", "tea"]


# ── Files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_numbers_that_json_does_not_have_are_refused(tasks):
    for number in ("Infinity", "-Infinity", "NaN", "1e999"):
        for path, body in (
            ("/tables/tasks/rows", '{"rows": [{"title": "x", "cost": %s}]}'),
            ("/query", '{"sql": "SELECT :a", "params": {"a": %s}}'),
            ("/execute", '{"sql": "UPDATE tasks SET cost = ?", "params": [%s]}'),
        ):
            sent = {"content": body % number, "headers": {"content-type": "application/json"}}
            status, *_ = await tasks.refused("POST", path, **sent)
            assert status in (400, 422), (number, path)
    assert (await tasks.rows())["total"] == 3


async def test_an_export_is_a_download_with_a_plain_name(tasks):
    await tasks.delete(1)
    for query, kind, media, titles in (
        ({}, "csv", "text/csv; charset=utf-8", ["bread", "tea"]),
        ({"format": "json", "show": "deleted"}, "json", "application/json", ["milk"]),
        ({"format": "jsonl", "show": "all"}, "jsonl", "application/jsonl", ["milk", "bread", "tea"]),
    ):
        answer = await tasks.server.rest.get(f"{tasks.path}/tables/tasks/export", params=query)
        assert answer.headers["content-disposition"] == f'attachment; filename="tasks.{kind}"'
        assert answer.headers["content-type"] == media
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert [title for title in ("milk", "bread", "tea") if title in answer.text] == titles


# ── Views ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_view_is_tried_saved_run_pinned_and_dropped(tasks):
    sql = "SELECT title FROM tasks WHERE cost >= :least AND title LIKE :like ORDER BY title"
    tried = await tasks.call("POST", "/query", json={"sql": sql, "params": {"least": 3, "like": "%"}})
    assert (tried["columns"], tried["rows"], tried["truncated"]) == (["title"], [["bread"], ["tea"]], False)
    parameters = [{"name": "least", "description": "Cost"}, {"name": "like", "default": "%"}]
    asked = {"sql": sql, "parameters": parameters, "render": "bar"}
    saved = await tasks.call("PUT", "/views/dear", json=asked)
    assert saved == {"view": "dear", "outcome": "created", "pinned": False}
    [view] = (await tasks.call("GET", "/views"))["views"]
    assert (view["required_parameters"], view["render"]) == (["least"], "bar")
    ran = await tasks.call("POST", "/views/dear/run", json={"params": {"least": 4}})
    assert (ran["rows"], ran["render"]) == ([["tea"]], "bar")
    assert ran["changed_at"] is not None
    assert (await tasks.refused("POST", "/views/dear/run", json={}))[:3] == (400, "data_invalid", "params")
    await tasks.call("PUT", "/views/dear/pin", json={"pinned": True})
    assert (await tasks.call("PUT", "/views/dear", json=asked)) == {
        "view": "dear",
        "outcome": "replaced",
        "pinned": True,
    }
    assert (await tasks.call("GET"))["views"] == [{"name": "dear", "render": "bar", "pinned": True}]
    text = (await tasks.server.rest.get(f"{tasks.path}/views/dear/export", params={"params": '{"least": 3}'})).text
    assert text == "title\r\nbread\r\ntea\r\n"
    await tasks.call("DELETE", "/views/dear")
    assert (await tasks.call("GET", "/views"))["views"] == []


async def test_a_statement_cannot_see_what_is_deleted_unless_it_is_asked_to(tasks):
    await tasks.delete(1)
    asked = {"sql": "SELECT count(*) FROM tasks"}
    assert (await tasks.call("POST", "/query", json=asked))["rows"] == [[2]]
    assert (await tasks.call("POST", "/query", json=asked | {"include_deleted": True}))["rows"] == [[3]]


# ── What changed ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_changelog_comes_in_pages_and_by_run_table_and_row(tasks):
    run = await tasks.let_agent("db_insert", table="tasks", rows=[{"title": "salt", "cost": 1}])
    [change] = await tasks.changes(run_id=run)
    assert (change["actor"], change["op"], change["after"]["title"]) == ("agent", "insert", "salt")
    whole = [change["id"] for change in await tasks.changes()]
    paged, before = [], {}
    while before is not None:
        page = await tasks.call("GET", "/changelog", params={"limit": 2, **before})
        paged += [change["id"] for change in page["changes"]]
        before = {"before": page["next"]} if "next" in page else None
    assert paged == whole == sorted(whole, reverse=True)
    assert await tasks.call("GET", "/verify") == {"intact": True, "broken_at": None, "is_cut_off": False}


async def test_undo_puts_back_what_a_run_wrote_and_reports_what_others_changed_since(tasks):
    run = await tasks.let_agent("db_update", table="tasks", set={"cost": 99}, where={"cost": {"gte": 2}})
    await tasks.call("PATCH", "/tables/tasks/rows", json={"row_ids": [2], "changes": {"cost": 4}})
    undone = await tasks.server.call("POST", f"/runs/{run}/undo-data")
    assert (undone["run_id"], undone["undone"], undone["left_count"]) == (run, 2, 1)
    [left] = undone["left"]
    assert (left["table"], left["row_id"]) == ("tasks", 2)
    assert "changed since" in left["why"]
    assert (await tasks.call("POST", "/query", json={"sql": "SELECT cost FROM tasks"}))["rows"] == [[2], [4], [5]]
    assert [change["op"] for change in await tasks.changes(limit=2)] == ["undo", "undo"]
    again = await tasks.server.call("POST", f"/runs/{run}/undo-data")
    assert (again["undone"], again["left_count"]) == (0, 3)


async def test_a_migration_is_taken_back_by_a_person(tasks):
    await tasks.let_agent(
        "db_migrate",
        purpose="Who does it.",
        up_sql="ALTER TABLE tasks ADD COLUMN who TEXT",
        down_sql="ALTER TABLE tasks DROP COLUMN who",
    )
    [change] = [each for each in await tasks.changes() if (each["detail"] or {}).get("migrated")]
    assert change["actor"] == "migration"
    assert "who" in (await tasks.rows())["columns"]
    back = await tasks.call("POST", f"/changelog/{change['id']}/take-back")
    assert (back["statements"], back["tables"]) == (1, ["tasks"])
    assert "who" not in (await tasks.rows())["columns"]
    assert await tasks.titles() == ["milk", "bread", "tea"]


async def test_subscribers_get_the_writes_in_progress_and_the_last_change(tasks):
    async with tasks.server.watch_events() as watching:
        await tasks.delete(1, 2)
        last = (await tasks.changes(limit=1))[0]["id"]
        frames = []
        while not frames or "last_change" not in frames[-1]:
            frames += of_kind([await watching.next()], "db_update")
    assert [(frame["agent_id"], frame["table"]) for frame in frames] == [(tasks.agent["id"], "tasks")] * 2
    assert [frame["in_flight"] for frame in frames] == [1, 0]
    assert frames[-1]["last_change"] == last


async def test_a_write_that_fails_does_not_stay_under_way(tasks):
    async with tasks.server.watch_events() as watching:
        await tasks.refused("POST", "/tables/tasks/rows", json={"rows": [{"colour": 1}]})
        await tasks.call("POST", "/rotate-key")
        told = [await watching.until("db_update") for _ in range(4)]
    assert [frames[-1]["in_flight"] for frames in told] == [1, 0, 1, 0]
    assert (await tasks.call("GET"))["in_flight"] == 0


# ── Room, keys and whose it is ──────────────────────────────────────────────────────────────────────────────────────


async def test_the_time_in_a_refusal_is_in_the_zone_of_the_agent(tasks):
    await tasks.server.call("PATCH", tasks.path.removesuffix("/db"), json={"timezone": "Asia/Tokyo"})
    for table in ("tasks", "more"):
        await tasks.call("POST", "/import", json={"table": "more", "text": TASKS})
        drop = {"purpose": "x", "up_sql": f"DROP TABLE {table}"}
        answer = await tasks.server.rest.post(f"{tasks.path}/migrate", json=drop)
    assert answer.status_code == 429
    assert re.search(r"space again at 20\d\d-\d\d-\d\d \d\d:\d\d:00 \(Asia/Tokyo\);", answer.json()["error"]["message"])


async def test_a_full_database_refuses_and_keeps_nothing_but_still_deletes(backend_settings):
    async with a_shelf(backend_settings, agent_database_mb=1) as shelf:
        await shelf.call("POST", "/import", json={"table": "tasks", "text": "title\nfirst"})
        body = {"rows": [{"title": "x" * 100_000}]}
        kept = 1
        while (answer := await shelf.server.rest.post(f"{shelf.path}/tables/tasks/rows", json=body)).is_success:
            kept += 1
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "data_quota")
        assert (await shelf.rows(limit=1))["total"] == kept
        assert (await shelf.delete(1))["deleted"] == 1
        [notice] = (await shelf.server.call("GET", "/notifications"))["notifications"]
        assert notice["code"] == "storage_low"


async def test_the_key_opens_the_file_in_another_program_and_that_it_was_shown_is_recorded(tasks, caplog):
    caplog.set_level("DEBUG")
    answer = await tasks.server.rest.post(f"{tasks.path}/key", json={"confirm": tasks.agent["name"]})
    found = answer.json()
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    with closing(sqlcipher3.connect(found["path"])) as connection:
        connection.execute(found["pragma"])
        assert connection.execute("SELECT title FROM tasks").fetchall() == [("milk",), ("bread",), ("tea",)]
    [shown] = [change for change in await tasks.changes() if change["detail"] == {"key_shown": True}]
    assert (shown["actor"], shown["op"]) == ("user", "schema")
    [notice] = (await tasks.server.call("GET", "/notifications"))["notifications"]
    assert notice["code"] == "database_key_shown"
    assert "database key shown" in caplog.messages
    assert found["key"] not in caplog.text + str(notice) + str(shown)


async def test_the_key_takes_the_agents_name_an_owner_and_the_scope_admin(tasks):
    status, code, field, message = await tasks.refused("POST", "/key", json={"confirm": "yes"})
    assert (status, code, field) == (400, "not_confirmed", "confirm")
    assert "No key was shown" in message
    body = {"confirm": tasks.agent["name"]}
    limited = await tasks.server.call("POST", "/tokens", json={"name": "limited", "scope": "schedule"})
    async with tasks.server.client(limited["secret"]) as client:
        assert (await client.post(f"{tasks.path}/key", json=body)).status_code == 403
    stranger = await tasks.server.add_user()
    async with tasks.server.client(stranger) as client:
        assert (await client.post(f"{tasks.path}/key", json=body)).status_code == 404
        [own] = (await client.get("/agents")).json()["agents"]
        answer = await client.post(f"/agents/{own['id']}/db/key", json={"confirm": own["name"]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owners_only")
    assert (await tasks.server.call("GET", "/notifications"))["notifications"] == []
    assert not [change for change in await tasks.changes() if change["detail"] == {"key_shown": True}]


async def test_there_is_no_key_before_there_is_a_database(shelf):
    answer = await shelf.refused("POST", "/key", json={"confirm": shelf.agent["name"]})
    assert answer[:2] == (404, "data_not_found")


async def test_erasing_takes_the_agents_name_and_then_leaves_nothing(tasks):
    status, code, field, message = await tasks.refused("DELETE", json={"confirm": "yes"})
    assert (status, code, field) == (400, "not_confirmed", "confirm")
    assert tasks.agent["name"] in message
    assert await tasks.titles() == ["milk", "bread", "tea"]
    assert await tasks.call("DELETE", json={"confirm": tasks.agent["name"]}) == {"ok": True}
    assert (await tasks.call("GET"))["state"] == "none"
    assert not list(tasks.folder.rglob("db.*"))
    await tasks.call("POST", "/import", json={"table": "tasks", "text": "title\nnew"})
    assert await tasks.titles() == ["new"]


async def test_without_the_toolset_people_still_read_what_is_there(tasks):
    await tasks.server.change_agent(toolsets=[])
    found = await tasks.call("GET")
    assert (found["is_on"], found["state"], found["tables"][0]["rows"]) == (False, "open", 3)
    assert await tasks.titles() == ["milk", "bread", "tea"]
