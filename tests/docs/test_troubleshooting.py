"""docs/how-to/troubleshooting.md: each fault is caused, its symptom read, and the advice followed until it is cured."""

import asyncio
import re
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from openai_server import OpenAIServer, refuse, say
from terminal import WAKEFUL, Terminal, a_terminal
from used_data import TOKEN, Place
from wakeful.core.labels import REASONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/troubleshooting.md"
HERE = "tests/docs/test_troubleshooting.py"
RUNS = "tests/docs/test_troubleshooting_runs.py"
READ = "Read notes.txt with read_file."

TESTS = {  # of each row, by the beginning of its first cell
    "*Cannot listen on": (HERE, "test_a_port_that_is_taken"),
    "*… is not a setting": (HERE, "test_a_setting_that_does_not_exist"),
    "*The store": (HERE, "test_a_store_that_is_not_there"),
    "*The device key": (HERE, "test_a_device_key_that_is_missing"),
    "*The data directory": (HERE, "test_a_second_server_on_the_same_data"),
    "the link does not work": (HERE, "test_a_login_link_that_was_used"),
    "the page asks to log in again": ("tests/web/test_login.py", "test_without_its_secret_the_page_says_why"),
    "*The host": (HERE, "test_a_host_that_is_not_known"),
    "a command says *token": (HERE, "test_a_token_that_is_not_known"),
    "exit code 3": (HERE, "test_no_server"),
    "paused": (HERE, "test_a_wake_that_is_paused"),
    "quiet hours": (HERE, "test_a_wake_that_a_limit_moves"),
    "too many runs": (RUNS, "test_too_many_runs_that_the_agent_booked"),
    "missed": (RUNS, "test_a_wake_that_was_missed"),
    "its model did not answer": (RUNS, "test_a_wake_whose_model_does_not_answer"),
    "the session was busy": (RUNS, "test_a_session_that_is_busy"),
    "nothing at all": (RUNS, "test_a_wake_for_another_time_zone"),
    "`model_busy`": (RUNS, "test_a_model_that_does_not_answer"),
    "`model_key_missing`": (HERE, "test_a_model_with_a_wrong_key"),
    "*I do not understand that*": (HERE, "test_the_demo_model"),
    "interrupted": ("tests/docs/test_examples.py", "test_an_interrupted_run_is_continued"),
    "did nothing": (RUNS, "test_a_model_that_did_nothing"),
    "`iteration_limit`": (RUNS, "test_a_run_that_a_limit_ended"),
    "`prompt_cut`": (RUNS, "test_a_model_whose_window_is_smaller"),
    "*the tool notify": (HERE, "test_an_agent_without_notify"),
    "*is not on the public internet*": (HERE, "test_a_private_address"),
    "it waits for approval": ("tests/cli/test_chat.py", "test_an_approval_is_answered_in_place"),
}


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.endswith("| do this |")]


@pytest.mark.parametrize("symptom", [row[0] for row in rows()])
def test_a_row_has_a_test(symptom):
    [(file, name)] = [test for start, test in TESTS.items() if symptom.startswith(start)]
    assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


def test_reasons_are_written_as_why_prints_them():
    section = PAGE.read_text(encoding="utf-8").split("| it says |")[1].split("\n\n")[0]
    said = [line.strip("|").split("|")[0].strip() for line in section.splitlines()[2:]]
    written = {reason for cell in said for reason in cell.split(", ")}
    assert written - set(REASONS.values()) == {"not on Tuesdays", "nothing at all"}


@pytest.fixture(scope="module")
def used(tmp_path_factory) -> Place:
    """A data directory that a server has used."""
    place = Place(tmp_path_factory.mktemp("used"))
    with place.served():
        pass
    return place


def in_terminal(place: Place, **more: str) -> Terminal:
    return Terminal(place.environment | more, place.folder)


def test_a_port_that_is_taken(used, tmp_path):
    with used.served() as running:
        port = re.search(r"http://127\.0\.0\.1:(\d+)", running.said)[1]
        other = Place(tmp_path)
        assert f"Cannot listen on 127.0.0.1:{port}: another Wakeful server" in other.refused("--port", port)
        with other.served("--port", "0"):  # commands find it by themselves
            assert in_terminal(other).run("status").returncode == 0


def test_a_second_server_on_the_same_data(used):
    with used.served():
        refused = Place(used.folder)
        refused.log = used.folder / "second log"
        assert "is in use by another Wakeful process (pid" in refused.refused()
    with refused.served():
        pass


