"""The file on disk: SQLCipher 4, unreadable without its key."""

import pytest
import sqlcipher3

from databases import KEY, Database, Refused, fingerprints


def read_independently(path, key=KEY, sql="SELECT title FROM tasks ORDER BY id"):
    connection = sqlcipher3.connect(path)
    try:
        connection.execute(f"PRAGMA key = \"x'{key.hex()}'\"")
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_sqlcipher_itself_reads_the_file(tasks):
    tasks.close()
    assert read_independently(tasks.path) == [("Task 1",), ("Task 2",), ("Task 3",)]


def test_another_key_reads_nothing(tasks):
    tasks.close()
    with pytest.raises(sqlcipher3.DatabaseError):
        read_independently(tasks.path, bytes(32))


def test_the_bytes_show_nothing(tasks):
    tasks.close()
    written = b"".join(path.read_bytes() for path in tasks.path.parent.rglob("*") if path.is_file())
    for word in (b"Task 1", b"tasks", b"_changelog", b"SQLite format", b"title"):
        assert word not in written


def test_the_file_is_its_owners_alone(tasks):
    assert {path.stat().st_mode & 0o077 for path in tasks.path.parent.iterdir()} == {0}


def test_reading_first_answers_empty_and_makes_nothing(tmp_path):
    nothing = Database("")  # so the server asks while an agent has no file
    assert nothing.ask("schema")["tables"] == []
    assert nothing.ask("list_views") == []
    assert nothing.ask("changelog") == {"changes": [], "is_more": False}
    assert nothing.query("SELECT 1") == [[1]]
    with pytest.raises(Refused, match="There is none yet"):
        nothing.query("SELECT * FROM tasks")
    with pytest.raises(Refused, match="There is none yet"):
        nothing.ask("insert", table="tasks", rows=[{"title": "x"}])


@pytest.mark.parametrize(
    ("op", "args"),
    [("query", {"sql": "SELECT 1"}), ("insert", {"table": "tasks", "rows": [{"title": "x"}]})],
    ids=["reading", "writing"],
)
def test_a_wrong_key_opens_nothing_and_changes_nothing(tasks, tmp_path, op, args):
    tasks.close()
    before = fingerprints(tmp_path)
    with pytest.raises(Refused) as refused:
        Database(tasks.path, key=bytes(32)).ask(op, **args)
    assert refused.value.kind == "unreadable"
    assert fingerprints(tmp_path) == before


def test_a_plain_file_is_encrypted_when_it_is_first_opened(database):
    plain = sqlcipher3.connect(database.path)
    plain.executescript(
        "CREATE TABLE tasks (id INTEGER PRIMARY KEY, title, _deleted_at); INSERT INTO tasks(title) VALUES ('a')"
    )
    plain.close()
    assert database.query("SELECT title FROM tasks") == [["a"]]
    database.close()
    assert b"SQLite format" not in database.path.read_bytes()
    assert read_independently(database.path) == [("a",)]


def test_another_key_can_take_its_place(tasks):
    new = bytes(reversed(range(32)))
    tasks.ask("rekey", new_key=new.hex())
    tasks.close()
    assert read_independently(tasks.path, new) == [("Task 1",), ("Task 2",), ("Task 3",)]
    with pytest.raises(Refused):
        tasks.query("SELECT 1")
    tasks.key = new
    assert tasks.query("SELECT count(*) FROM tasks") == [[3]]
