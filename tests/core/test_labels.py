"""Every code that people see has a label."""

import re
from pathlib import Path
from typing import get_args

import pytest

import wakeful
from wakeful.core import call_words, labels
from wakeful.core.labels import BUILT_IN
from wakeful.core.types import RunNote, RunStatus, ScheduleMode, WakeKind

SOURCE = Path(wakeful.__file__).parent
REASON = re.compile(r"""\b(?:reason|held_by)="([a-z_]+)"|Stretch\(.*"([a-z_]+)"\)""")
PLACES = ("timing", "wakes", "runs")


@pytest.mark.parametrize(
    ("labelled", "codes"),
    [
        (labels.WAKE_KINDS, WakeKind),
        (labels.RUN_STATUSES, RunStatus),
        (labels.RUN_NOTES, RunNote),
        (labels.MODES, ScheduleMode),
    ],
)
def test_each_code_of_a_closed_set_has_a_label(labelled, codes):
    assert list(labelled) == list(get_args(codes))


def test_each_reason_that_the_rules_give_has_a_text():
    files = [path for place in PLACES for path in (SOURCE / place, *(SOURCE / place).rglob("*.py")) if path.is_file()]
    found = {code for path in files for match in REASON.findall(path.read_text(encoding="utf-8")) for code in match}
    assert found - {""} - labels.REASONS.keys() == set()
    assert {"backoff", "quiet_hours", "time_limit"} <= found  # the search finds something


def test_each_tool_has_a_sentence_for_its_approval():
    never_asked = {"more_tools"}  # it only shows a model the rest of its tools
    assert BUILT_IN - call_words.TEXTS.keys() == never_asked


@pytest.mark.parametrize("named", [labels.RESULT_KINDS, call_words.TEXTS], ids=["kinds of results", "calls in words"])
def test_each_tool_that_is_drawn_or_described_exists(named):
    reference = (SOURCE.parents[1] / "docs/reference/tools.md").read_text(encoding="utf-8")
    assert set(named) <= set(re.findall(r"^### `(\w+)`$", reference, re.MULTILINE))
