"""Import and export of rows as CSV and JSON."""

import csv
import io

import pytest

from databases import Refused
from wakeful.agentdb import rows as agentdb_rows

ROWS = [
    {"title": "Buy milk", "hours": 0.5},
    {"title": '=HYPERLINK("x")', "hours": -1},
    {"title": 'a,b\n"c"', "state": None},
]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_what_goes_out_comes_back_the_same(database, kind):
    database.with_tasks().ask("insert", table="tasks", rows=ROWS)
    text = database.ask("export", table="tasks", format=kind)["text"]
    done = database.ask("import", table="copy", text=text, format=kind, create=True, source="x")
    assert (done["imported"], done["created_table"]) == (3, True)
    assert done["ignored_columns"] == ["_created_at", "_deleted_at", "_updated_at"]
    same = "SELECT id, title, state, hours FROM {} ORDER BY id"
    assert database.query(same.format("copy")) == database.query(same.format("tasks"))


FORMULAS = [
    "=1", "+1", "-1", "@x", "\t1", "\r1", "\n1", " =1", "\u00a0=1", "\u00a0 \u3000+1", "\ufeff=1", "\ufeff\ufeff-1",
    "\u200b@x", "\u2060=1", "\x00=1", "\x1f=1", "\t =1", "\n\n@x", "\r\n=1", "＝1", "＋1", "－1", "＠x", "﹦1",
    " ＝1", "﹢1", "−1", "'=1", "''=1", "' =1", "'\t",
]  # fmt: skip
PLAIN = ["1=1", "a-b", "x@y", "'", "'a'", "it's", "''", " a", "", "\u00a0", "–", "~=1"]


@pytest.mark.parametrize("value", FORMULAS)
def test_no_text_can_pass_for_a_formula_in_csv(tasks, value):
    tasks.ask("insert", table="tasks", rows=[{"title": value, "hours": -2}])
    text = tasks.ask("export", sql="SELECT title, hours FROM tasks WHERE hours < 0", format="csv")["text"]
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == [f"'{value}", "-2.0"]


def test_texts_that_look_like_formulas_come_back_from_csv_the_same(database):
    database.with_tasks().ask(
        "insert", table="tasks", rows=[{"title": value} for value in [*FORMULAS, *PLAIN] if value]
    )
    text = database.ask("export", table="tasks", format="csv")["text"]
    database.ask("import", table="copy", text=text, format="csv", create=True, source="x")
    assert database.query("SELECT title FROM copy ORDER BY id") == database.query("SELECT title FROM tasks ORDER BY id")


@pytest.mark.parametrize("value", PLAIN)
def test_other_texts_stay_as_they_are_in_csv(value):
    assert agentdb_rows.write_rows("csv", ["a"], [[value]]).split("\r\n")[1].strip('"') == value


def test_deleted_rows_are_left_out_unless_asked_for(tasks):
    tasks.ask("delete", table="tasks", where={"id": 1})
    assert tasks.ask("export", table="tasks", format="csv")["text"].count("Task") == 2
    assert tasks.ask("export", table="tasks", format="csv", show="all")["text"].count("Task") == 3
    assert tasks.ask("export", sql="SELECT title FROM tasks", format="csv")["text"].count("Task") == 2


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("csv", "", "must name each column"),
        ("csv", "title,title\n1,2\n", "must name each column"),
        ("csv", "title\n", "no rows"),
        ("csv", "title,state\n1\n", "Line 2 must have 2 fields"),
        ("csv", 'title\n"open', "Line 2 is not CSV"),
        ("csv", "titel\nx\n", "Did you mean 'title'"),
        ("csv", "title,hours\nx,many\n", "cannot store TEXT value in REAL column"),
        ("json", "{}", "must be a JSON list"),
        ("json", "[1]", "Entry 1 is not a JSON object"),
        ("jsonl", '{"title": "a"}\n{', "Line 2 is not JSON"),
        ("jsonl", '{"title": "a", "hours": 1e999}', "infinity"),
        ("json", '[{"title": "a", "hours": Infinity}]', "not JSON"),
        ("json", '[{"title": "a", "hours": NaN}]', "not JSON"),
        ("csv", "title,hours\na,9e999\n", "must be finite"),
        ("csv", "title,hours\na,-1e400\n", "must be finite"),
        ("csv", "title,hours\na,inf\n", "cannot store TEXT value in REAL column"),
        *(
            (kind, text.format("[" * depth + "]" * depth), words)
            for kind, text in (("json", '[{{"title": {}}}]'), ("jsonl", '{{"title": {}}}'))
            for depth, words in ((400, "at most 250 levels"), (950, "at most 250 levels"), (5_000, "not JSON"))
        ),
    ],
)
def test_a_file_that_does_not_fit_changes_nothing(tasks, kind, text, words):
    with pytest.raises(Refused) as refused:
        tasks.ask("import", table="tasks", text=text, format=kind, create=True, source="x")
    assert words in refused.value.values["message"]
    assert tasks.query("SELECT count(*) FROM tasks") == [[3]]


def test_columns_are_guessed_and_leading_zeros_kept(database):
    text = "id,zip,price,when\n7,01234,1.50,2026-01-01\n9,99999,2,\n"
    database.ask("import", table="shops", text=text, format="csv", create=True, source="x")
    assert database.query("SELECT * FROM shops")[0][:4] == [7, "01234", 1.5, "2026-01-01"]
    assert {change["op"] for change in database.changes()} == {"schema", "import"}


def test_no_table_is_made_where_none_is_wanted(tasks):
    with pytest.raises(Refused, match="There is no table"):
        tasks.ask("import", table="copy", text="a\n1\n", format="csv", create=False, source="x")


def test_a_file_that_grows_too_large_as_json_is_refused(tasks):
    columns = ", ".join(f"NULL AS a_column_with_a_long_name_{number:030}" for number in range(90))
    sql = f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9000) SELECT {columns} FROM n"
    with pytest.raises(Refused, match="Export less at a time") as refused:
        tasks.ask("export", sql=sql, format="json", seconds=30)
    assert refused.value.kind == "limit"
    assert tasks.ask("export", sql=sql, format="csv", seconds=30)["text"].count("\r\n") == 9001
