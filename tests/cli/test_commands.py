"""The commands as people type them, against a real server."""

import json
import os
import pty
import subprocess
import sys
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from terminal import Terminal, a_terminal

TODO = "Write ping to ping.txt with write_file."


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    with a_terminal(tmp_path_factory.mktemp("cli"), WAKEFUL_FETCH_PRIVATE_HOSTS="127.0.0.1") as terminal:
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
    lines = terminal.run("wake", "why", wake_id).stdout.splitlines()
    planned = datetime.fromisoformat(terminal.read("wake", "why", wake_id)["decisions"][0]["nominal_at"]).astimezone()
    assert f"You scheduled it for {planned:%Y-%m-%d %H:%M:%S}, through the command line. Requested: “1h”." in lines[1]
    assert "Cancelled." in lines[-1]


def test_a_recurring_wake_is_skipped_and_edited(terminal):
    wake_id = book(terminal, "--when", "1h", "--every", "3600")
    before = terminal.read("wake", "show", wake_id)["nominal_at"]
    assert terminal.run("wake", "skip", wake_id).returncode == 0
    after = terminal.read("wake", "show", wake_id)["nominal_at"]
    assert after > before
    edited = terminal.read("wake", "edit", wake_id, "--comment", "hourly")
    assert edited["comment"] == "hourly"


@pytest.mark.parametrize(("every", "seconds"), [("15m", 900), ("90", 90), ("1d12h30m5s", 131_405)])
def test_a_recurring_wake_without_a_time_first_fires_after_one_interval(terminal, every, seconds):
    wake = terminal.read("wake", "show", book(terminal, "--every", every))
    created, first = (datetime.fromisoformat(wake[key]) for key in ("created_at", "nominal_at"))
    assert (wake["call_type"], wake["interval_seconds"]) == ("recurring", seconds)
    assert first - created == timedelta(seconds=seconds)


def test_toolsets_that_are_hidden_are_marked_until_self_scheduling_is_on(terminal):
    terminal.run("agent", "add", "Mute", "--toolset", "notify", "--toolset", "files")
    shown = " ".join(terminal.run("agent", "show", "Mute").stdout.split())
    assert "hidden-toolset notify (hidden from its model: turn on --self-scheduling)" in shown
    changed = terminal.run("agent", "edit", "Mute", "--self-scheduling")
    assert (changed.returncode, "hidden" in changed.stdout) == (0, False)
    terminal.run("agent", "rm", "Mute", "--yes")


def test_what_cannot_be_read_as_a_time_is_refused_with_the_forms(terminal):
    refused = terminal.run("wake", "add", TODO, "--when", "yesterday")
    assert refused.returncode == 1
    assert "'yesterday'" in refused.stderr
    assert "tomorrow at 09:00" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_edit_without_changes_is_a_wrong_command(terminal):
    refused = terminal.run("wake", "edit", book(terminal, "--when", "2h"))
    assert refused.returncode == 2
    assert "--when" in refused.stderr


@pytest.mark.parametrize(
    ("door", "options", "kind"),
    [
        ("recall", ("--when", "1h", "--on-miss", "skip", "--priority", "low"), "recall"),
        ("message", ("--when", "1h", "--comment", "m", "--ephemeral"), "message"),
        ("session", ("--when", "in 2 hours", "--name", "Fresh", "--tool", "read_file"), "session"),
        ("next-run", ("--when", "1h", "--on-miss", "run_once"), "next_run"),
    ],
)
def test_every_door_is_reached_and_every_command_knows_its_wakes(terminal, door, options, kind):
    booked = terminal.run("wake", "add", TODO, "--as", door, *options)
    assert booked.returncode == 0, booked.stderr
    wake_id = booked.stdout.rpartition("Wake ")[2].strip(". \n")
    shown = terminal.read("wake", "show", wake_id)
    assert (shown["kind"], shown["status"], shown["instructions"]) == (kind, "pending", TODO)
    assert wake_id in terminal.run("wake", "ls", "--agent", "Wakeful").stdout
    edited = terminal.read("wake", "edit", wake_id, "--when", "3h", "--instructions", f"{TODO} Again.")
    assert edited["nominal_at"] > shown["nominal_at"]
    assert edited["instructions"] == f"{TODO} Again."
    refused = terminal.run("wake", "skip", wake_id)
    assert refused.returncode == 1
    assert "fires once" in refused.stderr
    ended = terminal.run("wake", "run", wake_id, "--wait", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["status"]) == (0, "success"), ended.stderr
    codes = [each["code"] for each in terminal.read("wake", "why", wake_id)["decisions"]]
    assert {"booked", "edited", "run_now", "started", "success"} <= set(codes)
    late = terminal.run("wake", "cancel", wake_id)
    assert late.returncode == 1
    assert "fired" in late.stderr


