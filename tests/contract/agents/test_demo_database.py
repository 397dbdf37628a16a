"""The demo model with its own database, through a chat: it remembers, lists and draws, and knows every tool."""

from functools import partialmethod

import pytest

from harness import NOON, eventually
from wakeful.app.building import build
from wakeful.config.settings import Settings
from wakeful.core.types import User
from wakeful.database.tools import database_tools
from wakeful.models.demo import DemoModel
from wakeful.timing.bounds import PRESETS


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


async def test_a_chat_reaches_every_tool_of_the_database(chat):
    walk = [
        ("What is in your database?", "db_schema", "no tables yet"),
        ("Please make a table shopping with item, price real", "db_create_table", "there is a table shopping now"),
        ("add the column shop to shopping", "db_alter_table", "has shop as a column"),
        ("rename the column price of shopping to cost", "db_migrate", "price of shopping is called cost"),
        ("add item=milk, cost=2 to shopping", "db_insert", "Added to shopping."),
        ("add or update item=milk, cost=3 in shopping by item", "db_upsert", "0 added, 1 updated"),
        ("change cost=4 in shopping where item=milk", "db_update", "1 changed in shopping"),
        ("delete from shopping where item=milk", "db_delete", "1 deleted from shopping"),
        ("query SELECT item, cost FROM shopping", "db_query", "I found no rows."),
        ("restore in shopping where item=milk", "db_restore", "1 restored in shopping"),
        ("execute UPDATE shopping SET cost = cost + 1", "db_execute", "1 changed."),
        ("query SELECT item, cost FROM shopping", "db_query", "I found this (item, cost):\n- milk, 5.0"),
        ("save the view dear as SELECT item FROM shopping WHERE cost > 3", "db_define_view", "I saved the view dear."),
        ("list the views", "db_list_views", "These are the views:\n- dear"),
        ("show the view dear", "db_run_view", "The view dear shows item.\n- milk"),
        ("drop the view dear", "db_drop_view", "the view dear is gone"),
        ('write {"item": "tea", "cost": 1} to more.jsonl', "write_file", "Done: more.jsonl now has 26 bytes."),
        ("import more.jsonl into shopping", "db_import", "1 imported into shopping"),
        ("export shopping to all.csv", "db_export", "Done: all.csv now has"),
        ("read all.csv", "read_file", "tea"),
    ]
    reached = set()
    for sentence, tool, words in walk:
        tools, answer = await chat(sentence)
        assert (tools, words in answer) == ([tool], True), f"{sentence}: {tools} {answer}"
        assert "went wrong" not in answer
        reached |= set(tools)
    every = {tool.name for tool in database_tools(None, 0)}
    assert len(every) == 17
    assert every <= reached
