"""Texts on a terminal, which cannot control it, and elsewhere, where they stay as they are."""

import contextlib
import io
import json
import sys

import pytest
import typer

from wakeful.cli import output
from wakeful.cli.arguments import confirm
from wakeful.cli.output import Failed

HOSTILE = "a\x1b]0;owned\x07\x7f\x9b2J\u202egpj\u2069\U000e0041\tb\r\nc"


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch):
    """Return a function that makes a terminal of standard input, output and error."""

    def begin() -> Screen:  # in the test: pytest replaces them after the fixtures
        found = Screen()
        for name in ("stdin", "stdout", "stderr"):
            monkeypatch.setattr(sys, name, found)
        monkeypatch.setenv("NO_COLOR", "1")
        return found

    return begin


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda: Failed(HOSTILE).show(), id="an error"),
        pytest.param(lambda: output.print_note(HOSTILE), id="a note"),
        pytest.param(lambda: output.show_done({}, HOSTILE, as_json=False), id="a result"),
        pytest.param(lambda: output.show_done({HOSTILE: HOSTILE}, "", as_json=True), id="a result as JSON"),
        pytest.param(lambda: output.show_one({HOSTILE: HOSTILE, "status": HOSTILE, "at": HOSTILE}), id="an object"),
        pytest.param(
            lambda: output.show_table([{"status": HOSTILE, "x_at": HOSTILE}], ("status", "x_at"), empty=""),
            id="a table",
        ),
        pytest.param(lambda: confirm(HOSTILE, yes=False), id="a question"),
    ],
)
def test_nothing_that_is_shown_controls_the_terminal(screen, act):
    terminal = screen()
    with contextlib.suppress(typer.Abort):  # nobody answers the question
        act()
    shown = terminal.getvalue()
    assert "owned" in shown
    assert shown.replace("\n", "").replace("\x1b[0m", "").isprintable()  # the style of an error ends with that


def test_json_on_a_terminal_has_the_same_value(screen):
    terminal = screen()
    output.show_json({"text": HOSTILE})
    assert json.loads(terminal.getvalue()) == {"text": HOSTILE}


def test_results_stay_as_they_are_in_a_pipe(capsys):
    output.show_done({}, HOSTILE, as_json=False)
    output.show_json(HOSTILE)
    assert capsys.readouterr().out == f"{HOSTILE}\n{json.dumps(HOSTILE, ensure_ascii=False)}\n"


def test_a_line_break_of_a_file_of_windows_is_one():
    assert output.printable("a\r\nb\rc") == "a\nb\\rc"