@pytest.mark.parametrize("door", ["recall", "message", "session", "next-run"])
def test_without_a_time_it_comes_at_once(terminal, door):
    booked = terminal.read("wake", "add", TODO, "--as", door)
    [wake_id] = {
        booked.get(key, {}).get("id", "").removeprefix("sch-") for key in ("recall", "schedule", "next_run")
    } - {""}
    for _ in range(100):
        [*ran] = terminal.read("runs", "--wake", wake_id)["runs"]
        if ran and ran[0]["finished_at"]:
            break
    assert ran[0]["status"] == "success"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("wake", "add", TODO, "--as", "message", "--every", "60"), 2, ("--every", "--as message", "--comment")),
        (("wake", "add", TODO, "--as", "next-run", "--comment", "x"), 2, ("--comment", "--as next-run")),
        (("wake", "add", TODO, "--as", "letter"), 2, ("letter", "next-run")),
        (("wake", "add", " ", "--when", "1h"), 1, ("TEXT:", "1 to 32,000")),
        (("wake", "add", TODO, "--as", "message", "--when", "2 days"), 1, ("--when:", "24 h")),
        (("wake", "add", TODO, "--as", "session", "--tool", "fly"), 1, ("--tool:", "'fly'", "read_file")),
        (("wake", "add", TODO, "--every", "1"), 1, ("--every:", "10 s")),
        (("wake", "add", TODO, "--when", "1h", "--every", "1"), 1, ("--every:", "10 s")),
        (("wake", "add", TODO, "--agent", "Nobody"), 1, ("'Nobody'", "wakeful agent ls")),
        (("wake", "add", TODO, "--session", "nothing-here"), 1, ("'nothing-here'",)),
        (("wake", "ls", "--status", "sleeping"), 1, ("--status:", "sleeping", "pending")),
        (("wake", "run", "nothing-here"), 1, ("'nothing-here'", "wakeful wake ls --all")),
        (("wake", "why", "nothing-here"), 1, ("'nothing-here'", "wakeful wake ls --all")),
        (("runs", "--agent", "Nobody"), 1, ("'Nobody'", "wakeful agent ls", "Wakeful")),
        (("channel", "test", "nobody"), 1, ("'nobody'", "wakeful channel ls")),
        (("runs", "--page", "nonsense"), 1, ("'nonsense'", "next")),
        (("agent", "show", "Nobody"), 1, ("'Nobody'", "wakeful agent ls")),
        (("agent", "edit", "Wakeful"), 2, ("--prompt",)),
        (("agent", "edit", "Wakeful", "--toolset", "magic"), 1, ("--toolset:", "'magic'", "files")),
        (("agent", "mode", "Wakeful", "wild"), 2, ("wild", "ambient")),
        (("agenda", "--from", "yesterday"), 1, ("yesterday",)),
        (("pause", "--for", "ever"), 2, ("ever", "tomorrow")),
    ],
)
def test_a_wrong_command_is_answered_with_the_option_and_what_it_takes(terminal, arguments, code, said):
    refused = terminal.run(*arguments)
    assert refused.returncode == code, refused.stderr
    assert [word for word in said if word not in refused.stderr] == []
    assert "Traceback" not in refused.stderr


def test_a_run_that_fails_is_an_exit_code_of_its_own(terminal):
    wake_id = terminal.read("wake", "add", TODO, "--as", "session", "--when", "1h")["schedule"]["id"]
    edited = terminal.read("agent", "edit", "Wakeful", "--model", "openai:gpt-4o")  # for which there is no key
    assert edited["model"] == "openai:gpt-4o"
    ended = terminal.run("wake", "run", wake_id.removeprefix("sch-"), "--wait")
    terminal.read("agent", "edit", "Wakeful", "--model", "demo")
    assert ended.returncode == 1
    assert "failed" in ended.stdout


def test_runs_tell_what_was_used(terminal):
    ended = terminal.read("wake", "run", book(terminal, "--when", "1h"), "--wait")
    [listed] = [each for each in terminal.read("runs", "--agent", "Wakeful")["runs"] if each["id"] == ended["id"]]
    assert listed["usage"] == ended["usage"]
    assert listed["usage"]["output_tokens"] > 0
    line = next(line for line in terminal.run("runs").stdout.splitlines() if ended["id"] in line)
    assert str(listed["usage"]["input_tokens"] + listed["usage"]["output_tokens"]) in line
    assert "run_now" in line
    assert listed["about"] in line


