"""The command line tells the server the zone of its machine, once, and shows and sets it."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from terminal import a_terminal
from wakeful.cli.zone import machine_zone

TODO = "Write ping to ping.txt with write_file."
TOKYO = ZoneInfo("Asia/Tokyo")


@pytest.fixture
def terminal(tmp_path):
    with a_terminal(tmp_path, TZ="Asia/Tokyo") as terminal:
        yield terminal


def test_a_command_with_a_time_tells_the_zone_once_and_people_change_it(terminal):
    assert "Not known yet" in terminal.run("zone").stdout
    first = terminal.run("wake", "add", TODO, "--when", "tomorrow at 9", "--comment", "nine")
    assert first.returncode == 0, first.stderr
    assert "Your time zone is now Asia/Tokyo" in first.stderr
    [wake] = terminal.read("wake", "ls")["wakes"]
    local = datetime.fromisoformat(wake["nominal_at"]).astimezone(TOKYO)
    assert (local.hour, local.minute, wake["timezone"]) == (9, 0, "Asia/Tokyo")
    assert terminal.run("zone", "Europe/Berlin").stdout.strip() == "Europe/Berlin"
    again = terminal.run("wake", "add", TODO, "--when", "1h")
    assert "time zone" not in again.stderr
    assert terminal.read("zone") == {"timezone": "Europe/Berlin"}
    assert terminal.read("agent", "edit", "Wakeful", "--zone", "America/New_York")["zone"] == "America/New_York"
    assert terminal.read("agent", "edit", "Wakeful", "--zone", "")["zone"] == "Europe/Berlin"
    assert "Europe/Berlin (yours)" in terminal.run("agent", "ls").stdout
    refused = terminal.run("zone", "Europe/Berln")
    assert (refused.returncode, "Europe/Berlin" in refused.stderr) == (1, True)


@pytest.mark.parametrize("door", ["message", "session", "next-run"])
def test_the_words_of_every_door_are_kept_for_why(terminal, door):
    ahead = "in twenty minutes"
    wake_id = terminal.run("wake", "add", TODO, "--as", door, "--when", ahead, "-q").stdout.strip()
    booked = terminal.read("wake", "why", wake_id)["decisions"][0]
    assert (booked["code"], booked["detail"]["requested"], booked["detail"]["moved_by"]) == ("booked", ahead, [])
    assert datetime.fromisoformat(booked["detail"]["final"]) > datetime.now(UTC)
    assert ahead in terminal.run("wake", "why", wake_id).stdout


@pytest.mark.parametrize(
    ("written", "name"), [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo"), ("CET-1CEST", None)]
)
def test_the_zone_of_this_machine_is_what_tz_says(monkeypatch, written, name):
    monkeypatch.setenv("TZ", written)
    assert machine_zone() == name
