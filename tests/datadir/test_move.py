"""`wakeful move`: a copy of 0.2's embedded store goes to PostgreSQL, whole or not at all, killed at any step."""

import asyncio
import json
import math
import os
from collections import Counter

import pytest

import forked_process
from fixtures.stores import IS_LONG
from live_server import running_server
from upgrade.moved_data import (
    execute,
    move_and_die,
    move_and_die_at,
    move_and_die_at_step,
    rows_in_postgres,
    rows_in_sqlite,
)
from upgrade.old_data import copy_old_data, running_old_server
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.datadir.device_key import database_of
from wakeful.datadir.files import MOVED_FILE
from wakeful.datadir.lost_data import StoreLeftBehind, StoreMoved
from wakeful.datadir.move import (
    AlreadyMoved,
    NodesRunning,
    NothingToMove,
    OtherTarget,
    StoreMoving,
    move_store,
    place_of,
    undo_move,
)
from wakeful.doctor.checks import check_database
from wakeful.store.copying import RowsDiffer, TargetNotEmpty
from wakeful.store.drivers.sqlite import hold
from wakeful.store.errors import StoreInUse

pytestmark = pytest.mark.upgrade

BATCH = 2 if IS_LONG else 40  # rows

# A few of every kind; each attempt goes on from where the one before was killed.
KILLS = (
    "recorded the move here",
    "recorded the move in PostgreSQL",
    "copied agents",
    "copied messages",
    "compared messages",
    "recorded where agents' files are",
    "finished in PostgreSQL",
    "renamed the embedded store",
)


UNFINISHED = KILLS[1 : KILLS.index("finished in PostgreSQL")]  # in PostgreSQL; at the first it does not know of it yet


@pytest.fixture
def old(tmp_path):
    return copy_old_data("sqlite", tmp_path)


@pytest.fixture
def settings(old):
    return Settings.model_validate(old.settings)


@pytest.fixture
def on_postgres(old, postgres_url):
    return old.settings | {"database_url": postgres_url}


def ignore(_step: str, _done: int, _total: int) -> None:
    """Show no progress."""


def move(settings: Settings, url: str, on_step=ignore):
    return asyncio.run(move_store(settings, url, on_step))


def undo(settings: Settings, url: str, confirm=lambda question: None):
    return asyncio.run(undo_move(settings, url, confirm))


async def open_and_close(settings: Settings) -> None:
    async with build(settings).opened():
        pass


async def start(settings: dict[str, object]) -> None:
    async with running_old_server(settings):
        pass


def test_every_row_is_moved_and_the_same_server_goes_on(old, settings, on_postgres, postgres_url):
    steps: list[tuple[str, int, int]] = []
    moved = move(settings, postgres_url, lambda *step: steps.append(step))
    before, after = rows_in_sqlite(settings, file=MOVED_FILE), rows_in_postgres(postgres_url)
    assert before == after
    assert moved.rows == sum(map(len, before.values())) == steps[-1][1]
    assert {"users", "agents", "sessions", "messages", "wakes", "runs", "tokens"} <= {
        name for name, rows in before.items() if rows
    }

    async def look() -> None:
        async with running_old_server(on_postgres) as server:
            server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
            agent = f"/agents/{old.facts['agent_id']}"
            assert (await server.rest.get(f"{agent}/db")).json()["tables"]
            sessions = (await server.rest.get("/sessions")).json()["sessions"]
            assert len(sessions) == len(before["sessions"])
            await server.node.services.search_index.build()  # it is not moved, but built again
            assert (await server.rest.get("/search", params={"q": "notes"})).json()["results"]
            assert (await server.rest.get("/readyz")).status_code == 200

    asyncio.run(look())


def test_afterwards_the_embedded_store_is_not_started_until_the_move_is_undone(
    settings, old, on_postgres, postgres_url
):
    before = rows_before(settings)
    move(settings, postgres_url)
    with pytest.raises(StoreMoved, match=r"WAKEFUL_DATABASE_URL.*wakeful move --undo"):
        asyncio.run(start(old.settings))
    with pytest.raises(AlreadyMoved):
        move(settings, postgres_url)
    found = check_database(settings, is_running=False, is_quick=True)
    assert "moved to PostgreSQL" in found.found
    undo(settings, postgres_url)
    assert rows_in_sqlite(settings) == before
    with pytest.raises(StoreMoving, match="the same wakes would fire a second time"):
        asyncio.run(start(on_postgres))
    asyncio.run(start(old.settings))
    with pytest.raises(TargetNotEmpty):  # the copy stays until someone deletes it
        move(settings, postgres_url)


