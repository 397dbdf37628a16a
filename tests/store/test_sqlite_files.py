"""The embedded store's files: owner, permissions, and disk failures."""

import asyncio
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

import forked_process
from harness import NOON, Harness
from wakeful.core import ids
from wakeful.core.errors import StoreUnavailable
from wakeful.core.types import User
from wakeful.datadir.files import STORE_FILE
from wakeful.store.errors import StoreFull, StoreInUse, StoreUnreadable

PROGRAM = Path(__file__).parents[1] / "support/on_small_disk.py"
SECRET = "Read the diary of Ada Lovelace with read_file."
OTHER_KEY = "5e" * 32


@pytest.fixture
def settings(tmp_path):
    return {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}


def digests(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "wakeful.lock"
    }


async def fill(settings: dict[str, object], **request: object) -> tuple[Harness, str]:
    """Make a store with one wake in it, and close it."""
    async with Harness(settings).opened() as harness:
        wake = await harness.book(**request)
    return harness, wake.id


async def instructions_of(harness: Harness, wake_id: str, **settings: object) -> str:
    node = harness.another_node(**settings)
    async with node.opened():
        return (await node.wakes.get(wake_id, harness.user.id)).instructions


async def crash(settings: dict[str, object], into: Path) -> tuple[Harness, str]:
    """Copy the files of an open store: most of its data is in the WAL."""
    async with Harness(settings).opened() as harness:
        wake = await harness.book()
        shutil.copytree(settings["data_dir"], into)
    assert (into / f"{STORE_FILE}-wal").stat().st_size > 0
    harness.settings = settings | {"data_dir": into}
    return harness, wake.id


