"""The commands as people type them, against a real server."""

import pytest

from terminal import Terminal, a_terminal

TODO = "Write ping to ping.txt with write_file."


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    with a_terminal(tmp_path_factory.mktemp("cli")) as terminal:
        yield terminal


def book(terminal, *options: str) -> str:
    return terminal.read("wake", "add", TODO, *options)["recall"]["id"]


def test_a_wake_is_booked_listed_and_cancelled(terminal):
    booked = terminal.run("wake", "add", TODO, "--when", "1h", "--comment", "ping")
    assert booked.returncode == 0
    assert "in 1 h" in booked.stdout
    [wake] = [each for each in terminal.read("wake", "ls")["wakes"] if each["comment"] == "ping"]
    assert wake["id"] in booked.stdout
    listed = terminal.run("wake", "ls").stdout
    assert wake["id"] in listed  # whole, however narrow the terminal
    assert terminal.run("wake", "cancel", wake["id"]).returncode == 0
    assert terminal.read("wake", "show", wake["id"])["status"] == "cancelled"
    assert wake["id"] not in terminal.run("wake", "ls").stdout
    assert wake["id"] in terminal.run("wake", "ls", "--all").stdout


def test_run_with_wait_exits_with_how_it_ended(terminal):
    wake_id = book(terminal, "--when", "1h")
    ended = terminal.run("wake", "run", wake_id, "--wait")
    assert ended.returncode == 0, ended.stderr
    assert "success" in ended.stdout
    assert wake_id in [each["wake_id"] for each in terminal.read("runs")["runs"]]


def test_why_tells_the_story(terminal):
    wake_id = book(terminal, "--when", "1h")
    terminal.run("wake", "cancel", wake_id)
    codes = [each["code"] for each in terminal.read("wake", "why", wake_id)["decisions"]]
    assert codes[0] == "booked"
    assert "cancelled" in codes


def test_a_recurring_wake_is_skipped_and_edited(terminal):
    wake_id = book(terminal, "--when", "1h", "--every", "3600")
    before = terminal.read("wake", "show", wake_id)["nominal_at"]
    assert terminal.run("wake", "skip", wake_id).returncode == 0
    after = terminal.read("wake", "show", wake_id)["nominal_at"]
    assert after > before
    edited = terminal.read("wake", "edit", wake_id, "--comment", "hourly")
    assert edited["internal_comment"] == "hourly"


def test_what_cannot_be_read_as_a_time_is_refused_with_the_forms(terminal):
    refused = terminal.run("wake", "add", TODO, "--when", "yesterday")
    assert refused.returncode == 1
    assert "'yesterday'" in refused.stderr
    assert "tomorrow at 09:00" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_wake_that_does_not_exist_is_named(terminal):
    refused = terminal.run("wake", "show", "nothing-here")
    assert refused.returncode == 1
    assert "nothing-here" in refused.stderr


def test_an_edit_without_changes_is_a_wrong_command(terminal):
    refused = terminal.run("wake", "edit", book(terminal, "--when", "2h"))
    assert refused.returncode == 2
    assert "--when" in refused.stderr


def test_agents_are_listed_made_and_ended(terminal):
    made = terminal.read("agent", "add", "Ada", "--zone", "Europe/Berlin")
    assert made["timezone"] == "Europe/Berlin"
    assert made["id"] in terminal.run("agent", "ls").stdout
    assert terminal.run("agent", "rm", made["id"]).returncode == 0
    assert made["id"] not in terminal.run("agent", "ls").stdout


def test_without_a_server_the_command_says_where_it_looked(terminal):
    alone = Terminal(terminal.environment | {"WAKEFUL_PORT": "1"})
    refused = alone.run("wake", "ls")
    assert refused.returncode == 3
    assert "http://127.0.0.1:1" in refused.stderr
    assert "wakeful serve" in refused.stderr


def test_without_a_token_the_command_says_where_it_looked(terminal, tmp_path):
    alone = Terminal(terminal.environment | {"WAKEFUL_CONFIG_DIR": str(tmp_path)})
    refused = alone.run("wake", "ls")
    assert refused.returncode == 1
    assert str(tmp_path) in refused.stderr


def test_a_pause_holds_what_the_agenda_then_shows_later(terminal):
    [agent] = [each for each in terminal.read("agent", "ls")["agents"] if each["name"] == "Wakeful"]
    wake_id = book(terminal, "--when", "10m", "--comment", "held")
    paused = terminal.run("pause", "--agent", agent["id"], "--for", "1h", "--reason", "lunch")
    assert paused.returncode == 0, paused.stderr
    [held] = [each for each in terminal.read("agenda")["planned"] if each["wake_id"] == wake_id]
    assert held["reason"] == "paused"
    assert held["at"] > held["nominal_at"]
    assert "held" in terminal.run("agenda").stdout
    assert terminal.run("resume", "--agent", agent["id"]).stdout == "Resumed.\n"
    assert terminal.run("resume", "--agent", agent["id"]).stdout == "It was not paused.\n"
