"""An older node and one of this version on the same PostgreSQL, as in an upgrade.

The older one is the last commit before a migration, from this repository's history: before the newest one, whose nodes
go on, or before the first one of 0.3, which waits until the nodes of 0.2 have stopped.
"""

import asyncio
import io
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from crash.server_process import TOKEN, Conversation, ServerProcess
from fixtures.stores import IS_LONG
from openai_server import OpenAIServer, call, calls, say
from wakeful.store.migrate import LAST_OF_0_2, load_migrations

ROOT = Path(__file__).parents[2]
MIGRATIONS = "src/wakeful/store/sql/migrations"
TABLE = {"name": "tasks", "purpose": "x", "columns": [{"name": "title", "type": "text"}]}


def git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], check=True, capture_output=True).stdout


def unpack_version_before(number: int, folder: Path) -> Path:
    """Unpack the source of the last commit without a migration, and return its folder."""
    file = next(path.name for path in (ROOT / MIGRATIONS).glob(f"{number:04}_*") if "sqlite" not in path.name)
    added = git("log", "--diff-filter=A", "--format=%H", "--", f"{MIGRATIONS}/{file}").split()[-1].decode()
    with tarfile.open(fileobj=io.BytesIO(git("archive", f"{added}^", "src"))) as archive:
        archive.extractall(folder, filter="data")
    assert not (folder / MIGRATIONS / file).exists()
    return folder / "src"


class OldServer:
    """A server process of another version; as much of `Forked` as is needed."""

    def __init__(self, source: Path, arguments: tuple[str, ...], environment: dict[str, str], errors: Path) -> None:
        self._errors = errors.open("a")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "wakeful", *arguments],
            env=environment | {"PYTHONPATH": str(source)},
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        assert self._process.stdout is not None
        self.stdout, self.pid = self._process.stdout, self._process.pid

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, timeout: float) -> int:
        return self._process.wait(timeout)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self.stdout.close()
        self._errors.close()


