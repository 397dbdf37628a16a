"""Columns that would hide SQLite's row id, and rows of files that have some."""

import pytest

from databases import KEY, Refused
from wakeful.agentdb import file
from wakeful.agentdb import migrate as agentdb_migrate

SHADOWS = ["rowid", "RowID", "oid", "OID", "_rowid_", "_ROWID_"]


def as_before(database, sql):
    """Change a file as 0.1 could."""
    database.close()
    connection = file.connect(str(database.path), KEY)
    connection.execute(sql)
    connection.close()


@pytest.fixture
def loose(tasks):
    """A file of 0.1 with a table in which both usual names of the row id are columns."""
    as_before(
        tasks,
        "CREATE TABLE loose (RowID TEXT, oid INTEGER, note TEXT, _created_at TEXT, _updated_at TEXT, _deleted_at TEXT)",
    )
    rows = [("2", 7, "first"), ("1", 7, "second"), ("1", 2, "third")]
    tasks.ask("insert", table="loose", rows=[{"RowID": a, "oid": b, "note": note} for a, b, note in rows])
    return tasks


def notes(database, **more):
    found = database.ask("rows", table="loose", **more)
    return [row[found["columns"].index("note")] for row in found["rows"]]


@pytest.mark.parametrize("name", SHADOWS)
def test_no_table_gets_such_a_column(tasks, name):
    column = {"name": name, "type": "text"}
    for op, args in {
        "create_table": {"name": "x", "purpose": "x", "columns": [column], "indexes": []},
        "alter_table": {"table": "tasks", "add_columns": [column]},
    }.items():
        with pytest.raises(Refused, match="SQLite's name for the row id"):
            tasks.ask(op, **args)
    for sql in (
        f"CREATE TABLE x ({name} TEXT)",
        f"ALTER TABLE tasks ADD COLUMN {name} TEXT",
        f"ALTER TABLE tasks RENAME COLUMN title TO {name}",
    ):
        with pytest.raises(Refused, match=r"SQLite's name for the row id|rowid alias"):
            tasks.ask("migrate", purpose="x", up_sql=sql, down_sql="")
    assert tasks.ask("schema")["tables"][0]["rows"] == 3


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        ("rowid,a\n1,x\n", {"rowid": "rowid_2"}),
        ("OID,a\n1,x\n", {"OID": "OID_2"}),
        ("_rowid_,rowid,rowid_2\n1,x,y\n", {"_rowid_": "rowid_3", "rowid": "rowid_4"}),
        ("a,b\n1,x\n", {}),
    ],
)
def test_an_import_renames_such_a_column_and_says_so(database, text, renamed):
    done = database.ask("import", table="t", text=text, format="csv", create=True, source="x")
    assert done["renamed_columns"] == renamed
    names = [renamed.get(name, name) for name in text.splitlines()[0].split(",")]
    assert database.query(f"SELECT {', '.join(names)} FROM t") != []


def test_one_row_means_one_row_where_columns_hide_the_row_id(loose):
    loose.ask("delete", table="loose", row_ids=[1])
    assert notes(loose) == ["second", "third"]
    loose.ask("update", table="loose", set={"note": "2nd"}, row_ids=[2])
    assert notes(loose) == ["2nd", "third"]
    loose.ask("restore", table="loose", row_ids=[1])
    assert notes(loose) == ["first", "2nd", "third"]
    loose.ask("upsert", table="loose", rows=[{"note": "third", "oid": 1}], conflict_columns=["note"])
    loose.ask("execute", sql="UPDATE loose SET note = '3rd' WHERE note = 'third'")
    assert notes(loose, sort="note") == ["2nd", "3rd", "first"]
    assert [change["row_id"] for change in loose.changes(table="loose")[-5:]] == [1, 2, 1, 3, 3]
    assert loose.ask("verify")["intact"]


def test_a_purge_takes_the_deleted_row_and_no_other(loose):
    loose.ask("delete", table="loose", row_ids=[2])
    loose.at = "2026-06-01T12:00:00+00:00"
    assert loose.ask("purge", actor="system", run=None)["purged"] == 1
    assert notes(loose, show="all") == ["first", "third"]


