"""The tools of an agent's database, as a model calls them."""

from dataclasses import replace

import orjson
import pytest

from harness import Harness, tool_context
from wakeful.database.tools import database_tools
from wakeful.toolbox.registry import Tools

NAMES = """
    db_schema db_create_table db_alter_table db_migrate db_insert db_upsert db_update db_delete db_restore db_query
    db_execute db_define_view db_run_view db_list_views db_drop_view db_import db_export
"""
COLUMNS = [{"name": "title", "type": "text", "required": True}, {"name": "price", "type": "real"}]


@pytest.fixture(scope="module")
async def harness(shared_settings):
    """One node with its database workers for all tests here; each has an agent of its own."""
    async with Harness(shared_settings).opened() as harness:
        yield harness


@pytest.fixture
async def call(harness, tmp_path):
    """Call a tool and return what the model reads."""
    agent = await harness.add_agent(toolsets=("database",))
    context = replace(tool_context(tmp_path / "workspace"), agent=agent)
    tools = Tools(database_tools(harness.node.services.data, 10_000_000))

    async def call(tool, /, **arguments):
        result = await tools.call(tool, arguments, context)
        said = orjson.loads(result.text)
        assert said["ok"] == result.success
        return said.get("result", said)

    call.context = context
    return call


@pytest.fixture
async def shop(call):
    await call("db_create_table", name="items", purpose="What to buy.", columns=COLUMNS)
    await call("db_insert", table="items", rows=[{"title": "Milk", "price": 1.2}, {"title": "Bread", "price": 3}])
    return call


async def test_all_are_there_and_only_with_the_toolset(harness):
    with_it, without = await harness.add_agent(toolsets=("database",)), await harness.add_agent(toolsets=("files",))
    tools = Tools(database_tools(harness.node.services.data, 1))
    assert tools.catalog.names_for(with_it) == NAMES.split()
    assert tools.catalog.names_for(without) == []


async def test_every_tool_does_its_work(shop):
    assert [table["name"] for table in (await shop("db_schema"))["tables"]] == ["items"]
    assert (
        "note"
        in (await shop("db_alter_table", table="items", add_columns=[{"name": "note", "type": "text"}]))["columns"]
    )
    migrated = await shop("db_migrate", purpose="x", up_sql="CREATE INDEX by_price ON items (price)", down_sql="")
    assert migrated["statements"] == 1
    upserted = await shop(
        "db_upsert", table="items", rows=[{"title": "Milk", "price": 1.3}], conflict_columns=["title"]
    )
    assert upserted["outcomes"] == ["updated"]
    assert (await shop("db_update", table="items", set={"note": "rye"}, where={"title": "Bread"}))["updated"] == 1
    assert (await shop("db_delete", table="items", where={"price": {"gt": 2}}))["deleted"] == 1
    assert (await shop("db_query", sql="SELECT title, price FROM items"))["rows"] == [["Milk", 1.3]]
    assert (await shop("db_query", sql="SELECT 1 FROM items", include_deleted=True))["row_count"] == 2
    assert (await shop("db_restore", table="items", where={"title": "Bread"}))["restored"] == 1
    assert (await shop("db_execute", sql="UPDATE items SET price = price * 2"))["changed"] == 2
    defined = await shop(
        "db_define_view",
        name="dear",
        sql="SELECT title, price FROM items WHERE price > :least",
        parameters=[{"name": "least", "required": False, "default": 3}],
        render="bar",
        pinned=True,
    )
    assert defined == {"view": "dear", "outcome": "created", "pinned": True}
    assert (await shop("db_run_view", name="dear"))["rows"] == [["Bread", 6.0]]
    assert (await shop("db_run_view", name="dear", params={"least": 0}))["row_count"] == 2
    assert [view["name"] for view in await shop("db_list_views")] == ["dear"]
    assert (await shop("db_drop_view", name="dear"))["dropped"]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
async def test_files_go_out_to_the_workspace_and_come_back(shop, kind):
    written = await shop("db_export", path=f"out/items.{kind}", table="items")
    assert (shop.context.workspace / "out" / f"items.{kind}").stat().st_size == written["bytes"]
    done = await shop("db_import", path=f"out/items.{kind}", table="copy")
    assert (done["imported"], done["created_table"]) == (2, True)
    assert (await shop("db_query", sql="SELECT title FROM copy"))["rows"] == [["Milk"], ["Bread"]]


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "field", "words"),
    [
        ("db_insert", {"table": "nope", "rows": [{}]}, "not_found", "table", "There are: items"),
        ("db_insert", {"table": "items", "rows": [{"titel": 1}]}, "invalid", "rows", "Did you mean 'title'"),
        ("db_insert", {"table": "items"}, "invalid", "rows", "It takes: table, rows"),
        ("db_update", {"table": "items", "set": {}, "where": {"id": 1}}, "invalid", "set", "must name the columns"),
        ("db_delete", {"table": "items", "where": {}}, "invalid", "where", "every row"),
        ("db_query", {"sql": "DROP TABLE items"}, "refused", None, ""),
        ("db_query", {"sql": "SELEC 1"}, "invalid", None, "syntax"),
        ("db_execute", {"sql": "DELETE FROM items"}, "refused", None, "db_delete"),
        ("db_insert", {"table": "items", "rows": [{"title": None}]}, "conflict", None, "NOT NULL"),
        ("db_export", {"path": "../x.csv", "table": "items"}, "refused", None, "outside your workspace"),
        ("db_export", {"path": "AGENTS.md", "table": "items", "format": "csv"}, "refused", None, "to your owner"),
        (
            "db_export",
            {"path": "a/../agents.md", "sql": "SELECT 1", "format": "csv"},
            "refused",
            None,
            "to your owner",
        ),
        ("db_export", {"path": "x.csv"}, "invalid", "table", "exactly one"),
        ("db_export", {"path": "x.txt", "table": "items"}, "invalid", "format", ".jsonl"),
        ("db_import", {"path": "nope.csv", "table": "x"}, "not_found", None, "list_files"),
        ("db_import", {"path": "/etc/passwd", "table": "x", "format": "csv"}, "refused", None, "outside"),
        ("db_run_view", {"name": "nope"}, "not_found", "name", "db_define_view"),
    ],
)
async def test_a_refusal_tells_the_model_how_to_mend_its_call(shop, name, arguments, kind, field, words):
    said = await shop(name, **arguments)
    assert (said["ok"], said["kind"], said.get("field"), said["retryable"]) == (False, kind, field, False)
    assert words in said["message"]


