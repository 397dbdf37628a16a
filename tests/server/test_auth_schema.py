"""Generated requests against the API's own description: nothing breaks, and every answer is as described."""

import asyncio
import contextlib
import threading

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from pydantic import SecretStr
from schemathesis import GenerationMode

from doors import opened_doors, served
from world import World

CHOSEN = "a-token-that-a-person-chose"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A server in a thread of its own, since schemathesis waits for its answers."""
    folder = tmp_path_factory.mktemp("schema")
    world = World({"data_dir": folder, "config_dir": folder, "store_encryption": False, "token": SecretStr(CHOSEN)})
    ready, found, stop = threading.Event(), [], asyncio.Event()

    async def serve():
        async with opened_doors(world) as doors, served(doors.gate) as port:
            found.extend((port, asyncio.get_running_loop()))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    port, loop = found
    yield f"http://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)


def test_every_answer_is_as_the_description_says(address):
    headers = {"Authorization": f"Bearer {CHOSEN}"}
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json", headers=headers).exclude(path="/boom")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {operation.path for operation in operations} >= {
        "/me",
        "/users/{user_id}",
        "/tokens",
        "/login",
        "/ws-ticket",
    }
    for operation in operations:
        for mode in GenerationMode:
            _try(operation.as_strategy(generation_mode=mode), headers)


def _try(cases, headers):
    @given(case=cases)
    @settings(max_examples=20, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def each(case):
        case.call_and_validate(headers=headers)

    # An operation that takes nothing has no wrong requests to make.
    with contextlib.suppress(Unsatisfiable):
        each()
