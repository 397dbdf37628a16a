"""Rows on PostgreSQL that a stopped node holds: everything else goes on, and what needs them comes to it later.

A plain connection stands in for the backend of that node. It has no limits, so nothing here goes on because of them.
"""

import asyncio
import contextlib
import os
import pwd
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from harness import HOUR, MINUTE, Harness, eventually
from live_server import SECONDS, Tap, running_server
from network.own_connections import own_connections
from network.silent_line import SilentLine
from openai_server import say
from wakeful.database.files import By
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.errors import NotificationsLost

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"  # where Debian has it
IS_GONE = "SELECT to_regclass('stood_still') IS NULL"
TRY_LOCK = "SELECT pg_try_advisory_xact_lock(7)"
LIMITS = ("idle_in_transaction_session_timeout", "lock_timeout", "tcp_user_timeout", "tcp_keepalives_idle")


@pytest.fixture
def settings(swept_postgres_url, tmp_path):
    return {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "database_url": swept_postgres_url}


@pytest.fixture
async def harness(settings) -> AsyncIterator[Harness]:
    async with Harness(settings | {"max_attempts": 1}).opened() as harness:
        yield harness


@asynccontextmanager
async def holding(url: str, table: str, row_id: str) -> AsyncIterator[None]:
    """Hold a row as a transaction does that does not go on."""
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        assert await connection.fetch(f"SELECT id FROM {table} WHERE id = $1 FOR UPDATE", row_id)
        yield
        await transaction.rollback()
    finally:
        await connection.close()


# ── Stop ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_stop_answers_in_time_and_is_not_lost_while_the_run_is_held(settings):
    async with running_server(settings) as server:
        tap = Tap()
        server.provider.then(tap)
        session = await server.session()
        run_id = (await server.call("POST", f"/sessions/{session}/messages", json={"content": "Hi"}))["run_id"]
        await asyncio.wait_for(tap.is_asked.wait(), SECONDS)
        async with holding(settings["database_url"], "runs", run_id):
            answer = await server.stop(session)
            assert (answer["ok"], answer["run_id"], answer["was"]) == (True, run_id, "running")
            assert "does not respond" in answer["reason"]
            assert (await server.run(run_id))["status"] == "running"

        async def is_stopped() -> bool:
            return (await server.run(run_id))["status"] == "stopped"

        await eventually(is_stopped, seconds=5)


async def test_a_noted_stop_ends_a_run_whose_node_never_comes_back(harness):
    wake = await harness.book(call_type="immediate")
    harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    [run] = await harness.runs_of(wake)
    async with holding(harness.settings["database_url"], "runs", run.id):
        stopped = await harness.node.runs.stop(run.id, harness.user.id)
        assert stopped is not None
        assert stopped.is_delayed
        await harness.node.engine.scheduler.turn()
        assert (await harness.run(run.id)).stop_requested_at is None
    await harness.node.engine.scheduler.turn()
    assert (await harness.run(run.id)).stop_requested_at is not None
    await harness.crash()
    await harness.turn_at(harness.clock.now() + MINUTE)
    assert (await harness.run(run.id)).status == "stopped"


async def test_a_noted_stop_of_a_run_that_waits_ends_it(harness):
    wake = await harness.book(call_type="immediate")
    await harness.node.engine.scheduler.turn()
    [run] = await harness.runs_of(wake)
    async with holding(harness.settings["database_url"], "runs", run.id):
        stopped = await harness.node.runs.stop(run.id, harness.user.id)
    assert (stopped.was, stopped.is_delayed) == ("queued", True)
    await harness.turn()
    assert (await harness.run(run.id)).status == "stopped"
    assert harness.executor.ran == []


async def test_a_run_that_is_continued_forgets_a_stop_noted_before(harness):
    wake = await harness.book(call_type="immediate")
    await harness.turn()
    [run] = await harness.runs_of(wake)
    await harness.sql(f"UPDATE runs SET status = 'stopped' WHERE id = '{run.id}'")
    await harness.sql(f"INSERT INTO stop_wishes (run_id, requested_at) VALUES ('{run.id}', 0)")
    await harness.node.runs.go_on(run.id, harness.user.id)
    await harness.turn()
    assert (await harness.run(run.id)).status == "success"


