"""The page has one vocabulary: *run* for the past, *scheduled run* for the future, *recall* only as a tool's name."""

import ast
import re
from pathlib import Path

import pytest

from wakeful.core import identity, labels
from wakeful.people.login import login_page

ROOT = Path(__file__).parents[2]

# A word that people should not meet on the page, and what to write instead.
ODD = {
    r"wakes?|woken|woke": "scheduled run, run",
    r"recalls?": "scheduled run (Recalls is the name of a set of tools)",
    r"book(?:s|ed|ings?)?": "schedule",
    r"occurrences?": "time, run",
    r"fir(?:e|es|ed|ing)": "run, start",
    r"leave as it is|make it|say why|your word": "Cancel, Create, Add a reason, Approve this?",
    r"asks you|not known": "needs approval, unknown",
    r"as the (?:system|model) does": "System, Model default",
    r"\d+ (?:chosen|found)": "selected, rows",
    r"draw as|leads nowhere|books nothing": "Chart type, Page not found, Self-scheduling off",
}
PATTERN = re.compile(r"\b(?:" + "|".join(f"({each})" for each in ODD) + r")\b", re.IGNORECASE)

_NOT_SHOWN = re.compile(
    r"/\*.*?\*/|^\s*//.*?$|(?<=[\s;{])//\s.*?$"  # comments
    r"|^import .*?;$|^} from .*?;$"
    r"|\b(?:className|icon|key|htmlFor|id|name|role|type|kind|href|queryKey)=(?:\"[^\"]*\"|\{`[^`]*`\})"
    r"|\bcall\(\s*\"[^\"]*\""  # routes
    r"|\b(?:case|needs:) \"[^\"]*\"",
    re.MULTILINE | re.DOTALL,
)
_TEXTS = re.compile(
    r"\"((?:[^\"\\\n]|\\.)*)\"|`([^`]*)`"
    r"|>([^<>{}]*[A-Za-z][^<>{}]*)[<{]|\}([^<>{}]*[A-Za-z][^<>{}]*)[<{]"  # between tags and expressions
)
_CODE = re.compile(r"\$\{[^}]*\}")
_IS_PROSE = re.compile(r"[A-Za-z] [A-Za-z]|^[A-Z][a-z]")
_IS_CODE = re.compile(r"=>|;$|\(\)|\b(?:const|function) |===|\bis-[a-z]")


def texts_of(source: str) -> list[str]:
    """Return the texts in a component that people may see: JSX text, and strings with a space or a capital letter."""
    found = [next(filter(None, each), "") for each in _TEXTS.findall(_NOT_SHOWN.sub("", source))]
    plain = [_CODE.sub(" ", " ".join(text.split())) for text in found]
    return [text for text in plain if _IS_PROSE.search(text) and not _IS_CODE.search(text)]


def odd_words(texts: list[str]) -> list[str]:
    return [f"{match[0]!r} in {text!r}" for text in texts if (match := PATTERN.search(text))]


SOURCES = [path for path in sorted((ROOT / "web/src").rglob("*.ts*")) if not re.search("generated|test", path.name)]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_component_shows_an_odd_word(path):
    assert odd_words(texts_of(path.read_text(encoding="utf-8"))) == []


def test_no_label_of_the_server_has_an_odd_word():
    hints = [each.hint for each in (*labels.TOOLSETS.values(), *labels.MODES.values())]
    tables = (labels.WAKE_KINDS, labels.RUN_STATUSES, labels.RUN_NOTES, labels.REASONS)
    assert odd_words([*hints, *(text for table in tables for text in table.values())]) == []


def test_no_notice_of_the_server_has_an_odd_word():
    functions = ast.parse((ROOT / "src/wakeful/notices/texts.py").read_text(encoding="utf-8")).body
    texts = [
        part.value
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.keyword) and node.arg in ("title", "body")
        for part in ast.walk(node.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    assert len(texts) > 30
    assert odd_words(texts) == []


def test_the_login_page_has_no_odd_word():
    assert odd_words([login_page("code"), identity.NEW_LINK]) == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ('<button title="Let its wakes wait">', True),
        ("<p>Nothing is booked here.</p>", True),
        ("<p>{count} wakes wait.</p>", True),
        ('const who = "Recall";', True),
        ("`Recall: ${at}`", True),
        ("// a wake of this agent", False),
        ('<li className="is-woken" key={wake.id}>', False),
        ('call("GET /wakes/{wake_id}")', False),
    ],
)
def test_texts_are_told_from_code(source, seen):
    assert bool(odd_words(texts_of(source))) == seen
