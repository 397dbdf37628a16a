"""Space in a full file: following the refusal's advice makes the next write possible."""

import pytest

from databases import Database, Refused
from wakeful.agentdb import history

QUOTA = 1024 * 1024
LARGE, MEDIUM, TINY = "x" * 4_000, "x" * 400, "x"


@pytest.fixture
def small(tmp_path):
    database = Database(tmp_path / "db.sqlite", quota=QUOTA).with_tasks()
    yield database
    database.close()


def fill(database, text, at_once):
    """Insert rows until they are refused; return the refusal."""
    while True:
        try:
            database.ask("insert", table="tasks", rows=[{"title": text}] * at_once)
        except Refused as refused:
            return refused


def live(database):
    return database.query("SELECT count(*) FROM tasks")[0][0]


@pytest.mark.parametrize("every", [pytest.param(1, id="all rows"), pytest.param(2, id="every second row")])
@pytest.mark.parametrize(
    ("text", "at_once"),
    [pytest.param(LARGE, 1, id="large"), pytest.param(MEDIUM, 10, id="medium"), pytest.param(TINY, 200, id="tiny")],
)
def test_deleting_rows_as_the_refusal_advises_makes_room(small, text, at_once, every):
    refused = fill(small, text, at_once)
    assert refused.kind == "quota"
    assert "db_delete" in refused.values["message"]
    before = live(small)
    ids = [row_id for (row_id,) in small.query("SELECT id FROM tasks ORDER BY id", limit=5_000)][::every]
    deleted = 0
    for place in range(0, len(ids), 400):
        deleted += small.ask("delete", table="tasks", row_ids=ids[place : place + 400])["deleted"]
    assert deleted == len(ids)
    again = deleted // 3
    for _ in range(max(1, again // at_once)):
        small.ask("insert", table="tasks", rows=[{"title": text}] * at_once)
    assert live(small) == before - deleted + max(1, again // at_once) * at_once
    assert small.ask("verify")["intact"]
    small.close()
    assert small.path.stat().st_size <= QUOTA


def test_a_delete_too_large_for_a_full_file_says_how_many_rows_fit_and_they_do(small):
    fill(small, TINY, 200)
    everything = {"_created_at": {"is_null": False}}
    with pytest.raises(Refused, match="Delete fewer rows at a time: about") as refused:
        small.ask("delete", table="tasks", where=everything)
    assert refused.value.kind == "quota"
    fitting = int(str(refused.value).rsplit(" ", 1)[1].rstrip(".").replace(",", ""))
    [[last]] = small.query("SELECT max(id) FROM (SELECT id FROM tasks ORDER BY id LIMIT :n)", params={"n": fitting})
    assert small.ask("delete", table="tasks", where={"id": {"lte": last}})["deleted"] == fitting


def test_young_tombstones_are_purged_oldest_first_after_a_snapshot_and_with_a_record(small):
    fill(small, LARGE, 1)
    small.ask("delete", table="tasks", where={"id": {"lte": 40}})
    small.at = "2026-03-03T12:00:00+00:00"
    small.ask("delete", table="tasks", where={"id": {"between": [41, 80]}})
    small.at = "2026-03-04T12:00:00+00:00"
    for _ in range(10):
        small.ask("insert", table="tasks", rows=[{"title": LARGE}])
    left = [row_id for (row_id,) in small.query("SELECT id FROM tasks WHERE id <= 80", include_deleted=True)]
    assert left
    assert left == list(range(left[0], 81))  # the oldest are gone, and not more than were needed
    [purged] = [change for change in small.changes() if change["op"] == "purge" and change["table_name"] == "tasks"]
    assert (purged["actor"], purged["at"]) == ("system", small.at)
    assert purged["detail"] == {"purged": left[0] - 1, "row_ids": [[1, left[0] - 1]]}
    [copy] = history.snapshots_of(small.path)
    kept = Database(copy)
    assert kept.query("SELECT count(*) FROM tasks WHERE id <= 80", include_deleted=True) == [[80]]
    kept.close()


def test_what_a_snapshot_holds_already_is_purged_without_another(small):
    fill(small, LARGE, 1)
    small.ask("delete", table="tasks", where={"id": {"lte": 120}})
    for _ in range(60):
        small.ask("insert", table="tasks", rows=[{"title": LARGE}])
    purges = [change for change in small.changes() if change["op"] == "purge" and change["table_name"] == "tasks"]
    assert len(purges) > 1
    assert len(history.snapshots_of(small.path)) == 1


def test_without_a_snapshot_young_tombstones_stay_and_the_refusal_says_why(small):
    fill(small, LARGE, 1)
    small.ask("delete", table="tasks", where={"id": {"lte": 40}})
    (small.path.parent / "snapshots").write_text("in the way")
    refused = fill(small, LARGE, 1)
    assert refused.kind == "quota"
    assert "No snapshot of the database could be written: File exists" in refused.values["message"]
    assert small.ask("restore", table="tasks", where={"id": {"lte": 40}})["restored"] == 40


def test_images_in_the_changelog_go_before_rows_are_refused(small):
    small.ask("insert", table="tasks", rows=[{"title": LARGE}])
    for number in range(400):  # 1.6 MB of images, of one row
        small.ask("update", table="tasks", set={"title": f"{number}{LARGE}"}, where={"id": 1})
    changes = small.changes()
    assert changes[1]["after"] is None
    assert changes[-1]["after"] is not None
    assert small.ask("verify")["intact"]


def test_a_changelog_of_many_small_entries_does_not_fill_the_file_for_good(small):
    small.ask("insert", table="tasks", rows=[{"title": "a"}] * 500)
    for number in range(30):
        small.ask("update", table="tasks", set={"hours": number}, where={"id": {"gte": 0}})
    assert small.ask("verify")["intact"]
    changes = small.changes()
    assert changes[0]["id"] > 1
    assert any("entries_dropped" in (change["detail"] or {}) for change in changes)
    assert small.ask("undo", run_id="run-1")["undone"] >= 0


@pytest.mark.parametrize("rule", ["", "ON DELETE CASCADE", "ON DELETE SET NULL", "DEFERRABLE INITIALLY DEFERRED"])
def test_a_purge_leaves_rows_alone_that_a_live_row_depends_on(small, rule):
    small.ask(
        "migrate",
        purpose="x",
        up_sql="CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT);"
        f"CREATE TABLE b (id INTEGER PRIMARY KEY, a REFERENCES a (id) {rule});",
        down_sql="",
    )
    small.ask("insert", table="a", rows=[{"t": LARGE}] * 20)
    small.ask("insert", table="b", rows=[{"a": 1}])
    small.ask("delete", table="a", where={"id": {"gte": 1}})
    fill(small, LARGE, 1)
    assert small.query("SELECT id FROM a", include_deleted=True) == [[1]]
    assert small.query("SELECT a FROM b") == [[1]]


def test_no_copy_is_spent_on_a_few_deleted_rows(small):
    """One is kept an hour. Spent on next to nothing, it would be missing when many rows are deleted."""
    small.ask("insert", table="tasks", rows=[{"title": "gone"}])
    small.ask("delete", table="tasks", where={"title": "gone"})
    fill(small, LARGE, 1)
    assert history.kept_of(small.path) == []
    small.ask("delete", table="tasks", where={"id": {"lte": 100}})
    fill(small, LARGE, 1)
    assert len(history.kept_of(small.path)) == 1


@pytest.mark.whole
@pytest.mark.parametrize(
    ("text", "at_once"),
    [pytest.param(LARGE, 1, id="large"), pytest.param(MEDIUM, 10, id="medium"), pytest.param(TINY, 200, id="tiny")],
)
def test_the_advice_of_the_refusal_works_again_and_again_within_an_hour(small, text, at_once):
    for minute in range(10, 16):
        small.at = f"2026-03-02T12:{minute}:00+00:00"
        refused = fill(small, text, at_once)
        assert "db_delete" in refused.values["message"]
        assert live(small)
        while ids := [row_id for (row_id,) in small.query("SELECT id FROM tasks", limit=400)]:
            small.ask("delete", table="tasks", row_ids=ids)
        small.ask("purge")
        assert live(small) == 0
    small.ask("insert", table="tasks", rows=[{"title": text}] * at_once)
    assert small.ask("verify")["intact"]


def test_the_first_copy_of_an_hour_is_kept_and_later_ones_replace_each_other(small):
    """The first has the rows from before a runaway agent began; without the others every further write would wait."""
    for minute in range(10, 14):
        small.at = f"2026-03-02T12:{minute}:00+00:00"
        fill(small, LARGE, 1)
        small.ask("delete", table="tasks", where={"id": {"gte": 0}})
    [kept], copies = history.kept_of(small.path), history.snapshots_of(small.path)
    assert "T1211" in kept.name
    assert [copy.name[11:15] for copy in copies] == ["1211", "1213"]


def test_room_is_made_when_no_further_copy_can_be_kept_for_30_days(small):
    for hour in range(8):
        small.at = f"2026-03-02T{12 + hour}:00:00+00:00"
        fill(small, LARGE, 1)
        small.at = f"2026-03-02T{12 + hour}:30:00+00:00"
        small.ask("delete", table="tasks", where={"id": {"gte": 0}})
    small.ask("insert", table="tasks", rows=[{"title": LARGE}])
    assert sum(copy.stat().st_size for copy in history.kept_of(small.path)) <= 5 * QUOTA
    assert len(history.snapshots_of(small.path)) == len(history.kept_of(small.path)) + 1


def test_a_write_that_follows_deletes_leaves_room_for_deleting(small):
    """The file is as long as it may be after a delete; what is free in it is not there for ordinary writes alone."""
    fill(small, LARGE, 1)
    small.ask("delete", table="tasks", where={"id": {"lte": 100}})
    fill(small, LARGE, 1)
    answer = small.answer("delete", table="tasks", where={"id": 150})
    assert answer["used"] <= answer["quota"] * 0.98


def test_a_repacked_table_keeps_row_ids_values_and_references(tmp_path):
    database = Database(tmp_path / "db.sqlite", quota=QUOTA).with_tasks()
    database.ask(
        "migrate",
        purpose="x",
        up_sql="CREATE TABLE loose (a ANY, b BLOB, c REAL); CREATE TABLE p (id INTEGER PRIMARY KEY, n TEXT UNIQUE);"
        "CREATE TABLE q (p REFERENCES p (id) ON DELETE CASCADE)",
        down_sql="",
    )
    rows = [
        {"a": number if number % 3 else str(number), "b": {"base64": "AAH/"}, "c": number} for number in range(1500)
    ]
    database.ask("insert", table="loose", rows=rows)
    database.ask("insert", table="p", rows=[{"n": f"n{number}"} for number in range(1000)])
    database.ask("insert", table="q", rows=[{"p": number} for number in range(1, 1001)])
    for table in ("loose", "p", "q"):
        database.ask("delete", table=table, row_ids=list(range(2, 900, 2)))
    seen = [database.ask("rows", table=table, limit=5_000, show="active") for table in ("loose", "p", "q")]
    fill(database, MEDIUM, 10)
    assert [database.ask("rows", table=table, limit=5_000, show="active") for table in ("loose", "p", "q")] == seen
    assert database.query("SELECT count(*) FROM loose", include_deleted=True)[0][0] < 1500
    database.close()