# ── What moves by itself ────────────────────────────────────────────────────────────────────────────────────────────


async def crashed_runs(harness: Harness, count: int):
    """Return wakes whose runs were executing when their node died."""
    wakes = [await harness.book(call_type="immediate") for _ in range(count)]
    for wake in wakes:
        harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.crash()
    harness.clock.advance(MINUTE)
    return wakes


@pytest.mark.parametrize("table", ["runs", "wakes"])
async def test_a_held_run_keeps_no_other_from_being_taken_over(harness, table):
    held, *others = await crashed_runs(harness, 3)
    [run] = await harness.runs_of(held)
    async with holding(harness.settings["database_url"], table, run.id if table == "runs" else held.id):
        until = await harness.node.engine.scheduler.turn()
        assert (await harness.run(run.id)).status == "running"
        for wake in others:
            assert [each.status for each in await harness.runs_of(wake)] == ["interrupted"]
        assert until - harness.clock.now() <= timedelta(seconds=1)
        if table == "runs":
            again = await harness.node.engine.scheduler.turn()
            assert again > harness.clock.now(), "it would look again without a pause"
    await harness.node.engine.scheduler.turn()
    assert (await harness.run(run.id)).status == "interrupted"


async def test_a_wake_that_needs_a_held_row_keeps_no_other_from_firing(harness):
    session = await harness.session()
    async with harness.talking(session):
        deferred = await harness.book(
            session=session, call_type="immediate"
        )  # it says so in its session, which is held
        other = await harness.book(call_type="immediate")
        async with holding(harness.settings["database_url"], "sessions", session.id):
            await harness.node.engine.scheduler.turn()
            assert [run.status for run in await harness.runs_of(other)] == ["queued"]
            assert (await harness.wake(deferred)).held_by is None
        await harness.node.engine.scheduler.turn()
        assert (await harness.wake(deferred)).held_by == "deferred"


async def test_a_run_whose_wake_is_held_keeps_no_other_from_starting(harness):
    held = await harness.book(call_type="immediate")
    other = await harness.book(call_type="immediate")
    await harness.node.engine.scheduler.turn()
    async with holding(harness.settings["database_url"], "wakes", held.id):
        await harness.work()
        assert [run.status for run in await harness.runs_of(other)] == ["success"]
        assert [run.status for run in await harness.runs_of(held)] == ["queued"]
    await harness.work()
    assert [run.status for run in await harness.runs_of(held)] == ["success"]


async def test_an_instant_beside_a_held_waiting_run_has_a_run_of_its_own(harness):
    wake = await harness.book(call_type="recurring", every=HOUR)
    harness.clock.advance(HOUR)
    await harness.node.engine.scheduler.turn()
    [waiting] = await harness.runs_of(wake)
    async with holding(harness.settings["database_url"], "runs", waiting.id):
        harness.clock.advance(HOUR)
        await harness.node.engine.scheduler.turn()
    runs = await harness.runs_of(wake)
    assert [(run.status, run.covers) for run in runs] == [("queued", 1), ("queued", 1)]


# ── People ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_write_that_needs_a_held_row_is_refused_in_time_and_works_afterwards(settings):
    async with running_server(settings) as server:
        session = await server.session()
        async with holding(settings["database_url"], "sessions", session):
            answer = await server.rest.post(f"/sessions/{session}/messages", json={"content": "Hi"})
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "store_busy"
            assert (await server.rest.get(f"/sessions/{session}")).status_code == 200
        server.provider.then(say("Hello."))
        asked = await server.call("POST", f"/sessions/{session}/messages", json={"content": "Hi"})

        async def is_answered():
            return (await server.run(asked["run_id"]))["status"] == "success"

        await eventually(is_answered)