# ── One process ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def environment(settings):
    """The environment of another process that opens the store."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    return plain | {
        "WAKEFUL_DATA_DIR": str(settings["data_dir"]),
        "WAKEFUL_CONFIG_DIR": str(settings["config_dir"]),
    }


@pytest.fixture
def holder(environment, tmp_path):
    """Another process that has the store open."""
    process = forked_process.Forked(("serve", "--port", "0"), environment, tmp_path / "errors of the holder")
    assert "http://" in process.stdout.readline()
    yield process
    process.close()


async def test_a_second_process_is_refused_with_the_first_ones_pid(settings, holder):
    with pytest.raises(StoreInUse, match=rf"\(pid {holder.pid}\)"):
        await Harness(settings).node.store.open(NOON)


def test_the_command_says_so_too_and_fails(environment, holder, tmp_path):
    for arguments in (("migrate",), ("serve", "--port", "0")):
        ended = forked_process.run(arguments, environment, tmp_path / "errors")
        assert ended.returncode == 1
        assert f"pid {holder.pid}" in ended.stderr
        assert "Traceback" not in ended.stderr
    os.kill(holder.pid, 0)  # it is still there


async def test_a_process_that_was_killed_does_not_stand_in_the_way(settings, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait(10)
    async with Harness(settings).node.opened():
        pass


async def test_a_node_that_was_closed_does_not_stand_in_its_own_way(settings):
    harness, wake_id = await fill(settings)
    assert await instructions_of(harness, wake_id)


async def test_two_nodes_in_one_process_are_refused_as_well(settings):
    harness = Harness(settings)
    async with harness.node.opened():
        with pytest.raises(StoreInUse, match=rf"\(pid {os.getpid()}\)"):
            await harness.another_node().store.open(NOON)
        await harness.settle_in()  # the first one goes on


# ── Group commit ────────────────────────────────────────────────────────────────────────────────────────────────────


def commits_in(log: Path) -> int:
    """Count the frames that end a transaction: those that say how large the database is after it."""
    data = log.read_bytes()
    page = int.from_bytes(data[8:12])
    salt = data[16:24]
    frames = [data[start : start + 24] for start in range(32, len(data), 24 + page)]
    return sum(frame[4:8] != bytes(4) for frame in frames if frame[8:16] == salt)


@pytest.mark.parametrize(("together", "most_commits"), [(True, 40), (False, 300)])
async def test_writes_that_wait_together_are_committed_together(settings, together, most_commits):
    harness = Harness(settings)
    log = settings["data_dir"] / f"{STORE_FILE}-wal"
    async with harness.node.opened():
        before = commits_in(log)
        users = [User(id=ids.new_id(), name=str(n), role="user", created_at=NOON) for n in range(200)]
        writes = [harness.node.store.write(lambda tx, user=user: tx.agents.add_user(user)) for user in users]
        if together:
            await asyncio.gather(*writes)
        else:
            for write in writes:
                await write
        made = commits_in(log) - before
    assert made <= most_commits
    assert together or made >= 200  # one by one each has its own: what was answered is on the disk


async def test_a_transaction_that_cannot_even_begin_is_answered(settings):
    async with Harness(settings).opened() as harness:
        session = await harness.session()
        database = harness.node.store.database

        async def be_impatient(statements):
            statements.connection.set_busy_timeout(10)

        await database.write(be_impatient)
        other = database.connect()
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.timeout(5):
            with pytest.raises(StoreUnavailable, match="cannot be written"):
                await harness.book(session=session)
        other.execute("ROLLBACK")
        other.close()
        await harness.book(session=session)


# ── Full, read-only ─────────────────────────────────────────────────────────────────────────────────────────────────


def on_small_disk(what: str, tmp_path: Path) -> dict:
    disk = tmp_path / "disk"
    disk.mkdir()
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    unshare = ["unshare", "--mount", *as_root]
    probe = subprocess.run([*unshare, "mount", "-t", "tmpfs", "tmpfs", disk], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {probe.stderr.decode().strip()}")
    ended = subprocess.run(
        [*unshare, sys.executable, PROGRAM, what, disk, tmp_path / "config"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([forked_process.HELPERS, os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0
    return json.loads(ended.stdout)


def test_a_full_disk_is_named_and_loses_nothing(tmp_path):
    said = on_small_disk("fill", tmp_path)
    assert said["error"] == said["again"] == StoreFull.__name__
    assert "is full" in said["message"]
    assert str(tmp_path) not in said["message"]
    assert 10 < said["filled"] < 1_000
    assert said["readable_while_full"] == said["filled"]
    assert said["acknowledged"] == said["found"] == said["filled"] + 1


def test_a_full_disk_under_an_agents_database_is_not_called_quota(tmp_path):
    said = on_small_disk("fill_database", tmp_path)
    assert [(code, status) for code, _, status in said["errors"]] == [("disk_full", 503)] * 2
    for _, message, _ in said["errors"]:
        assert "The server's disk is full" in message
        assert str(tmp_path) not in message
    assert 3 < said["written"] < 200
    assert said["rows_while_full"] == said["written"] * 4, "something of the write that failed was kept"
    assert said["tombstones_while_full"] == 50, "deleted rows were purged to make room on a disk"
    assert said["again"]
    assert (said["migrated_while_full"], said["copies"], said["migrated"]) == (False, [], True)
    assert said["rows"] == said["written"] * 4 + 1
    assert said["is_intact"]


async def test_a_file_that_may_not_grow_loses_nothing(settings):
    """Needs no rights, unlike a small disk."""
    harness = Harness(settings)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    acknowledged: list[str] = []

    async def book_on() -> None:
        for _ in range(1_000):
            acknowledged.append((await harness.book()).id)

    async with harness.opened():
        log = settings["data_dir"] / f"{STORE_FILE}-wal"
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 100_000, limit[1]))
            with pytest.raises(StoreUnavailable, match="cannot be written"):
                await book_on()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, ignored)
        assert acknowledged
        acknowledged.append((await harness.book()).id)
    for wake_id in acknowledged:
        assert await instructions_of(harness, wake_id)


def test_a_read_only_directory_is_named_and_left_alone(tmp_path):
    said = on_small_disk("forbid", tmp_path)
    assert said["error"] == StoreUnavailable.__name__
    assert str(tmp_path / "disk" / "data") in said["message"]
    assert "Read-only file system" in said["message"]
    assert said["is_unchanged"]
    assert said["found"] == 1


async def test_a_directory_that_cannot_be_made_is_named(settings, tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreUnavailable, match="Not a directory") as refused:
        await Harness(settings | {"data_dir": tmp_path / "file" / "data"}).node.store.open(NOON)
    assert str(tmp_path / "file" / "data") in str(refused.value)
    assert "WAKEFUL_DATA_DIR" in str(refused.value)


# ── Damaged, locked ─────────────────────────────────────────────────────────────────────────────────────────────────


def overwrite(file: Path, start: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(data)


DAMAGES = {
    "another kind of file": lambda file: file.write_text("Dear diary, " * 1000),
    "zeros at the beginning": lambda file: overwrite(file, 0, bytes(4096)),
    "noise all over": lambda file: file.write_bytes(os.urandom(file.stat().st_size)),
    "half of the first page": lambda file: os.truncate(file, 2000),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_encrypted", [True, False], ids=["encrypted", "plain"])
async def test_a_damaged_file_is_named_and_left_as_it_is(settings, damage, is_encrypted):
    harness, _ = await fill(settings | {"store_encryption": is_encrypted})
    file = settings["data_dir"] / STORE_FILE
    DAMAGES[damage](file)
    before = digests(settings["data_dir"])[STORE_FILE]
    with pytest.raises(StoreUnreadable) as refused:
        await harness.another_node().store.open(NOON)
    assert str(file) in str(refused.value)
    assert "backup" in str(refused.value)
    assert digests(settings["data_dir"])[STORE_FILE] == before


async def test_damage_deep_inside_is_noticed_and_not_taken_for_data(settings):
    """Every page of an encrypted store proves itself."""
    harness, wake_id = await fill(settings)
    file = settings["data_dir"] / STORE_FILE
    for page in range(1, file.stat().st_size // 4096):
        overwrite(file, page * 4096 + 1000, os.urandom(16))
    before = digests(settings["data_dir"])[STORE_FILE]
    with pytest.raises(StoreUnreadable):
        await instructions_of(harness, wake_id)
    assert digests(settings["data_dir"])[STORE_FILE] == before


WRONG_KEYS = {
    "another key": {"device_key": OTHER_KEY},
    "no key": {"store_encryption": False},
}


@pytest.mark.parametrize("wrong", WRONG_KEYS)
async def test_a_wrong_key_opens_nothing_and_changes_nothing(settings, wrong):
    harness, wake_id = await fill(settings)
    before = digests(settings["data_dir"])
    with pytest.raises(StoreUnreadable):
        await instructions_of(harness, wake_id, **WRONG_KEYS[wrong])
    assert digests(settings["data_dir"]) == before
    assert await instructions_of(harness, wake_id)


@pytest.mark.parametrize("wrong", WRONG_KEYS)
async def test_a_wrong_key_after_a_crash_does_not_touch_what_is_still_in_the_log(settings, tmp_path, wrong):
    harness, wake_id = await crash(settings, tmp_path / "crashed")
    before = digests(tmp_path / "crashed")
    with pytest.raises(StoreUnreadable):
        await instructions_of(harness, wake_id, **WRONG_KEYS[wrong])
    after = digests(tmp_path / "crashed")
    assert {name: after[name] for name in (STORE_FILE, f"{STORE_FILE}-wal")} == {
        name: before[name] for name in (STORE_FILE, f"{STORE_FILE}-wal")
    }
    assert await instructions_of(harness, wake_id)


async def test_a_key_does_not_open_a_plain_store(settings):
    harness, wake_id = await fill(settings | {"store_encryption": False})
    before = digests(settings["data_dir"])
    with pytest.raises(StoreUnreadable):
        await instructions_of(harness, wake_id, store_encryption=True)
    assert digests(settings["data_dir"]) == before
    assert await instructions_of(harness, wake_id)


# ── Who may read it ─────────────────────────────────────────────────────────────────────────────────────────────────


def holds_secret(folder: Path) -> bool:
    return any(SECRET.encode() in file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("is_encrypted", [True, False], ids=["encrypted", "plain"])
async def test_only_an_encrypted_store_keeps_its_secrets(settings, is_encrypted):
    settings |= {"store_encryption": is_encrypted}
    async with Harness(settings).opened() as harness:
        await harness.book(instructions=SECRET)
        assert holds_secret(settings["data_dir"]) != is_encrypted  # the log
    assert holds_secret(settings["data_dir"]) != is_encrypted  # the file


async def test_the_key_is_in_the_configuration_directory_and_nowhere_else(settings):
    await fill(settings)
    key = (settings["config_dir"] / "device.key").read_text().strip()
    assert len(bytes.fromhex(key)) == 32
    for file in settings["data_dir"].rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes()
            assert bytes.fromhex(key) not in file.read_bytes()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_files_are_for_their_owner_alone(settings):
    before = os.umask(0o022)
    try:
        async with Harness(settings).opened():
            files = [file for folder in settings.values() for file in folder.rglob("*") if file.is_file()]
            modes = {file.name: mode(file) for file in files}
    finally:
        os.umask(before)
    store = [STORE_FILE, f"{STORE_FILE}-wal", f"{STORE_FILE}-shm"]
    others = ["device.key", "recovery-key.unshown", "directory.json", "wakeful.lock"]
    assert modes.pop("wakeful.sequence", 0o600) == 0o600  # made a second after the first change
    assert modes == dict.fromkeys([*others, *store], 0o600)
    assert mode(settings["data_dir"]) == mode(settings["config_dir"]) == 0o700
