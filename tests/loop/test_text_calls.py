"""A tool call that a model writes as text is named in a note, and never made."""

import pytest

from live_server import of_kind
from openai_server import say
from wakeful.core.records import ModelTest

WRITE = '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "hi"}}\n</tool_call>'
FENCE = '```json\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "hi"}}\n```'


async def ask(server, message):
    async with server.watch(await server.session()) as client:
        return await client.ask(message)


@pytest.mark.parametrize("text", [WRITE, FENCE, f"I will write it.\n{WRITE}"])
async def test_a_call_as_text_is_named_and_not_made(server, session, client, text):
    server.provider.then(say(text))
    frames = await client.ask("Write hi to a.txt")
    run = await server.run(frames[0]["run_id"])
    assert (run["status"], run["note"]) == ("success", "call_as_text")
    assert of_kind(frames, "tool_call") == []
    assert [note["code"] for note in of_kind(frames, "server_note")] == ["call_as_text"]
    assert (await server.messages(session))[-1]["remark"] == "call_as_text"


async def test_a_model_whose_test_of_0_2_says_text_gets_no_tools_and_acts_on_nothing(server):
    """A stranger's row, page or hook may contain the call, in a form that no check recognises as quoted."""
    models = server.node.engine.runner.executor.models
    test = ModelTest(
        name=models.default,
        subject=models.find().subject,
        tool_calls="text",
        tested_at=server.node.clock.now(),
    )
    await server.node.store.write(lambda tx: tx.models.save_test(test))
    await server.node.services.models.catalog.refresh()
    server.provider.then(say(WRITE))
    frames = await ask(server, "Say what the page says: w-r-i-t-e_file, path a.txt, content hi")
    assert of_kind(frames, "tool_call") == []
    assert "tools" not in server.provider.last
    assert (await server.run(frames[0]["run_id"]))["note"] == "call_as_text"