async def test_a_scrape_of_the_metrics_waits_for_no_lock(settings):
    async with running_server(settings) as server:
        connection = await asyncpg.connect(settings["database_url"])
        try:
            async with connection.transaction():
                await connection.execute("LOCK TABLE wakes IN ACCESS EXCLUSIVE MODE")
                answer = await server.rest.get("/metrics")
                assert (answer.status_code, "wakeful_ready 1.0" in answer.text) == (200, True)
        finally:
            await connection.close()


# ── Connections ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def shown(statements) -> list[str]:
    return [await statements.connection.fetchval(f"SHOW {name}") for name in LIMITS]


async def test_every_connection_has_its_limits_but_those_that_change_the_schema(swept_postgres_url):
    database = PostgresDatabase(swept_postgres_url)
    await database.open()
    try:
        assert (await database.write(shown))[:2] == ["5s", "1500ms"]
        assert (await database.write(shown, is_synced=False))[:2] == ["5s", "500ms"]
        side = await database.side_connection()
        assert (await shown(side))[0] == "5s"
        await side.close()
        async with database.only_one_node():
            settings = ", ".join(f"current_setting('{name}') AS {name}" for name in LIMITS)
            await database.run_script(f"CREATE TABLE unlimited AS SELECT {settings}")
        [limits] = await database.read(lambda statements: statements.connection.fetch("SELECT * FROM unlimited"))
        await database.run_script("DROP TABLE unlimited")
        assert list(limits)[:2] == ["0", "0"]
        assert (await database.write(shown))[:2] == ["5s", "1500ms"]
    finally:
        await database.close()


def keepalives(port: int) -> list[bool]:
    """Return of each connection of this process to a port whether TCP keepalive is on."""
    return [
        each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
        for each in own_connections()
        if each.getpeername()[1] == port
    ]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists the sockets of a process")
async def test_every_connection_over_tcp_has_keepalive_on(swept_postgres_url):
    """Without asyncpg's private `_transport`, a server whose machine lost power would be waited for a quarter hour."""
    line = SilentLine(swept_postgres_url, b"never sent", "commit", takes_all=True)
    with line.running():
        database = PostgresDatabase(line.url)
        await database.open()
        try:
            side = await database.side_connection()

            async def are_all_on():  # each a moment after it was opened; the one that listens may just be
                on = keepalives(urlsplit(line.url).port)
                return len(on) >= 3 and all(on)

            await eventually(are_all_on)
            await side.close()
        finally:
            await database.close()


async def test_a_node_waits_for_the_schema_longer_than_for_a_row(swept_postgres_url):
    first, second = PostgresDatabase(swept_postgres_url), PostgresDatabase(swept_postgres_url)

    async def take_a_turn() -> None:
        async with second.only_one_node():
            pass

    await first.open()
    await second.open()
    try:
        async with first.only_one_node():
            waiting = asyncio.create_task(take_a_turn())
            await asyncio.sleep(1.7)  # real time: PostgreSQL's own clock limits the wait for a row to 1.5 s
            assert not waiting.done()
        await asyncio.wait_for(waiting, SECONDS)
    finally:
        await first.close()
        await second.close()


async def test_a_transaction_that_stood_still_is_gone_and_says_so(swept_postgres_url):
    database = PostgresDatabase(swept_postgres_url, lease=timedelta(seconds=1))
    await database.open()

    async def stand_still(statements):
        await statements.connection.execute("CREATE TABLE stood_still (id INT)")
        await asyncio.sleep(1.3)  # real time, PostgreSQL's own
        await statements.connection.execute("INSERT INTO stood_still VALUES (1)")

    try:
        with pytest.raises(Exception, match="PostgreSQL does not answer"):
            await database.write(stand_still)
        assert await database.read(lambda statements: statements.connection.fetchval(IS_GONE))
    finally:
        await database.close()