def test_files_that_a_server_has_taken_to_postgresql_come_back(old, settings, on_postgres, postgres_url):
    move(settings, postgres_url)
    asyncio.run(start(on_postgres))
    assert not old.agent_folder.exists()
    undo(settings, postgres_url)
    assert (old.agent_folder / "workspace" / "notes.txt").read_text() == "water the tomatoes"

    async def look() -> None:
        async with running_old_server(old.settings) as server:
            server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
            rows = await server.rest.get(f"/agents/{old.facts['agent_id']}/db/tables/prices/rows")
            assert rows.json()["total"] == 7

    asyncio.run(look())


def rows_before(settings: Settings):
    """Bring the schema of the embedded store up to date, as a move does first, and return its rows."""
    asyncio.run(open_and_close(settings))
    return rows_in_sqlite(settings)


def test_killed_at_every_step_it_goes_on_and_neither_side_starts_meanwhile(
    old, settings, on_postgres, postgres_url, tmp_path
):
    before = rows_before(settings)
    elsewhere = Settings.model_validate(on_postgres | {"data_dir": tmp_path / "elsewhere"})
    for step in KILLS:
        assert move_and_die_at(old.settings, postgres_url, step) == -9, step
        with pytest.raises(StoreMoved, match=r"not finished.*wakeful move"):
            build(settings)
        if step in UNFINISHED:
            with pytest.raises(StoreMoving, match="not finished"):
                asyncio.run(open_and_close(elsewhere))
    move(settings, postgres_url)
    assert rows_in_postgres(postgres_url) == before
    asyncio.run(start(on_postgres))


def test_killed_before_and_after_the_end_of_every_batch_it_goes_on(old, settings, on_postgres, postgres_url):
    before = rows_before(settings)
    batches = sum(math.ceil(len(rows) / BATCH) for rows in before.values())
    kills = Counter()
    assert move_and_die_at(old.settings, postgres_url, "recorded the move in PostgreSQL") == -9
    for _ in range(batches if IS_LONG else 3):
        for is_saved in (False, True):  # nothing of the first stays
            kills[is_saved] += move_and_die(old.settings, postgres_url, BATCH, is_saved=is_saved) == -9
        with pytest.raises(StoreMoved, match=r"not finished.*wakeful move"):
            build(settings)
    assert set(kills.values()) == {batches if IS_LONG else 3}
    move(settings, postgres_url)
    assert rows_in_postgres(postgres_url) == before
    asyncio.run(start(on_postgres))


@pytest.mark.skipif(not IS_LONG, reason="long")
def test_killed_at_every_step_of_its_progress_it_goes_on(old, settings, on_postgres, postgres_url):
    """Each attempt gets one step further than the one before; comparing is done again each time."""
    before = rows_before(settings)
    attempts = 0
    while (ended := move_and_die_at_step(old.settings, postgres_url, attempts)) != 0:
        assert ended == -9
        attempts += 1
    assert attempts > 30
    assert rows_in_postgres(postgres_url) == before
    asyncio.run(start(on_postgres))


@pytest.mark.parametrize("step", ["recorded the move here", "copied messages", "renamed the embedded store"])
def test_killed_anywhere_it_can_be_undone(old, settings, on_postgres, postgres_url, step):
    before = rows_before(settings)
    assert move_and_die_at(old.settings, postgres_url, step) == -9
    undo(settings, postgres_url)
    assert rows_in_sqlite(settings) == before
    asyncio.run(start(old.settings))


def test_it_is_refused_while_a_server_runs_and_nothing_is_changed(settings, postgres_url):
    with hold(settings.data_dir), pytest.raises(StoreInUse):
        move(settings, postgres_url)
    build(settings)  # it starts as before


