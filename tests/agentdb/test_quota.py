"""Quota of a file, and what is deleted when it is full."""

import pytest

from databases import Database, Refused
from wakeful.agentdb import history

QUOTA = 1024 * 1024
TEXT = "x" * 4_000


@pytest.fixture
def small(tmp_path):
    database = Database(tmp_path / "db.sqlite", quota=QUOTA).with_tasks()
    yield database
    database.close()


def fill(database, text=TEXT):
    """Insert rows until one is refused; return how many went in and the refusal."""
    count = 0
    while True:
        try:
            database.ask("insert", table="tasks", rows=[{"title": text}])
        except Refused as refused:
            return count, refused
        count += 1


def size(database):
    database.close()
    return database.path.stat().st_size


def test_a_full_file_refuses_and_keeps_nothing_of_it(small):
    count, refused = fill(small)
    assert refused.kind == "quota"
    assert "db_delete" in refused.values["message"]
    with pytest.raises(Refused):
        small.ask("insert", table="tasks", rows=[{"title": TEXT}] * 5)
    assert small.query("SELECT count(*) FROM tasks") == [[count]]
    assert small.ask("verify")["intact"]
    assert size(small) <= QUOTA


def test_deleting_always_works_and_the_file_stays_within_its_quota(small):
    count, _ = fill(small)
    for number in range(1, count + 1):
        assert small.ask("delete", table="tasks", where={"id": number})["deleted"] == 1
    assert small.query("SELECT count(*) FROM tasks") == [[0]]
    assert small.ask("verify")["intact"]
    assert size(small) <= QUOTA


def test_people_are_warned_once_per_crossing(small):
    crossings = []
    while True:
        try:
            crossings.append(small.answer("insert", table="tasks", rows=[{"title": TEXT}]))
        except Refused:
            break
    crossed = [answer["used"] / answer["quota"] for answer in crossings if answer["is_crossing"]]
    assert len(crossed) == 1
    assert 0.80 <= crossed[0] < 0.85


def test_tombstones_past_their_time_make_room_and_are_logged_as_the_hosts_work(small):
    count, _ = fill(small)
    small.ask("delete", table="tasks", where={"id": {"lte": count // 2}})
    small.at = "2026-04-02T12:00:00+00:00"  # 31 days later
    for _ in range(20):
        small.ask("insert", table="tasks", rows=[{"title": TEXT}])
    assert small.query("SELECT count(*) FROM tasks", include_deleted=True) == [[count - count // 2 + 20]]
    purges = [change for change in small.changes() if change["op"] == "purge"]
    assert {change["actor"] for change in purges} == {"system"}
    [purged] = [change["detail"] for change in purges if change["table_name"] == "tasks"]
    assert purged == {"purged": count // 2, "row_ids": [[1, count // 2]]}
    assert small.ask("verify") == {"intact": True, "broken_at": None, "is_cut_off": False}
    assert history.snapshots_of(small.path) == []  # their time was over, so nothing is kept of them


def test_a_young_tombstone_stays(small):
    small.ask("insert", table="tasks", rows=[{"title": TEXT}] * 9)
    small.ask("delete", table="tasks", where={"id": {"lte": 5}})
    small.at = "2026-03-31T12:00:00+00:00"  # 29 days later
    small.ask("purge")
    assert small.ask("restore", table="tasks", where={"id": {"lte": 5}})["restored"] == 5


def test_thinned_entries_keep_who_and_when_and_cannot_be_edited_unnoticed(small):
    small.ask("insert", table="tasks", rows=[{"title": "a"}, {"title": "b"}])
    small.at = "2026-05-02T12:00:00+00:00"
    assert small.ask("purge")["thinned"] == 2
    insert = small.changes()[1]
    assert (insert["op"], insert["actor"], insert["row_id"], insert["after"]) == ("insert", "agent", 1, None)
    small.ask("insert", table="tasks", rows=[{"title": "c"}])
    assert small.ask("verify")["intact"]
    writer = next(iter(small.worker.databases.values())).writer
    writer.raw.execute("UPDATE _changelog SET actor = 'user' WHERE id = 2")
    assert small.ask("verify") == {"intact": False, "broken_at": 1, "is_cut_off": False}


def test_a_row_that_another_refers_to_is_not_purged(database):
    database.ask(
        "migrate",
        purpose="x",
        up_sql="CREATE TABLE a (id INTEGER PRIMARY KEY);"
        "CREATE TABLE b (id INTEGER PRIMARY KEY, a REFERENCES a (id)); INSERT INTO a (id) VALUES (1), (2);"
        "INSERT INTO b (a) VALUES (1)",
        down_sql="",
    )
    database.ask("delete", table="a", where={"id": [1, 2]})
    database.at = "2026-05-02T12:00:00+00:00"
    assert database.ask("purge")["purged"] == 1
    assert database.query("SELECT id FROM a", include_deleted=True) == [[1]]
