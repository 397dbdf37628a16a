"""A node with the default lease dies in the middle of a run, and another one on a disk of its own goes on with it."""

import os
import signal
import time

import pytest

from crash.server_process import HALF, TOKEN, Conversation, ServerProcess, results
from fixtures.stores import IS_LONG
from openai_server import OpenAIServer, call, calls, say

pytestmark = pytest.mark.crash

TABLE = {"name": "tasks", "purpose": "x", "columns": [{"name": "title", "type": "text"}]}


@pytest.mark.skipif(not IS_LONG, reason="long")
async def test_within_35_seconds_another_node_goes_on_with_everything_that_was_acknowledged(
    tmp_path, swept_postgres_url
):
    script = (
        calls(*call("db_insert", '{"table": "tasks", "rows": [{"title": "one"}]}')),
        calls(*call("write_file", '{"path": "notes.txt", "content": "two\\n", "append": true}')),
        HALF,
        calls(*call("db_query", '{"sql": "SELECT title FROM tasks"}', id="call_3")),
        calls(*call("read_file", '{"path": "notes.txt"}', id="call_4")),
        say("Done."),
    )
    async with OpenAIServer(*script) as provider:

        def node(name: str) -> ServerProcess:
            (tmp_path / name).mkdir()
            plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
            given = {
                "WAKEFUL_DATA_DIR": str(tmp_path / name / "data"),
                "WAKEFUL_CONFIG_DIR": str(tmp_path / "config"),
                "WAKEFUL_DATABASE_URL": swept_postgres_url,
                "WAKEFUL_TOKEN": TOKEN,
                "WAKEFUL_MODEL": "openai-chat:test",
                "WAKEFUL_MODEL_BASE_URL": provider.base_url,
            }
            return ServerProcess(tmp_path / name, plain | given)

        one, two = node("one"), node("two")
        try:
            await one.start()
            talk = Conversation(one, tmp_path)
            await talk.open()
            await one.send("POST", f"/agents/{talk.agent_id}/db/tables", TABLE)
            run_id = await talk.say("Go on.")
            await talk.wait_for_frame(run_id, "stream_delta")
            await two.start()
            assert await one.end(signal.SIGKILL) == -signal.SIGKILL
            began = time.monotonic()
            talk.served = two
            await talk.wait_until(lambda: has_asked(provider, 4), seconds=40)
            taken_over = time.monotonic() - began
            run = await talk.wait_for_end(run_id)
            print(f"taken over after {taken_over:.1f} s")
            assert (run["status"], run["attempt"]) == ("success", 2)
            heard = results(provider)
            assert '"one"' in heard["call_3"]
            assert heard["call_4"] == "two\n"
            assert taken_over < 35
        finally:
            await one.clean_up()
            await two.clean_up()


async def has_asked(provider: OpenAIServer, times: int) -> bool:
    return len(provider.requests) >= times