def test_a_database_that_somebody_has_used_is_refused(old, settings, tmp_path, postgres_url):
    other = {"data_dir": tmp_path / "other", "config_dir": tmp_path / "other-config", "database_url": postgres_url}
    asyncio.run(start(other))
    with pytest.raises(TargetNotEmpty, match="users, agents"):
        move(settings, postgres_url)
    build(settings)


def test_an_empty_database_beside_a_full_store_names_the_command(on_postgres):
    with pytest.raises(StoreLeftBehind, match="wakeful move"):
        asyncio.run(start(on_postgres))


def test_another_database_than_the_one_begun_with_is_refused(old, settings, postgres_url):
    assert move_and_die_at(old.settings, postgres_url, "copied agents") == -9
    with pytest.raises(OtherTarget, match="was begun here"):
        move(settings, "postgresql://localhost/another")
    with pytest.raises(OtherTarget):
        undo(settings, "postgresql://localhost/another")


def test_a_character_that_postgresql_cannot_store_is_replaced(settings, postgres_url):
    rows_before(settings)
    connection = database_of(settings).connect()
    connection.execute("UPDATE messages SET content = 'a' || char(0) || 'b'")
    connection.close()
    move(settings, postgres_url)
    assert all("a\ufffdb" in row for row in rows_in_postgres(postgres_url)["messages"])


def test_a_row_that_was_changed_on_the_way_is_found(old, settings, on_postgres, postgres_url):
    assert move_and_die_at(old.settings, postgres_url, "copied messages") == -9
    execute(postgres_url, "UPDATE users SET name = name || '!'")
    with pytest.raises(RowsDiffer, match="users"):
        move(settings, postgres_url)
    with pytest.raises(StoreMoving):
        asyncio.run(start(on_postgres))


def test_a_move_is_not_undone_under_a_running_server_and_asks_if_there_are_newer_runs(
    settings, on_postgres, postgres_url, tmp_path
):
    move(settings, postgres_url)
    questions: list[str] = []

    async def serve() -> None:
        async with running_server(on_postgres | {"data_dir": tmp_path / "second"}):
            with pytest.raises(NodesRunning):
                await undo_move(settings, postgres_url, questions.append)

    asyncio.run(serve())
    execute(postgres_url, "UPDATE runs SET queued_at = queued_at + 1000000000000000")
    undo(settings, postgres_url, questions.append)
    assert len(questions) == 1
    assert "newer runs" in questions[0]


def test_the_command_moves_shows_progress_and_says_what_to_set(old, settings, postgres_url, tmp_path):
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    environment = plain | {
        "WAKEFUL_DATA_DIR": str(settings.data_dir),
        "WAKEFUL_CONFIG_DIR": str(settings.config_dir),
        "WAKEFUL_DATABASE_URL": postgres_url,
    }

    def wakeful(*words: str):
        return forked_process.run(words, environment, tmp_path / "errors")

    unsure = wakeful("move")
    assert (unsure.returncode, "--yes" in unsure.stderr) == (2, True)
    done = wakeful("move", "--yes")
    assert done.returncode == 0, done.stderr
    assert "copied messages" in done.stderr
    assert "set WAKEFUL_DATABASE_URL" in done.stdout
    assert "wakeful move --undo" in done.stdout
    again = wakeful("move", "--yes", "--to", postgres_url)
    assert (again.returncode, "was moved" in again.stderr) == (1, True)
    back = wakeful("move", "--undo", "--json")
    assert (back.returncode, json.loads(back.stdout)) == (0, {"undone": place_of(postgres_url)})
    assert wakeful("move", "--to", "mysql://x", "--yes").returncode == 2


def test_without_an_embedded_store_there_is_nothing_to_move(tmp_path, postgres_url):
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"})
    with pytest.raises(NothingToMove):
        move(settings, postgres_url)
    with pytest.raises(NothingToMove):
        undo(settings, postgres_url)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://ada:secret@db.example:6000/wakeful", "db.example:6000/wakeful"),
        ("postgres:///wakeful?host=/run/pg&port=5433", "/run/pg:5433/wakeful"),
        ("postgresql://ada@h/na%20me", "h:5432/na me"),
    ],
)
def test_the_place_of_a_database_has_no_password(url, place):
    assert place_of(url) == place
