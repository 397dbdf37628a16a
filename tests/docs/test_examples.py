"""The examples of the documentation work as they are written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from forked_process import Forked

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = Path(sys.executable).parent
PAGES = {  # and what the last lines of each must have shown
    "agenda.md": ("hourly", "paused", "Resumed."),
    "doors/next-run.md": ("reactive", "run_now", "next_run", "success"),
    "doors/recalls.md": ("Skipped.", "success", "booked", "Cancelled."),
    "doors/scheduler.md": ("A fresh start", "success", "session", "run_now"),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A server that has just been started, and where to find it."""
    folder = tmp_path_factory.mktemp("examples")
    plain = {key: value for key, value in os.environ.items() if not key.startswith("WAKEFUL_")}
    places = {"WAKEFUL_DATA_DIR": str(folder / "data"), "WAKEFUL_CONFIG_DIR": str(folder / "config")}
    process = Forked(("serve", "--port", "0"), plain | places, folder / "log")
    port = re.search(r"http://127.0.0.1:(\d+)", process.stdout.readline())
    assert port is not None
    yield plain | places | {"WAKEFUL_PORT": port[1], "PATH": f"{COMMANDS}:{plain['PATH']}"}
    process.close()


def test_every_page_with_something_to_try_is_tried():
    with_examples = [page for page in DOCS.rglob("*.md") if "```bash\n" in page.read_text(encoding="utf-8")]
    assert {str(page.relative_to(DOCS)) for page in with_examples} == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_says_to_try_works(environment, page):
    for script in re.findall(r"```bash\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert [words for words in PAGES[page] if words not in done.stdout] == []
