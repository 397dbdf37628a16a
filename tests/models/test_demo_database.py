"""The demo model with its own database, through a chat: it remembers, lists and draws."""

from functools import partialmethod

import pytest

from harness import NOON, eventually
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.types import User
from wakeful.models.demo import DemoModel
from wakeful.timing.bounds import PRESETS

pytestmark = pytest.mark.both_stores


@pytest.fixture
async def chat(backend_settings, monkeypatch):
    """Say something to the demo model and return the tools it called and what it answered."""
    monkeypatch.setattr(DemoModel, "__init__", partialmethod(DemoModel.__init__, delay=0))
    node = build(Settings.model_validate(backend_settings))
    async with node.running():
        user = await node.agents.add_user(User(id="ada", name="Ada", role="owner", created_at=NOON))
        agent = await node.agents.make(user, "Demo", {"toolsets": ("database", "files"), "bounds": PRESETS["reactive"]})
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
    assert tools == ["db_create_table", "db_insert"]
    assert answer == "I have noted that."
    tools, _ = await chat("remember that milk is out")
    assert tools == ["db_insert"]
    _, answer = await chat("what do you remember?")
    assert "milk is out" in answer
    assert "the plumber comes on Friday" in answer
    tools, answer = await chat("draw a chart of memories")
    assert tools == ["db_define_view", "db_run_view"]
    assert "The view memories_by_day shows day, entries." in answer


async def test_it_makes_a_table_and_reads_it(chat):
    walk = [
        ("Please make a table shopping with item, price real", "db_create_table", "there is a table shopping now"),
        ("query SELECT item FROM shopping", "db_query", "I found this (item): no rows."),
        ("add item=milk, price=2 to shopping", "db_insert", "Added to shopping."),
        ("query SELECT item, price FROM shopping", "db_query", "I found this (item, price):\n- milk, 2.0"),
    ]
    for sentence, tool, words in walk:
        tools, answer = await chat(sentence)
        assert (tools, words in answer) == ([tool], True), f"{sentence}: {tools} {answer}"
    tools, answer = await chat("draw a chart of shopping")
    assert tools == ["db_define_view", "db_run_view"]
    assert "The view shopping_by_day shows day, entries.\n- " in answer
