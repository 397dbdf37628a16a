"""The operator's handbook names commands, settings and messages that exist."""

import re
from functools import cache
from pathlib import Path

import pytest

from wakeful.cli.main import COMMANDS, load
from wakeful.config.settings import Settings

ROOT = Path(__file__).parents[2]
OF_OTHERS = {"client_max_body_size", "pg_basebackup", "pg_upgrade"}  # of nginx and PostgreSQL
PAGES = sorted((ROOT / "docs/operate").glob("*.md"))


def id_of(page: Path) -> str:
    return page.stem


@cache
def source() -> str:
    """Return our Python sources, with texts that continue on the next line joined."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "src/wakeful").rglob("*.py")))
    return re.sub(r"\"\n\s*f?\"", "", text)


def is_command(words: list[str]) -> bool:
    """Return whether words begin with a command, down to its last subcommand."""
    if not words or words[0] not in COMMANDS:
        return False
    command = load(words[0])
    for word in words[1:]:
        subcommands = getattr(command, "commands", {})
        if not subcommands:
            return True
        if word not in subcommands:
            return False
        command = subcommands[word]
    return True


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_commands_exist(page):
    named = re.findall(r"`wakeful ([a-z][^`]*)`", page.read_text(encoding="utf-8").replace("\n", " "))
    wrong = [text for text in named if not is_command([word for word in text.split() if re.fullmatch(r"[a-z]+", word)])]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_settings_and_codes_exist(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text)) - OF_OTHERS
    known = Settings.model_fields.keys()
    assert {name for name in named if name.removesuffix("_file") not in known and name not in source()} == set()
    variables = {name.lower() for name in re.findall(r"\bWAKEFUL_([A-Z_]+)\b", text)}
    assert {name.removesuffix("_file") for name in variables} <= known


@pytest.mark.parametrize("heading", ["The server does not start", "Wakes are late"])
def test_messages_in_the_tables_are_those_of_the_server(heading):
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    section = pages.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| *")]
    parts = [part.strip() for cell in cells for text in re.findall(r"\*([^*]+)\*", cell) for part in text.split("…")]
    shown = [re.sub(r"host '0.0.0.0'", "", part).strip() for part in parts]
    assert [part for part in shown if part and part.lower() not in source().lower()] == []
    assert shown
