"""Does once what takes long in every server: to import it, and to answer for the first time.

Test processes are forked from the one that has done this. It has no threads left by then.
"""

import asyncio
import gc
import tempfile
from pathlib import Path

import wakeful.cli.main
import wakeful.cli.server  # noqa: F401
from live_server import eventually, running_server
from openai_server import improvise


async def _talk_once(folder: Path) -> None:
    async with running_server(
        {"data_dir": folder / "data", "config_dir": folder / "config"}, always=improvise
    ) as server:
        session = await server.session()
        told = await server.call(
            "POST", f"/sessions/{session}/messages", json={"content": 'call list_files {"path": "."}'}
        )

        async def is_over() -> bool:
            return (await server.call("GET", f"/runs/{told['run_id']}"))["status"] == "success"

        await eventually(is_over)
        for path in ("/agents", "/runs", "/wakes", f"/sessions/{session}"):
            await server.call("GET", path)


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(_talk_once(Path(folder)))
# What is there by now is looked through no more: every process would do that anew, at a tenth of a second.
gc.collect()
gc.freeze()
