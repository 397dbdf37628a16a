"""A node in a process of its own that writes rows and files of agents, and records each that was acknowledged."""

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

from crash.node_process import Journal
from wakeful.app.building import Wakeful, build
from wakeful.config import Settings
from wakeful.domain.errors import Unavailable
from wakeful.service.agents.database import By


async def write_row(node: Wakeful, agent: Any, token: str) -> None:
    """Insert a row, and read it back: an acknowledged row must be found."""
    by = By(agent=agent)
    await node.services.data.run(by, "insert", table="tokens", rows=[{"token": token}])
    found = await node.services.data.run(by, "query", sql=f"SELECT count(*) FROM tokens WHERE token = '{token}'")
    assert found["rows"] == [[1]], found


async def write_file(node: Wakeful, agent: Any, token: str) -> None:
    files = node.services.data.files
    await files.bring_files(agent.id)
    folder = node.services.workspace_of(agent.id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / token).write_text(token)
    await files.save_files(agent.id)
    assert (folder / token).read_text() == token


async def work(settings: dict[str, Any], journal: Journal, name: str) -> None:
    node = build(Settings.model_validate(settings))
    chance = random.Random(name)
    async with node.opened():
        journal.write("up")
        agents = [agent for user in ("ada",) for agent in await node.agents.of_user(user)]
        for number in range(1_000_000):
            agent, token = chance.choice(agents), f"{name}-{number}"
            kind, act = chance.choice((("row", write_row), ("row", write_row), ("file", write_file)))
            try:
                await act(node, agent, token)
            except Unavailable as error:
                journal.write("refused", code=error.code)
                continue
            journal.write("kept", kind=kind, agent=agent.id, token=token)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    asyncio.run(work(given["settings"], Journal(Path(given["journal"])), given["name"]))
