"""The server of a file's tests, as its `SERVER` says."""

import pytest_asyncio

from live_server import Patient, running_server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(request, own_files):
    """`SERVER` of the file is what `running_server` takes beside the directories, as `{"always": improvise}`."""
    asked = {"patient": Patient(retries=0)} | getattr(request.module, "SERVER", {})
    async with running_server(own_files, **asked) as server:
        yield server