def test_a_list_that_goes_on_says_how(terminal):
    for _ in range(2):
        book(terminal, "--when", "5h")
    first = terminal.run("wake", "ls", "--limit", "1")
    page = first.stderr.split("--page ")[1].strip()
    assert terminal.read("wake", "ls", "--limit", "1", "--page", page)["wakes"]
    assert "--page" not in terminal.run("wake", "ls", "--limit", "200").stderr


def test_there_is_colour_on_a_terminal_and_nowhere_else(terminal):
    book(terminal, "--when", "4h")
    assert "\x1b[" not in terminal.run("wake", "ls").stdout
    leader, follower = pty.openpty()
    done = subprocess.run(
        [Path(sys.executable).with_name("wakeful"), "wake", "ls"],
        env=terminal.environment | {"TERM": "xterm", "COLUMNS": "400"},
        stdout=follower,
        stderr=follower,
        stdin=follower,
        timeout=60,
    )
    shown = os.read(leader, 65536)
    os.close(follower)
    os.close(leader)
    assert done.returncode == 0
    assert b"\x1b[34mpending" in shown


def test_an_agents_mode_and_next_run_are_shown_and_chosen(terminal):
    made = terminal.read("agent", "add", "Bo", "--self-scheduling", "--toolset", "next_run", "--mode", "project")
    assert (made["toolsets"], made["self_scheduling"], made["schedule"]["mode"]) == (["next_run"], True, "project")
    assert terminal.read("agent", "mode", "Bo")["daily_cap"] == 4
    assert terminal.read("agent", "mode", "Bo", "ambient")["daily_cap"] == 6
    assert terminal.run("agent", "next-run", "Bo").stdout == "No next run is booked.\n"
    booked = terminal.read("wake", "add", TODO, "--as", "next-run", "--agent", "Bo", "--when", "1h")
    assert terminal.read("agent", "next-run", "Bo")["next_run"]["id"] == booked["next_run"]["id"]
    changed = terminal.read("agent", "edit", "Bo", "--no-self-scheduling", "--zone", "Asia/Tokyo", "--prompt", "Hm.")
    assert (changed["timezone"], changed["system_prompt"]) == ("Asia/Tokyo", "Hm.")
    assert terminal.read("agent", "next-run", "Bo")["next_run"] is None
    assert terminal.run("agent", "rm", "Bo", "--yes").returncode == 0


@pytest.fixture
def outside():
    """Where a channel of this machine goes."""
    arrived: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            arrived.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["title"])
            self.send_response(500 if "broken" in self.path else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"json://me:secret@127.0.0.1:{server.server_port}", arrived
        server.shutdown()


def test_a_channel_is_added_tried_listed_and_deleted(terminal, outside):
    url, arrived = outside
    added = terminal.run("channel", "add", "phone", f"{url}/ok")
    assert added.returncode == 0, added.stderr
    tried = terminal.run("channel", "test", "phone")
    assert (tried.returncode, tried.stdout) == (0, "sent\n")
    assert arrived == ["A test from Wakeful"]
    [listed] = terminal.read("channel", "ls")["channels"]
    assert (listed["name"], listed["url"]) == ("phone", "json://127.0.0.1")
    assert "secret" not in added.stdout + terminal.run("channel", "ls").stdout
    assert terminal.run("channel", "rm", "phone", "--yes").returncode == 0
    assert terminal.read("channel", "ls")["channels"] == []


def test_a_channel_that_does_not_work_fails_the_command(terminal, outside):
    url, _ = outside
    made = terminal.read("channel", "add", "broken", f"{url}/broken")
    tried = terminal.run("channel", "test", made["id"])
    assert tried.returncode == 1
    assert "500" in tried.stdout
    terminal.run("channel", "rm", "broken", "--yes")
    refused = terminal.run("channel", "add", "desk", "dbus://session")
    assert refused.returncode == 1
    assert "dbus" in refused.stderr
    assert terminal.run("channel", "test", "nobody").returncode == 1


def test_without_a_token_the_command_says_where_it_looked(terminal, tmp_path):
    alone = Terminal(terminal.environment | {"WAKEFUL_CONFIG_DIR": str(tmp_path)}, tmp_path)
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
