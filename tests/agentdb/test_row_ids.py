"""Columns that would hide SQLite's row id, and rows of files that have some."""

import pytest

from databases import AT, KEY, QUOTA, Refused
from wakeful.agentdb import file
from wakeful.agentdb.changelog import Who
from wakeful.agentdb.connection import OpenDatabase
from wakeful.agentdb.schema import log_schema

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


def test_the_first_use_of_a_file_of_0_1_names_such_columns_and_changes_nothing(loose):
    before = loose.query("SELECT RowID, oid, note FROM loose")
    assert loose.ask("prepare", actor="system", run=None) == {"hides_row_id": ["loose.RowID", "loose.oid"]}
    assert loose.query("SELECT RowID, oid, note FROM loose") == before
    assert list(loose.path.parent.glob("snapshots/*")) == []


def test_the_first_use_of_another_file_names_none(tasks):
    assert tasks.ask("prepare", actor="system", run=None) == {"hides_row_id": []}


def test_a_run_is_undone_by_the_names_that_0_2_gave_to_such_columns(loose):
    """0.2 has renamed them in place: its entry of the changelog has the old names and the new ones."""
    loose.ask("update", table="loose", set={"note": "changed"}, row_ids=[3], run="run-2")
    as_before(loose, "ALTER TABLE loose RENAME COLUMN note TO note_2")
    opened = OpenDatabase(str(loose.path), KEY)
    with opened.writer.writing(Who(at=AT, actor="system"), QUOTA, reserve=0):
        log_schema(opened.writer, "loose", {"renamed_columns": {"note": "note_2"}, "snapshot": "x"})
    opened.close()
    assert loose.ask("undo", run_id="run-2", actor="user", run=None)["undone"] == 1
    assert loose.query("SELECT note_2 FROM loose WHERE RowID = '1' AND oid = 2") == [["third"]]
