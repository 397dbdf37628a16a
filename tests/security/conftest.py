"""A server under attack on each kind of store, and two nodes on one PostgreSQL."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from live_server import Provider, Server, provided, running_server

PLACES = ("sqlite", "postgres", "two nodes")


@dataclass(frozen=True)
class Place:
    """`home` keeps the agents' files; `door` is the node that is attacked, which may be the same one."""

    home: Server
    door: Server

    @property
    def provider(self) -> Provider:
        return self.home.provider

    @property
    def is_two(self) -> bool:
        return self.home is not self.door


@pytest.fixture(params=PLACES)
def store_settings(request: pytest.FixtureRequest) -> dict[str, object]:
    """The store of the attacked server; with `is_two` there is a second node."""
    if request.param == "sqlite":
        return {"is_two": False}
    return {"is_two": request.param == "two nodes", "database_url": request.getfixturevalue("swept_postgres_url")}


@pytest.fixture
async def place(store_settings: dict[str, object], tmp_path: Path) -> AsyncIterator[Place]:
    """Run the attacked server: on SQLite, on PostgreSQL, or node B beside the node A that has the files."""
    settings = {name: value for name, value in store_settings.items() if name != "is_two"}
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(provided())

        async def start(name: str) -> Server:
            folders = {"data_dir": tmp_path / name, "config_dir": tmp_path / "config"}
            return await stack.enter_async_context(running_server(settings | folders, provider))

        home = await start("a")
        yield Place(home, await start("b") if store_settings["is_two"] else home)
