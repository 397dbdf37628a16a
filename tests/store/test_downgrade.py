"""The way back after an upgrade, as docs/operate/upgrade.md shows it: the store from before is in `backups/`."""

import re
import subprocess
from pathlib import Path

import pytest

from upgrade.moved_data import rows_in_sqlite
from upgrade.old_data import copy_old_data, running_old_server
from wakeful.config.settings import Settings

pytestmark = pytest.mark.upgrade

PAGE = Path(__file__).parents[2] / "docs/operate/upgrade.md"


def run_in(folder, commands):
    subprocess.run(["bash", "-euc", commands], cwd=folder, check=True)


async def test_the_commands_of_the_page_bring_the_older_store_back(tmp_path):
    old = copy_old_data("sqlite", tmp_path)
    settings = Settings.model_validate(old.settings)
    before = rows_in_sqlite(settings)
    async with running_old_server(old.settings):
        pass
    upgraded = rows_in_sqlite(settings)
    assert len(upgraded) > len(before)

    [copy] = (settings.data_dir / "backups").iterdir()
    shown = re.search(
        r"^```bash\n(mkdir set-aside\n.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert shown is not None
    commands, count = re.subn(r"backups/\S+\.sqlite", f"backups/{copy.name}", shown[1])
    assert count == 1
    assert re.fullmatch(r"wakeful-schema\d+-\d+\.sqlite", copy.name)  # as the page names it
    run_in(settings.data_dir, commands)
    assert rows_in_sqlite(settings) == before

    async with running_old_server(old.settings) as server:  # and the upgrade can be made once more
        server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
        notices = (await server.rest.get("/notifications")).json()["notifications"]
        assert "store_behind" not in [notice["code"] for notice in notices]
        agents = (await server.rest.get("/agents")).json()["agents"]
        assert {agent["name"] for agent in agents} == {"Wakeful", "Janitor"}