def test_a_setting_that_does_not_exist(used):
    wrong = Place(used.folder)
    wrong.environment["WAKEFUL_PROT"] = "1"
    words = "WAKEFUL_PROT (the environment) is not a setting; the nearest one is WAKEFUL_PORT."
    assert words in wrong.refused()
    checked = in_terminal(wrong).run("config", "check")
    assert (checked.returncode, words in checked.stderr) == (1, True)
    wrong.environment["WAKEFUL_PORT"] = wrong.environment.pop("WAKEFUL_PROT")
    assert in_terminal(wrong).run("config", "check").returncode == 0


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_store_that_is_not_there(used, is_empty):
    store, away = used.data / "wakeful.sqlite", used.folder / "elsewhere"
    store.rename(away)
    if is_empty:
        store.touch()
    refused = used.refused()
    assert f"The store '{store}' is {'empty' if is_empty else 'missing'}" in refused
    assert f"data_dir {used.data}" in " ".join(in_terminal(used).run("config", "show").stdout.split())
    away.replace(store)
    with used.served():
        pass


def test_a_device_key_that_is_missing(tmp_path):
    place = Place(tmp_path)
    with place.served() as running:
        running.stop()
    (tmp_path / "written down").write_text(re.search(r"\b\w+(-\w+){5,}", running.said)[0])
    (place.config / "device.key").unlink()
    assert re.search(r"The device key .* is missing", place.refused())
    restored = in_terminal(place).run("key", "restore", "--file", str(tmp_path / "written down"))
    assert restored.returncode == 0, restored.stderr
    with place.served():
        pass


def test_no_server(used):
    terminal = in_terminal(used, WAKEFUL_PORT="9")
    done = terminal.run("agent", "ls")
    assert (done.returncode, "No server answers" in done.stderr, "`wakeful serve`" in done.stderr) == (3, True, True)
    with used.served():
        assert in_terminal(used).run("agent", "ls").returncode == 0


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    with a_terminal(tmp_path_factory.mktemp("trouble")) as terminal:
        yield terminal


def test_a_host_that_is_not_known(tmp_path):
    place = Place(tmp_path)
    for allowed, status in (({}, 403), ({"WAKEFUL_ALLOWED_HOSTS": "wakeful.lan"}, 200)):
        place.environment |= allowed
        with place.served() as running:
            address = re.search(r"http://127\.0\.0\.1:\d+", running.said)[0]
            headers = {"Host": "wakeful.lan", "Authorization": f"Bearer {TOKEN}"}
            answer = httpx.get(f"{address}/agents", headers=headers)
            assert answer.status_code == status, answer.text
            if status == 403:
                assert answer.json()["error"]["message"] == "The host 'wakeful.lan' is not one of this server's."


def test_a_login_link_that_was_used(terminal):
    def log_in(link: str) -> httpx.Response:
        address, _, code = link.partition("/login?code=")
        return httpx.post(f"{address}/login", data={"code": code}, headers={"Origin": address})

    used = terminal.read("login")["url"]
    assert [log_in(used).status_code, log_in(used).status_code] == [200, 401]
    assert log_in(terminal.read("login")["url"]).status_code == 200


def test_a_token_that_is_not_known(tmp_path):
    place = Place(tmp_path)
    del place.environment["WAKEFUL_TOKEN"]  # the server makes one
    with place.served() as running:
        terminal = in_terminal(place)
        assert terminal.run("token", "rm", "owner", "--yes").returncode == 0
        refused = terminal.run("agent", "ls")
        assert (refused.returncode, "token is not known" in refused.stderr) == (1, True)
        assert re.search(r"http://127\.0\.0\.1:\d+", running.said)[0] in terminal.run("context", "ls").stdout
    with place.served():  # as "Rotate the owner's token" says
        assert in_terminal(place).run("agent", "ls").returncode == 0


@pytest.mark.parametrize(("which", "name"), [((), "all agents"), (("--agent", "Wakeful"), "Wakeful")])
def test_a_wake_that_is_paused(terminal, which, name):
    terminal.run("pause", "--for", "2h", *which)
    wake = terminal.run("wake", "add", READ, "--when", "1s", "--quiet").stdout.strip()
    wait_until(lambda: "paused" in terminal.run("wake", "why", wake).stdout)
    assert f"paused   {name}, until" in terminal.run("status").stdout
    assert terminal.run("resume", *which).returncode == 0
    wait_until(lambda: terminal.read("wake", "show", wake)["status"] == "fired")


