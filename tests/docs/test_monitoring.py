"""The alert rules, the Grafana board and their documentation name series that exist, and every alert is explained."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import Harness
from wakeful.core.identity import Identity

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
BOARD = ROOT / "deploy/grafana/wakeful.json"
PAGE = ROOT / "docs/monitoring.md"
SERIES = re.compile(r"\bwakeful_[a-z_]+")
_PARTS = re.compile(r"_(?:bucket|count|sum)$")


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def board() -> list[str]:
    return [target["expr"] for panel in json.loads(BOARD.read_text())["panels"] for target in panel["targets"]]


@pytest.fixture
async def known(tmp_path) -> set[str]:
    """The series that a server has, by the name of their family."""
    harness = Harness({"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False})
    owner = Identity(user=harness.user, scope="read", token_id="t")
    async with harness.node.opened():
        text = (await harness.node.services.metrics.text(owner, is_ready=True, is_draining=False)).decode()
    kinds = dict(re.findall(r"^# TYPE (wakeful_\w+) (\w+)$", text, re.MULTILINE))
    ours = {name for name in kinds if not name.endswith("_created")}
    return ours | {"wakeful_sockets_open", "wakeful_log_lines_dropped"}  # of the HTTP application


@pytest.mark.parametrize("find", [lambda: [rule["expr"] for rule in alerts()], board], ids=["rules", "board"])
async def test_they_use_series_that_exist(known, find):
    used = {_PARTS.sub("", name) for text in find() for name in SERIES.findall(text)}
    assert used - known == set()


async def test_every_series_is_documented_and_on_the_board(known):
    rows = set(re.findall(r"^\| `(wakeful_\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert rows == known
    shown = {_PARTS.sub("", name) for text in board() for name in SERIES.findall(text)}
    assert known - shown == {"wakeful_sampled_timestamp_seconds"}


def test_every_alert_is_explained_and_leads_there():
    headings = re.findall(r"^### (Wakeful\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == [rule["alert"] for rule in alerts()]
    for rule in alerts():
        assert rule["annotations"]["runbook"] == f"docs/monitoring.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
@pytest.mark.parametrize(
    "command", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")], ids=" ".join
)
def test_promtool_accepts_the_rules_and_their_tests(command):
    done = subprocess.run(["promtool", *command], cwd=RULES.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
