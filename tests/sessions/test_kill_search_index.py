"""Killed while the search index is built after an upgrade: the next start goes on, and finds every text once."""

import signal
from typing import Any

import pytest

from crash.kill_points import die_with_three_texts_indexed
from crash.server_process import Start
from openai_server import say
from search_reset import forget_index
from wakeful.app.building import build
from wakeful.config.settings import Settings

pytestmark = pytest.mark.crash


async def test_the_next_start_goes_on(talking: Start, backend_settings: dict[str, Any]) -> None:
    async with talking(always=say("Done.")) as (talk, _):
        for number in range(3):
            await talk.wait_for_end(await talk.say(f"needle {number}"))
        await talk.served.end(signal.SIGTERM)
        node = build(Settings.model_validate(backend_settings))
        async with node.opened():
            await forget_index(node)
        await talk.served.start_doomed(die_with_three_texts_indexed)
        async with node.opened():
            progress = await node.services.search_index.progress()
        assert (progress.is_complete, progress.percent) == (False, 42)  # three of seven
        await talk.served.start()

        async def is_complete() -> bool:
            return (await talk.served.get("/search?q=needle"))["index"]["is_complete"]

        await talk.wait_until(is_complete, seconds=60)
        for words, expected in (("needle", [f"needle {number}" for number in (2, 1, 0)]), ("talk", ["A talk"])):
            found = (await talk.served.get(f"/search?q={words}"))["results"]
            assert [each["snippet"] for each in found] == expected
