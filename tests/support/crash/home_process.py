"""A node in a process of its own whose agents work, and that writes rows and files of agents as people do.

It records each write and message that was acknowledged.
"""

import asyncio
import itertools
import logging
import random
import time
from pathlib import Path
from typing import Any

from crash.careful_model import instruct
from crash.node_process import Journal
from wakeful.app.building import Wakeful, build
from wakeful.config.settings import Settings
from wakeful.core.errors import StoreUnavailable, Unavailable
from wakeful.database.files import By

USER = "ada"


async def write_row(node: Wakeful, agent: Any, token: str) -> None:
    """Insert a row, and read it back: an acknowledged row must be found."""
    by = By(agent=agent)
    await node.services.data.run(by, "insert", table="tokens", rows=[{"token": token}])
    found = await node.services.data.run(by, "query", sql=f"SELECT count(*) FROM tokens WHERE token = '{token}'")
    assert found["rows"] == [[1]], found


async def write_file(node: Wakeful, agent: Any, token: str) -> None:
    """Write a file as a program of the agent does: when it likes, and saved later."""
    files = node.services.data.files
    await files.bring_files(agent.id)
    folder = node.services.workspace_of(agent.id)
    with files.program(agent.id):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / token).write_text(token)
        await files.save_files(agent.id)
    assert (folder / token).read_text() == token


async def send_message(node: Wakeful, agent: Any, token: str) -> None:
    """Give an agent a task, in a session of its own."""
    session = await node.sessions.open(agent.id, USER, title=token)
    await node.runs.ask(session.id, USER, instruct(token))


ACTS = {"row": write_row, "file": write_file, "message": send_message}


async def work_on(settings: dict[str, Any], journal: Journal, name: str) -> None:
    node = build(Settings.model_validate(settings))
    chance = random.Random(name)
    async with node.running():
        journal.write("up", name=name)
        agents = await node.agents.of_user(USER)
        for number in range(1_000_000):
            agent, token = chance.choice(agents), f"t{name}-{number}"
            [kind] = chance.choices(list(ACTS), [8, 2, 2])
            try:
                await ACTS[kind](node, agent, token)
            except Unavailable as error:
                journal.write("refused", code=error.code)
                await asyncio.sleep(0.05)
            else:
                journal.write("kept", kind=kind, agent=agent.id, token=token)


def work(settings: dict[str, Any], journal: Path, name: str) -> None:
    """Run a node until it is killed. If PostgreSQL does not respond at its start, it is started again."""
    logging.basicConfig(filename=journal.with_suffix(".log"), format="%(process)d %(asctime)s %(message)s")
    lines = Journal(journal)
    for attempt in itertools.count():
        try:
            asyncio.run(work_on(settings, lines, f"{name}x{attempt}"))
        except StoreUnavailable as error:
            lines.write("not started", code=error.code)
            time.sleep(0.1)
