"""The demo model with its own database, through a chat: it remembers, lists and draws."""

import pytest

from wakeful.app import build
from wakeful.config import Settings
from wakeful.domain.bounds import PRESETS
from wakeful.domain.types import User
from world import NOON, eventually


@pytest.fixture
async def chat(backend_settings):
    """Say something to the demo model and return what it answered."""
    node = build(Settings.model_validate(backend_settings))
    async with node.running():
        user = await node.agents.add_user(User(id="ada", name="Ada", role="owner", created_at=NOON))
        agent = await node.agents.make(user, "Demo", {"toolsets": ("database",), "bounds": PRESETS["reactive"]})
        session = await node.sessions.open(agent.id, user.id)

        async def say(text):
            run = await node.runs.ask(session.id, user.id, text)

            async def is_over():
                return (await node.runs.get(run.id, user.id)).finished_at is not None

            await eventually(is_over, seconds=20)
            messages = await node.sessions.messages(session.id, user.id)
            own = [message for message in messages if message.run_id == run.id]
            return [message.data["tool"] for message in own if message.role == "tool"], own[-1].content

        yield say


async def test_it_remembers_lists_and_draws(chat):
    tools, answer = await chat("what do you remember?")
    assert tools == ["db_query"]
    assert answer == "I remember nothing yet."
    tools, answer = await chat("remember that the plumber comes on Friday")
    assert tools == ["db_insert", "db_create_table", "db_insert"]
    assert answer == "I have noted that."
    tools, _ = await chat("remember that milk is out")
    assert tools == ["db_insert"]
    _, answer = await chat("what do you remember?")
    assert "milk is out" in answer
    assert "the plumber comes on Friday" in answer
    tools, answer = await chat("draw a chart of memories")
    assert tools == ["db_define_view", "db_run_view"]
    assert "The view memories_by_day shows day, entries." in answer
