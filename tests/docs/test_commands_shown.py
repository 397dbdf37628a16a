"""Every command is shown in the documentation, with output that a test compares with what it really prints."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from doc_blocks import all_blocks, steps_of
from wakeful.cli.main import COMMANDS, load


def leaves(path: str, command: Any) -> Iterator[str]:
    """Yield the commands that have no subcommands."""
    subcommands = getattr(command, "commands", {})
    if not subcommands:
        yield path
    for name, each in subcommands.items():
        yield from leaves(f"{path} {name}", each)


LEAVES = [path for name in COMMANDS for path in leaves(name, load(name))]
SHOWN = [
    command
    for block in all_blocks()
    if block.language == "console" and block.is_run
    for command, printed in steps_of(block.text)
    if printed
]


@pytest.mark.parametrize("path", LEAVES)
def test_a_command_is_shown_with_its_output(path):
    assert any(re.search(rf"\bwakeful {path}(?![\w-])", command) for command in SHOWN)