def test_the_first_open_renames_such_columns_once(loose):
    loose.ask("define_view", name="v", sql="SELECT RowID FROM loose", description="", parameters=[], render="table",
              pinned=None)  # fmt: skip
    loose.ask("define_view", name="w", sql="SELECT note FROM loose", description="", parameters=[], render="table",
              pinned=None)  # fmt: skip
    loose.ask("update", table="loose", set={"RowID": "changed"}, row_ids=[3], run="run-2")
    loose.at = "2026-03-03T12:00:00+00:00"
    done = loose.ask("upgrade", actor="system", run=None)
    assert done["renamed"] == {"loose": {"RowID": "RowID_2", "oid": "oid_2"}}
    assert done["views"] == ["v"]
    assert (loose.path.parent / "snapshots" / done["snapshot"]).exists()
    assert loose.ask("upgrade", actor="system", run=None) == {"renamed": {}, "views": [], "snapshot": None}
    last = loose.changes()[-1]
    assert (last["op"], last["actor"], last["table_name"]) == ("schema", "system", "loose")
    assert last["detail"]["renamed_columns"] == {"RowID": "RowID_2", "oid": "oid_2"}
    assert loose.query("SELECT RowID_2, oid_2 FROM loose") == [["2", 7], ["1", 7], ["changed", 2]]

    # Earlier changes are undone by the columns' current names.
    assert loose.ask("undo", run_id="run-2", actor="user", run=None)["undone"] == 1
    assert loose.query("SELECT RowID_2 FROM loose WHERE note = 'third'") == [["1"]]
    assert loose.ask("verify")["intact"]


def test_a_full_file_can_be_upgraded_too(loose):
    loose.quota = 32 * 4096

    def fill():
        while True:
            loose.ask("insert", table="loose", rows=[{"note": "x" * 900}] * 10)

    with pytest.raises(Refused, match="full"):
        fill()
    assert loose.ask("upgrade", actor="system", run=None)["renamed"]


@pytest.mark.parametrize(
    ("table", "sql", "expected"),
    [
        (
            "rowid",
            "CREATE TABLE rowid(id INTEGER, 'x', rowid TEXT CHECK (rowid <> 'rowid' AND [RowId] > 1)) STRICT",
            'CREATE TABLE rowid(id INTEGER, \'x\', "n" TEXT CHECK ("n" <> \'rowid\' AND "n" > 1)) STRICT',
        ),
        (
            "rowid",
            'CREATE INDEX rowid ON rowid ("rowid") WHERE rowid > 1',
            'CREATE INDEX rowid ON rowid ("n") WHERE "n" > 1',
        ),
        (
            "t",
            "CREATE TABLE t (a REFERENCES rowid (rowid) ON DELETE CASCADE, rowid -- rowid\n)",
            'CREATE TABLE t (a REFERENCES rowid ("n") ON DELETE CASCADE, rowid -- rowid\n)',
        ),
        (
            "rowid",
            "CREATE TABLE rowid (rowid REFERENCES t (rowid), b DEFAULT 'a''s rowid', FOREIGN KEY (rowid) REFERENCES t)",
            "CREATE TABLE rowid (\"n\" REFERENCES t (rowid), b DEFAULT 'a''s rowid', FOREIGN KEY (\"n\") REFERENCES t)",
        ),
    ],
)
def test_new_names_reach_every_place_of_the_schema(table, sql, expected):
    assert agentdb_migrate.rewrite(sql, table, {"rowid": {"rowid": "n"}}) == expected


def test_keys_and_indexes_over_such_a_column_stay(tasks):
    as_before(
        tasks,
        "CREATE TABLE parents (rowid TEXT UNIQUE CHECK (rowid <> ''), _created_at TEXT, _updated_at TEXT,"
        " _deleted_at TEXT);"
        "CREATE TABLE children (id INTEGER PRIMARY KEY, parent REFERENCES parents (rowid) ON UPDATE CASCADE,"
        " _created_at TEXT, _updated_at TEXT, _deleted_at TEXT);"
        "CREATE INDEX by_rowid ON parents (rowid) WHERE rowid > 'a'",
    )
    tasks.ask("insert", table="parents", rows=[{"rowid": "p"}])
    tasks.ask("insert", table="children", rows=[{"parent": "p"}])
    assert tasks.ask("upgrade", actor="system", run=None)["renamed"] == {"parents": {"rowid": "rowid_2"}}
    with pytest.raises(Refused, match="FOREIGN KEY"):
        tasks.ask("insert", table="children", rows=[{"parent": "nobody"}])
    with pytest.raises(Refused, match="CHECK"):
        tasks.ask("insert", table="parents", rows=[{"rowid_2": ""}])
    tasks.ask("update", table="parents", set={"rowid_2": "q"}, row_ids=[1])
    assert tasks.query("SELECT parent FROM children") == [["q"]]
    tasks.close()
    connection = file.connect(str(tasks.path), KEY)
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()
