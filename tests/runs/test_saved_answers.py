"""A run of 0.2 that was killed between its saved final answer and its end is ended by that answer."""

import asyncpg
import pytest

from harness import MINUTE
from live_server import eventually
from upgrade.old_data import STOPPED_AT, OldClock, running_old_server
from wakeful.config.settings import Settings
from wakeful.datadir.device_key import database_of
from wakeful.store.rows import to_micros

pytestmark = pytest.mark.upgrade

KILLED = """
    UPDATE runs SET status = 'running', finished_at = NULL, lease_until = {lease_until} WHERE id = '{run_id}';
    DELETE FROM events WHERE run_id = '{run_id}' AND data LIKE '%"type":"stream_end"%';
"""


async def ask(old, statements):
    """Ask the database itself, before any server has it, and return the rows of the last statement."""
    url = old.settings.get("database_url")
    if url is None:
        connection = database_of(Settings.model_validate(old.settings)).connect()
        rows = list(connection.execute(statements))
        connection.close()
        return rows
    connection = await asyncpg.connect(url)
    try:
        return await connection.execute(statements) if ";" in statements else await connection.fetch(statements)
    finally:
        await connection.close()


@pytest.mark.parametrize("note", [None, "iteration_limit"])
async def test_the_model_is_not_asked_again_and_the_answer_stands_once(old, note):
    session_id = old.facts["session_id"]
    last = f"SELECT id FROM runs WHERE session_id = '{session_id}' ORDER BY queued_at DESC LIMIT 1"
    [[run_id]] = await ask(old, last)
    # The server takes longer than a minute to come up on no machine, and after ten a chat is not resumed.
    script = KILLED.format(run_id=run_id, lease_until=to_micros(OldClock(STOPPED_AT).now() - MINUTE))
    if note is not None:
        script += f"""
            UPDATE messages SET data = '{{"note":"{note}"}}'
            WHERE run_id = '{run_id}' AND position = (SELECT MAX(position) FROM messages WHERE run_id = '{run_id}');
        """
    await ask(old, script)
    async with running_old_server(old.settings) as server:
        server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"

        async def is_over():
            return (await server.rest.get(f"/runs/{run_id}")).json()["status"] not in ("queued", "running")

        await eventually(is_over)
        run = (await server.rest.get(f"/runs/{run_id}")).json()
        assert (run["status"], run["note"], run["error"]) == ("success", note, None)
        frames = (await server.rest.get(f"/runs/{run_id}/events")).json()["events"]
        assert [frame["type"] for frame in frames].count("stream_end") == 1
        assert [frame["type"] for frame in frames].count("stream_start") == 1
        messages = (await server.rest.get(f"/sessions/{session_id}")).json()["messages"]
        own = [message for message in messages if message["run_id"] == run_id and message["role"] == "assistant"]
        assert run["usage"]["model_calls"] == len(own), "the model was asked again"
        assert frames[-1]["type"] == "stream_end"
        assert frames[-1]["content"] == own[-1]["content"] == messages[-1]["content"]