pytestmark = [
    pytest.mark.upgrade,
    pytest.mark.skipif(not IS_LONG, reason="long"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the history of the repository"),
    pytest.mark.timeout(600),
]


def environment(folder: Path, place: str, url: str, provider: OpenAIServer) -> dict[str, str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    return plain | {
        "WAKEFUL_DATA_DIR": str(folder / place / "data"),
        "WAKEFUL_CONFIG_DIR": str(folder / "config"),
        "WAKEFUL_DATABASE_URL": url,
        "WAKEFUL_TOKEN": TOKEN,
        "WAKEFUL_MODEL": "openai-chat:test",
        "WAKEFUL_MODEL_BASE_URL": provider.base_url,
        "WAKEFUL_LEASE_SECONDS": "3",
        "WAKEFUL_NODE_NAME": place,
    }


async def test_a_node_of_0_2_keeps_0_3_from_migrating_until_it_has_stopped(tmp_path, postgres_url):
    source = await asyncio.to_thread(unpack_version_before, LAST_OF_0_2 + 1, tmp_path / "old")
    async with OpenAIServer(always=answer) as provider:
        for place in ("older", "newer"):
            (tmp_path / place).mkdir()
        of_newer = environment(tmp_path, "newer", postgres_url, provider)
        of_older = environment(tmp_path, "older", postgres_url, provider)
        older = ServerProcess(tmp_path / "older", of_older, lambda *given: OldServer(source, *given))
        newer = ServerProcess(tmp_path / "newer", of_newer)
        try:
            await older.start()
            agent = (await older.get("/agents"))["agents"][0]["id"]
            db = f"/agents/{agent}/db/tables"
            await older.send("POST", db, TABLE)
            refused = OldServer(ROOT / "src", ("serve", "--port", "0"), of_newer, tmp_path / "newer" / "refused")
            assert await asyncio.to_thread(refused.wait, 60) != 0
            refused.close()
            said = (tmp_path / "newer" / "refused").read_text()
            assert "older. Nothing was changed. Stop all nodes" in said
            assert "Traceback" not in said
            await older.send("POST", f"{db}/tasks/rows", {"rows": [{"title": "older"}]})
            assert await older.end(signal.SIGTERM) == 0
            await newer.start()
            assert (await newer.get(f"{db}/tasks/rows"))["total"] == 1
        finally:
            await older.clean_up()
            await newer.clean_up()


NEWEST = load_migrations("postgres")[-1].number


@pytest.mark.skipif(NEWEST == LAST_OF_0_2 + 1, reason="0.3 has a single migration, which no older node of 0.3 lacks")
async def test_an_older_node_goes_on_while_a_newer_one_has_migrated_and_is_refused_when_it_starts_again(
    tmp_path, postgres_url
):
    source = await asyncio.to_thread(unpack_version_before, NEWEST, tmp_path / "old")

    def launch_old(*given):
        return OldServer(source, *given)

    async with OpenAIServer(always=answer) as provider:
        for place in ("older", "newer"):
            (tmp_path / place).mkdir()
        older = ServerProcess(tmp_path / "older", environment(tmp_path, "older", postgres_url, provider), launch_old)
        newer = ServerProcess(tmp_path / "newer", environment(tmp_path, "newer", postgres_url, provider))
        try:
            await older.start()
            talk = Conversation(older, tmp_path / "older")
            await talk.open()
            db = f"/agents/{talk.agent_id}/db/tables"
            await older.send("POST", db, TABLE)
            await older.send("POST", f"{db}/tasks/rows", {"rows": [{"title": "before"}]})
            await newer.start()  # it migrates

            # Both go on, and have the same rows, files and runs.
            await older.send("POST", f"{db}/tasks/rows", {"rows": [{"title": "older"}]})
            await newer.send("POST", f"{db}/tasks/rows", {"rows": [{"title": "newer"}]})
            ended = [await talk.wait_for_end(await talk.say("note one"))]
            talk.served = newer
            ended.append(await talk.wait_for_end(await talk.say("note two")))
            talk.served = older
            assert [run["status"] for run in ended] == ["success", "success"]
            for number, node in enumerate((older, newer) * 4):
                session = (await node.send("POST", "/sessions", {"title": f"Woken {number}"}))["id"]
                booked = {"call_type": "immediate", "additional_context_message": "Use write_file: note more"}
                await node.send("POST", f"/sessions/{session}/recall", booked)

            async def is_done() -> bool:
                runs = (await older.get("/runs"))["runs"]
                return len(runs) == 10 and all(run["status"] == "success" for run in runs)

            await talk.wait_until(is_done)
            nodes = {node["name"]: node for node in (await older.get("/nodes"))["nodes"]}
            assert nodes.keys() == {"older", "newer"}
            for node in (older, newer):
                page = await node.get(f"{db}/tasks/rows")
                titles = [row[page["columns"].index("title")] for row in page["rows"]]
                assert sorted(titles) == ["before", "newer", "older"]

            # An older node that is started now is refused, with the reason, and the newer ones go on.
            assert await older.end(signal.SIGTERM) == 0
            again = launch_old(
                ("serve", "--port", "0"),
                environment(tmp_path, "older", postgres_url, provider),
                tmp_path / "older" / "again",
            )
            assert await asyncio.to_thread(again.wait, 60) != 0
            again.close()
            said = (tmp_path / "older" / "again").read_text()
            assert "newer Wakeful" in said
            assert "Traceback" not in said
            talk.served = newer
            assert (await talk.wait_for_end(await talk.say("note three")))["status"] == "success"
            upgraded = ServerProcess(tmp_path / "older", environment(tmp_path, "older", postgres_url, provider))
            await upgraded.start()
            assert len((await upgraded.get("/nodes"))["nodes"]) == 2
            await upgraded.clean_up()
        finally:
            await older.clean_up()
            await newer.clean_up()
        assert "Traceback" not in older.log(), older.log()
        assert "Traceback" not in newer.log(), newer.log()


async def answer(exchange):
    """Write a line when asked for a note, else say that it is done."""
    messages = exchange.request.body["messages"]
    if messages[-1]["role"] == "user" and "note " in str(messages[-1]["content"]):
        await calls(*call("write_file", '{"path": "notes.txt", "content": "x\\n", "append": true}'))(exchange)
    else:
        await say("Done.")(exchange)