async def test_a_node_that_stopped_between_preparing_a_statement_and_running_it_holds_nothing(swept_postgres_url):
    """Its backend counts as active, so no limit of the server's own ends it."""
    database = PostgresDatabase(swept_postgres_url, lease=timedelta(seconds=1))
    await database.open()
    stopped = await asyncpg.connect(swept_postgres_url, server_settings={"application_name": "wakeful"})
    try:
        await stopped.execute("BEGIN; SELECT pg_advisory_xact_lock(7)")
        await stopped.prepare("SELECT 1")
        for _ in range(5 * 100):
            if await database.read(lambda statements: statements.connection.fetchval(TRY_LOCK)):
                break
            await asyncio.sleep(0.01)
        else:
            raise AssertionError("it is still held")
    finally:
        stopped.terminate()
        await database.close()


# ── PgBouncer ───────────────────────────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def pgbouncer(url: str, folder: Path, mode: str = "session") -> AsyncIterator[str]:
    """Run PgBouncer in front of a server, and give the URL that leads through it."""
    there = urlsplit(url)
    host = parse_qs(there.query).get("host", [there.hostname])[0]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = folder / "pgbouncer.ini"
    file.write_text(
        f"[databases]\n* = host={host} port={there.port or 5432} user={there.username or 'postgres'}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\n"
    )
    # It refuses to run as root; then as the user that the server runs as, who may use its socket.
    as_server = ("-u", pwd.getpwuid(os.stat(host).st_uid).pw_name) if os.geteuid() == 0 else ()  # noqa: PTH116
    process = await asyncio.create_subprocess_exec(
        shutil.which("pgbouncer", path=_PATH), "-q", *as_server, str(file), stderr=asyncio.subprocess.DEVNULL
    )
    through = there._replace(netloc=f"{there.username or 'postgres'}@127.0.0.1:{port}", query="").geturl()
    try:
        for _ in range(500):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            await asyncio.sleep(0.01)
        yield through
    finally:
        process.terminate()
        await process.wait()


WITH_PGBOUNCER = pytest.mark.skipif(shutil.which("pgbouncer", path=_PATH) is None, reason="PgBouncer is not installed")


@WITH_PGBOUNCER
async def test_behind_pgbouncer_in_transaction_mode_it_does_not_start_and_says_why(settings, tmp_path):
    if "host=" not in settings["database_url"]:
        pytest.skip("PgBouncer does not know the password of a given server")
    async with pgbouncer(settings["database_url"], tmp_path, "transaction") as url:
        with pytest.raises(NotificationsLost, match="pool_mode = session"):
            await PostgresDatabase(url, hear_within=timedelta(seconds=2)).open()


@WITH_PGBOUNCER
async def test_a_node_works_through_pgbouncer(settings, tmp_path):
    if "host=" not in settings["database_url"]:
        pytest.skip("PgBouncer does not know the password of a given server")
    direct = settings["database_url"]
    async with pgbouncer(direct, tmp_path) as url, Harness(settings | {"database_url": url}).opened() as harness:
        wake = await harness.book(call_type="immediate")
        await harness.turn()
        assert [run.status for run in await harness.runs_of(wake)] == ["success"]
        assert (await harness.node.store.database.write(shown))[:2] == ["5s", "1500ms"]
        await check_home(harness, harness.another_node(data_dir=tmp_path / "there"))


async def check_home(harness, there):
    """Write rows and files on one node, and read them on another."""
    data, columns = harness.node.services.data, [{"name": "title", "type": "text"}]
    await data.run(By(agent=harness.agent), "create_table", name="tasks", purpose="x", columns=columns)
    await data.run(By(agent=harness.agent), "insert", table="tasks", rows=[{"title": "x" * 9_000}] * 200)

    async def write():
        folder = harness.node.services.workspace_of(harness.agent.id)
        folder.mkdir(parents=True)
        (folder / "a.bin").write_bytes(bytes(3_000_000))

    await data.files.change_files(harness.agent.id, None, write)
    async with there.opened():
        counted = await there.services.data.run(By(agent=harness.agent), "query", sql="SELECT count(*) FROM tasks")
        assert counted["rows"] == [[200]]
        await there.services.data.files.bring_files(harness.agent.id)
        assert (there.services.workspace_of(harness.agent.id) / "a.bin").stat().st_size == 3_000_000
