"""docs/how-to/troubleshooting.md, rows about runs and wakes whose model is scripted; see test_troubleshooting.py."""

import asyncio
import json
import shlex
from contextlib import asynccontextmanager

import pytest

from harness import HOUR, NOON
from live_server import Patient, Tap, eventually, running_server
from openai_server import call, calls, chunk, hang, refuse, say, stream, text, usage
from terminal import Terminal, environment, pipe
from wakeful.core.clock import ManualClock

READ = "Read notes.txt with read_file."
WINDOW = 4_096  # tokens


@pytest.fixture(scope="module")
async def shared_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trouble")
    settings = {"data_dir": folder / "data", "config_dir": folder / "config", "store_encryption": False}
    quick = {"runs_per_hour": 1, "defer_seconds": 1, "patient": Patient(first=60.0, between=60.0, retries=0)}
    async with running_server(settings, **quick) as server:
        yield server


@pytest.fixture
def run(server, tmp_path):
    """Run a command as the owner, and return how it ended."""
    terminal = Terminal(environment(server, tmp_path, TZ="UTC"), tmp_path)
    return lambda *arguments: asyncio.to_thread(terminal.run, *arguments)


@pytest.fixture
def read(run):
    """Run a command that succeeds, and return its JSON."""

    async def read(*arguments):
        done = await run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return read


def use(tool, **arguments):
    return calls(*call(tool, json.dumps(arguments)))


async def test_a_session_that_is_busy(server, session, run, read):
    server.provider.then(tap := Tap(), say("Read."))
    async with server.watch(session) as client:
        await client.say("Tell me a long story")
        await tap.is_asked.wait()
        wake = (await run("wake", "add", READ, "--session", session, "--quiet")).stdout.strip()
        await eventually(lambda: says(run, "the session was busy", "wake", "why", wake))
        tap.end()
        await eventually(lambda: has_status(read, wake, "fired"))


async def test_too_many_runs_that_the_agent_booked(server, session, run, read):
    again = use("schedule_recall", call_type="immediate", additional_context_message=READ)
    server.provider.then(again, say("Booked."), again, say("Booked again."))
    await run("ask", "Go on for ever", "--session", session)
    await eventually(lambda: says(run, "Too many runs within an hour", "inbox", "ls"))
    [wake] = (await read("wake", "ls"))["wakes"]
    assert "too many runs within an hour" in (await run("wake", "why", wake["id"])).stdout
    assert (await run("wake", "cancel", wake["id"])).returncode == 0
    assert (await read("wake", "ls"))["wakes"] == []


async def test_a_wake_that_was_missed(tmp_path):
    settings = {"data_dir": tmp_path / "data", "config_dir": tmp_path / "config", "store_encryption": False}
    clock = ManualClock(NOON)

    @asynccontextmanager
    async def served():
        async with running_server(settings, clock=clock, always=say("Read.")) as server:
            terminal = Terminal(environment(server, tmp_path, TZ="UTC"), tmp_path)
            yield lambda *arguments: asyncio.to_thread(terminal.run, *arguments)

    book = ("wake", "add", READ, "--as", "next-run", "--when", "30m", "--quiet")
    async with served() as run:
        missed = (await run(*book)).stdout.strip()
    clock.advance(HOUR)
    async with served() as run:
        await eventually(lambda: says(run, "was missed", "wake", "why", missed))
        late = (await run(*book, "--on-miss", "run_once")).stdout.strip()
        changed = (await run("wake", "add", READ, "--when", "30m", "--on-miss", "skip", "--quiet")).stdout.strip()
        assert (await run("wake", "edit", changed, "--on-miss", "run_once")).returncode == 0
    clock.advance(HOUR)
    async with served() as run:
        for wake in (late, changed):
            await eventually(lambda wake=wake: says(run, "Done", "wake", "why", wake))


async def test_a_wake_for_another_time_zone(run, read):
    assert (await run("zone", "Asia/Tokyo")).returncode == 0
    book = ("wake", "add", READ, "--when", "tomorrow at 09:00")
    assert "09:00:00+09:00 Asia/Tokyo" in (await run(*book)).stdout
    assert (await run("zone")).stdout.strip() == "Asia/Tokyo"
    assert (await run("zone", "UTC")).returncode == 0
    assert "09:00:00+00:00 UTC" in (await run(*book)).stdout


async def test_a_model_that_does_not_answer(server, session, run, tmp_path):
    server.provider.then(*[refuse(503, "Overloaded.")] * 2, use("report_ready", word="ready"), say("Hello again."))
    assert (await run("ask", "Hello?", "--session", session)).returncode == 1
    listed = (await run("runs")).stdout
    assert ("model_busy" in listed, "Overloaded." in listed) == (True, True)
    down = await run("model", "test")
    assert (down.returncode, "Overloaded." in down.stderr) == (1, True)
    assert (await run("model", "test")).returncode == 0
    continued = await pipe(server, tmp_path, "chat", "--session", session, given="/continue\n")
    assert continued[:2] == (0, "Hello again.\n")
    nothing = await pipe(server, tmp_path, "chat", "--session", session, given="/continue\n")
    assert "there is nothing to continue" in nothing[2]


