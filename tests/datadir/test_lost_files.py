"""A used data directory with a truncated or missing file: the start is refused or the loss reported, never silent.

In the long form every file of the data and the config directory is cut in every way, on both stores.
"""

import os
import random
import re
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

import forked_process
from fixtures.stores import IS_LONG, empty_database
from used_data import COLUMNS, Place, Running

pytestmark = pytest.mark.crash

TITLES = ["one", "two", "three"]
DAMAGES = {
    "empty": lambda file: os.truncate(file, 0),
    "missing": lambda file: file.unlink(),
    "half": lambda file: os.truncate(file, file.stat().st_size // 2),
    "short of its end": lambda file: os.truncate(file, file.stat().st_size - min(40_000, file.stat().st_size // 10)),
}
TELLING = {"store_behind", "database_unreadable", "database_behind"}


def work_with(running: Running) -> None:
    """Leave something in the store and in the database of an agent."""
    [agent] = running.get("/agents")["agents"]
    database = f"/agents/{agent['id']}/db"
    running.post(f"{database}/tables", {"name": "tasks", "purpose": "What to do.", "columns": COLUMNS})
    running.post(f"{database}/migrate", {"purpose": "More.", "up_sql": "CREATE TABLE more (a TEXT)", "down_sql": ""})
    running.post(f"{database}/tables/tasks/rows", {"rows": [{"title": title} for title in TITLES]})
    for title in TITLES:
        running.post("/sessions", {"title": title})
    time.sleep(2.2)  # the heads of changelogs are saved within a second, and then the store's sequence is noted


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    """A data directory as it is in the middle of the work, and after a graceful stop."""
    place = Place(tmp_path_factory.mktemp("used") / "stopped")
    place.folder.mkdir()
    with place.served() as running:
        work_with(running)
        crashed = place.copy(place.folder.with_name("crashed"))
    return {"crashed": crashed, "stopped": place}


def find_outcome(place: Place) -> str:
    """Start a server, and say whether it was refused, told what is missing, or has everything."""
    with place.tried() as running:
        if running is not None:
            return judge(running, place)
    said = place.log.read_text()
    assert str(place.folder) in said, said  # it names what is wrong
    assert re.search(r"wakeful (key|serve)|[Rr]estore|[Dd]elete", said), said  # and what to do
    return "refused"


def judge(running: Running, place: Place) -> str:
    [agent] = running.get("/agents")["agents"]
    found = {each["title"] for each in running.get("/sessions")["sessions"]}
    asked = running.ask("POST", f"/agents/{agent['id']}/db/query", {"sql": "SELECT title FROM tasks"})
    has_rows = asked.is_success and [row for [row] in asked.json()["rows"]] == TITLES
    if found.issuperset(TITLES) and has_rows:
        return "nothing lost"
    if not asked.is_success and asked.json()["error"]["code"] == "database_locked":
        return "locked"
    told = TELLING & set(running.notices())
    assert told, (found, asked.text, place.log.read_text())
    return "told"


def damage(place: Place, file: Path, how: str) -> None:
    DAMAGES[how](place.folder / file)


SHORT = [
    ("crashed", "data/wakeful.sqlite", "empty", "refused"),
    ("stopped", "data/wakeful.sqlite", "missing", "refused"),
    ("crashed", "data/wakeful.sqlite-wal", "missing", "refused or told"),  # by how much is in the file already
    ("crashed", "data/wakeful.sqlite-wal", "short of its end", "told"),
    ("crashed", "config/device.key", "missing", "refused"),
    ("crashed", "data/agents/*/db.sqlite", "empty", "told"),
    ("crashed", "data/agents/*/db.sqlite-wal", "missing", "told"),
]


@pytest.mark.parametrize(("image", "name", "how", "outcome"), SHORT)
def test_a_file_that_was_cut_is_no_fresh_start(embedded, tmp_path, image, name, how, outcome):
    place = embedded[image].copy(tmp_path / "copy")
    [file] = place.folder.glob(name)
    DAMAGES[how](file)
    assert find_outcome(place) in outcome


@pytest.mark.skipif(not IS_LONG, reason="every file in every way takes minutes")
@pytest.mark.parametrize("image", ["crashed", "stopped"])
def test_every_file_in_every_way(embedded, tmp_path, image):
    assert {"refused", "told", "nothing lost"} <= sweep(embedded[image], tmp_path)


@pytest.mark.skipif(not IS_LONG, reason="every file in every way takes minutes")
def test_every_file_in_every_way_on_postgresql(tmp_path, postgres_url):
    """The node's files are copies of what is in PostgreSQL, but for its key, so nothing can be lost."""
    place = Place(tmp_path / "used", postgres_url)
    place.folder.mkdir()
    with place.served() as running:
        work_with(running)
        crashed = place.copy(tmp_path / "crashed")
    for image in (place, crashed):
        assert sweep(image, tmp_path) == {"refused", "nothing lost"}


def sweep(image: Place, tmp_path: Path) -> set[str]:
    ledger: Counter[str] = Counter()
    for number, (file, how) in enumerate((file, how) for file in image.files() for how in DAMAGES):
        place = image.copy(tmp_path / str(number))
        damage(place, file, how)
        outcome = find_outcome(place)
        ledger[outcome] += 1
        print(f"{file} {how}: {outcome}")
        shutil.rmtree(place.folder)
    print(dict(ledger))
    return set(ledger)


# ── Killed at a random moment ───────────────────────────────────────────────────────────────────────────────────────

KILLS = 40 if IS_LONG else 2


@pytest.mark.parametrize("backend", ["embedded", "postgres"])
def test_a_first_start_that_was_killed_goes_on(tmp_path, request, backend):
    url = request.getfixturevalue("postgres_url") if backend == "postgres" else None
    chance = random.Random(16)
    ledger: Counter[str] = Counter()
    for number in range(KILLS if backend == "embedded" else KILLS // 2):
        if url is not None:
            empty_database(url)  # another device key would be refused there
        place = Place(tmp_path / str(number), url)
        place.folder.mkdir()
        kill_after(place, "config/*", chance.uniform(0.0, 0.4))
        ledger[find_stage(place)] += 1
        with place.served() as running:
            [_] = running.get("/agents")["agents"]
            assert not TELLING & set(running.notices())
    print("killed when it had made:", dict(ledger))


def find_stage(place: Place) -> str:
    """Say how far a first start had come."""
    made = ("data/directory.json", "data/wakeful.sqlite", "config/device.key")
    return next((Path(name).name for name in made if (place.folder / name).exists()), "nothing")


@pytest.mark.parametrize("seconds", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.1, 0.3] if IS_LONG else [0.005])
def test_a_new_beginning_that_was_killed_loses_nothing(embedded, tmp_path, seconds):
    place = embedded["crashed"].copy(tmp_path / "copy")
    kept = kept_in(place.data)
    os.truncate(place.data / "wakeful.sqlite", 0)
    kill_after(place, "data/set-aside-*", seconds, "--new", "--yes")
    moved = sorted(file.name for file in place.data.glob("set-aside-*/*"))
    is_begun = find_begun(place)
    print(f"killed after {seconds} s, moved {moved}:", "goes on" if is_begun else "refused again")
    if not is_begun:
        with place.served("--new", "--yes"):
            pass
    assert kept <= set().union(*(kept_in(folder) for folder in place.data.glob("set-aside-*")))


def kept_in(folder: Path) -> set[tuple[str, int]]:
    """Name every file with its size, but for what a process has for its own, and the file that was cut."""
    own = ("server.lock", "wakeful.lock", "wakeful.sqlite", "wakeful.sequence")
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in own)
    return {(file.name, file.stat().st_size) for file in files if not file.name.endswith("-shm")}


def find_begun(place: Place) -> bool:
    """Return whether a plain start works after a killed one; if not, it is refused with an explanation."""
    with place.tried() as running:
        if running is None:
            assert "serve --new" in place.log.read_text()
        return running is not None


def kill_after(place: Place, sign: str, seconds: float, *arguments: str) -> None:
    """Start a server, wait until a file is there, and kill the server a moment later, whatever it is at."""
    process = forked_process.Forked(("serve", "--port", "0", *arguments), place.environment, place.log)
    give_up = time.monotonic() + 30
    while not any(place.folder.glob(sign)):
        assert time.monotonic() < give_up
        time.sleep(0.0005)
    time.sleep(seconds)
    process.kill()
    process.close()