def nested(depth):
    value = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
async def test_numbers_that_json_does_not_have_are_refused_at_every_door(shop, number):
    where = {"where": {"title": "Milk"}}
    for name, arguments in (
        ("db_insert", {"table": "items", "rows": [{"title": "x", "price": number}]}),
        ("db_upsert", {"table": "items", "rows": [{"title": "x", "price": number}], "conflict_columns": ["title"]}),
        ("db_update", {"table": "items", "set": {"price": number}, **where}),
        ("db_update", {"table": "items", "set": {"title": [{"a": number}]}, **where}),
        ("db_delete", {"table": "items", "where": {"price": {"lt": number}}}),
        ("db_query", {"sql": "SELECT ?", "params": [number]}),
        ("db_execute", {"sql": "UPDATE items SET price = :p", "params": {"p": number}}),
        ("db_alter_table", {"table": "items", "add_columns": [{"name": "a", "type": "real", "default": number}]}),
        ("db_define_view", {"name": "v", "sql": "SELECT :a", "parameters": [{"name": "a", "default": number}]}),
    ):
        said = await shop(name, **arguments)
        assert (said.get("ok"), said.get("kind")) == (False, "invalid"), (name, said)
    assert (await shop("db_query", sql="SELECT price FROM items"))["rows"] == [[1.2], [3.0]]


@pytest.mark.parametrize("depth", [400, 950])
async def test_arguments_nested_too_deep_fail_the_call_and_nothing_else(harness, shop, depth):
    value = nested(depth)
    where = {"where": {"title": "Milk"}}
    workers = harness.node.services.data.files.engine.pids
    for name, arguments in (
        ("db_insert", {"table": "items", "rows": [{"title": value}]}),
        ("db_upsert", {"table": "items", "rows": [{"title": value}], "conflict_columns": ["title"]}),
        ("db_update", {"table": "items", "set": {"title": value}, **where}),
        ("db_delete", {"table": "items", "where": {"title": value}}),
        ("db_restore", {"table": "items", "where": {"title": {"in": [value]}}}),
        ("db_query", {"sql": "SELECT ?", "params": [value]}),
        ("db_execute", {"sql": "UPDATE items SET title = :p", "params": {"p": value}}),
        ("db_run_view", {"name": "v", "params": {"a": value}}),
    ):
        said = await shop(name, **arguments)
        assert (said.get("ok"), said.get("kind")) == (False, "invalid"), (name, said)
        assert "nested" in said["message"], (name, said)
    shop.context.workspace.mkdir()
    (shop.context.workspace / "deep.json").write_text('[{"title": ' + "[" * depth + "]" * depth + "}]")
    assert (await shop("db_import", path="deep.json", table="items"))["kind"] == "invalid"
    assert harness.node.services.data.files.engine.pids == workers
    assert (await shop("db_query", sql="SELECT count(*) FROM items"))["rows"] == [[2]]


async def test_what_took_too_long_may_be_tried_again(shop, monkeypatch):
    monkeypatch.setattr("wakeful.database.files.SECONDS", 0.2)
    bomb = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    said = await shop("db_query", sql=bomb)
    assert (said["kind"], said["retryable"]) == ("timeout", True)


async def test_a_limit_that_says_when_it_ends_may_be_tried_again(shop):
    for name in ("a", "b"):
        up_sql = f"CREATE TABLE {name} (x); INSERT INTO {name} (x) VALUES (1)"
        await shop("db_migrate", purpose="p", up_sql=up_sql, down_sql="")
        said = await shop("db_migrate", purpose="p", up_sql=f"DROP TABLE {name}", down_sql="")
    assert "There is space again at" in said["message"]
    assert (said["kind"], said["retryable"]) == ("limit", True)


async def test_the_run_and_the_agent_stand_in_the_changelog(harness, shop):
    data = harness.node.services.data
    by = await data.person(shop.context.agent.id, harness.user.id)
    assert {(change["actor"], change["run_id"]) for change in (await data.run(by, "changelog"))["changes"]} == {
        ("agent", shop.context.run.id)
    }
