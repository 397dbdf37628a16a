"""Does once what is slow in every server process: the imports, and the first requests.

Test processes are forked from the one that has imported this. It has no threads left by then.
"""

import asyncio
import gc
import tempfile
from pathlib import Path

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
# Objects made so far are excluded from garbage collection, which would take each forked process a tenth of a second.
gc.collect()
gc.freeze()