async def test_a_wake_whose_model_does_not_answer(server, run, read):
    server.provider.then(refuse(503, "Overloaded."))
    wake = (await run("wake", "add", READ, "--when", "1h", "--quiet")).stdout.strip()
    await run("wake", "run", wake)
    await eventually(lambda: says(run, "Overloaded.", "wake", "why", wake))
    server.provider.then(use("report_ready", word="ready"), say("There is none."))
    assert (await run("model", "test")).returncode == 0
    assert (await run("wake", "run", wake, "--wait")).returncode == 0
    assert [each["status"] for each in (await read("runs"))["runs"] if each["wake_id"] == wake] == ["success"]


async def test_a_wake_that_has_failed_is_run_again_from_the_inbox(server, run, read):
    server.provider.then(refuse(400, "No such parameter."))
    wake = (await run("wake", "add", READ, "--when", "1h", "--quiet")).stdout.strip()
    await run("wake", "run", wake, "--wait")
    [notice] = [each for each in (await read("inbox", "ls"))["notifications"] if each["wake_id"] == wake]
    assert (notice["code"], "No such parameter." in notice["body"]) == ("wake_failed", True)
    assert f"wakeful inbox run {notice['id']}" in (await run("inbox", "show", notice["id"])).stdout
    server.provider.then(say("There is none."))
    again = await read("inbox", "run", notice["id"])

    async def is_done():
        return ("success", again["id"]) in [(each["status"], each["id"]) for each in (await read("runs"))["runs"]]

    await eventually(is_done)


async def test_a_model_that_did_nothing(server, run, read):
    server.provider.then(stream(chunk({"role": "assistant"})))
    wake = (await run("wake", "add", "Look.", "--when", "1h", "--quiet")).stdout.strip()
    await run("wake", "run", wake, "--wait")
    assert "did nothing" in (await run("runs")).stdout
    server.provider.then(use("report_ready", word="ready"))
    assert "It calls tools." in (await run("model", "test")).stdout
    server.provider.then(use("read_file", path="notes.txt"), say("There is none."))
    wake = (await run("wake", "add", READ, "--when", "1h", "--quiet")).stdout.strip()
    await run("wake", "run", wake, "--wait")
    assert (await read("runs"))["runs"][0]["note"] is None


LIMITS = {
    "iteration_limit": ("--max-iterations", "1", "10"),
    "budget": ("--run-tokens", "10", "100000"),
    "time_limit": ("--run-limit", "1s", "10m"),
}


@pytest.mark.parametrize("reason", LIMITS)
async def test_a_run_that_a_limit_ended(server, session, run, read, reason):
    option, low, high = LIMITS[reason]
    first = hang if reason == "time_limit" else stream(*call("list_files", "{}"), usage(10, 10), finish="tool_calls")
    server.provider.then(first)
    await run("agent", "edit", "Wakeful", option, low)
    await run("ask", "Go on and on", "--session", session)
    assert (await read("runs"))["runs"][0]["reason"] == reason
    assert (await run("agent", "edit", "Wakeful", option, high)).returncode == 0
    server.provider.then(use("list_files"), say("Done."))
    assert (await run("ask", "Go on and on", "--session", session)).returncode == 0
    assert (await read("runs"))["runs"][0]["reason"] is None


async def test_a_model_whose_window_is_smaller(server, run, read):
    async def drop_what_does_not_fit(exchange):
        sent = len(json.dumps(exchange.request.body)) // 4
        await stream(*text("Fine."), usage(min(sent, WINDOW), 2))(exchange)

    added = ("model", "add", "openai-chat", "small", "--name", "small", "--address", server.provider.base_url)
    assert (await run(*added, "--no-check", "--no-default")).returncode == 0
    await run("agent", "edit", "Wakeful", "--model", "small")
    server.provider.always = drop_what_does_not_fit
    await run("ask", "Hello " * 4_000)
    [noticed] = (await read("inbox", "ls"))["notifications"]
    told = (await run("inbox", "show", noticed["id"])).stdout
    advice = shlex.split(told.partition("`wakeful ")[2].partition("`")[0])
    assert (await run(*advice)).returncode == 0, advice
    await run("ask", "Hello")
    assert (await read("runs"))["runs"][0]["note"] is None
    server.provider.always = None


async def says(run, words, *arguments):
    return words in (await run(*arguments)).stdout


async def has_status(read, wake, status):
    return (await read("wake", "show", wake))["status"] == status