LIMITS = {
    "quiet hours": (("--quiet-from", "00:00", "--quiet-to", "23:59"), ("--quiet-from", "", "--quiet-to", "")),
    f"not on {datetime.now(UTC):%A}s": (
        ("--day", f"{datetime.now(UTC) + timedelta(days=3):%a}".lower()),
        tuple(word for day in ("mon", "tue", "wed", "thu", "fri", "sat", "sun") for word in ("--day", day)),
    ),
    "its daily limit of runs is used up": (("--daily-cap", "0"), ("--daily-cap", "24")),
}


@pytest.mark.parametrize("reason", LIMITS)
def test_a_wake_that_a_limit_moves(terminal, reason):
    limit, no_limit = LIMITS[reason]
    assert terminal.run("agent", "edit", "Wakeful", "--max-horizon", "7 days", "--zone", "UTC", *limit).returncode == 0
    assert reason in why_of_the_next_run(terminal)
    assert limit[0].removeprefix("--") in terminal.run("agent", "show", "Wakeful").stdout
    assert terminal.run("agent", "edit", "Wakeful", *no_limit).returncode == 0
    cured = why_of_the_next_run(terminal)
    assert ("scheduled it for" in cured, reason in cured) == (True, False)


def why_of_the_next_run(terminal) -> str:
    """Let the agent book its next run, and return what is known about it, or why it could not."""
    asked = terminal.run("ask", f"book your next run in 10 minutes to {READ}").stdout
    if "Done: my next run is" not in asked:
        return asked
    booked = terminal.read("agent", "next-run", "Wakeful")["next_run"]["id"]
    return terminal.run("wake", "why", booked).stdout


async def test_a_model_with_a_wrong_key(terminal):
    def refuse_wrong_key(exchange):
        is_right = exchange.request.headers["authorization"] == "Bearer the-right-key"
        return (say("ready") if is_right else refuse(401, "Wrong key."))(exchange)

    async with OpenAIServer(always=refuse_wrong_key) as endpoint:
        options = ("--name", "mine", "--address", endpoint.base_url, "--no-check", "--no-default", "--key")
        await give(terminal, "a-wrong-key", "model", "add", "openai-chat", "m", *options)
        tested = await asyncio.to_thread(terminal.run, "model", "test", "mine")
        assert (tested.returncode, "Wrong key. (HTTP 401)" in tested.stderr) == (1, True), tested.stderr
        await give(terminal, "the-right-key", "model", "edit", "mine", "--key")
        cured = await asyncio.to_thread(terminal.run, "model", "test", "mine")
        assert cured.returncode == 0, cured.stderr


async def give(terminal, line: str, *arguments: str) -> None:
    """Run a command that reads a line."""
    environment = terminal.environment
    await asyncio.to_thread(
        subprocess.run, [WAKEFUL, *arguments], input=f"{line}\n", text=True, check=True, env=environment, timeout=60
    )


async def test_the_demo_model(terminal):
    asked = terminal.run("ask", "dance a little")
    assert "I do not understand that." in asked.stdout
    assert "wakeful model add" in asked.stdout
    async with OpenAIServer(always=say("Here I dance.")) as endpoint:
        options = ("--name", "real", "--address", endpoint.base_url, "--no-check")
        added = await asyncio.to_thread(terminal.run, "model", "add", "openai-chat", "m", *options)
        assert added.returncode == 0, added.stderr
        assert "Here I dance." in (await asyncio.to_thread(terminal.run, "ask", "dance a little")).stdout
    assert terminal.run("model", "default", "--unset").returncode == 0


def test_an_agent_without_notify(terminal):
    terminal.run("agent", "edit", "Wakeful", "--no-self-scheduling")
    assert "the tool notify, which this agent does not have" in terminal.run("ask", "notify me that it is done").stdout
    toolsets = ("--toolset", "notify", "--toolset", "files", "--toolset", "web")
    cured = terminal.run("agent", "edit", "Wakeful", "--self-scheduling", *toolsets)
    assert cured.returncode == 0, cured.stderr
    assert "it is in your inbox" in terminal.run("ask", "notify me that it is done").stdout


def test_a_private_address(terminal, tmp_path):
    refused = terminal.run("ask", "fetch http://127.0.0.1:9/")
    assert "is not on the public internet" in refused.stdout
    with a_terminal(tmp_path, WAKEFUL_FETCH_PRIVATE_HOSTS="127.0.0.1") as allowed:
        url = f"http://127.0.0.1:{allowed.environment['WAKEFUL_PORT']}/healthz"
        assert f"{url} says:" in allowed.run("ask", f"fetch {url}").stdout


def wait_until(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until
