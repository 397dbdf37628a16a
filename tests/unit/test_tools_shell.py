"""The shell toolset on real processes: what a command sees, says and leaves behind."""

import asyncio
import os
from pathlib import Path

import pytest

from wakeful.tools import shell
from wakeful.tools.registry import Tools
from wakeful.tools.shell import shell_tools
from world import eventually, tool_context

TOOLS = Tools(shell_tools())


@pytest.fixture
def context(tmp_path):
    return tool_context(tmp_path / "workspace", "shell")


@pytest.fixture
def run(context):
    async def run(command, **more):
        return await TOOLS.call("run_command", {"command": command, **more}, context)

    return run


def is_alive(pid: int) -> bool:
    """Tell whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_known(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def all_dead(pids) -> None:
    async def gone():
        return not any(is_alive(pid) for pid in pids)

    await eventually(gone)


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (a descriptor listing itself, not a path)


# ── What it sees and says ───────────────────────────────────────────────────────────────────────────────────────────


async def test_it_runs_in_the_workspace_which_is_made_for_it(run, context):
    result = await run("pwd; echo hello > a.txt")
    assert result.text == f"Exit code 0.\n{context.workspace}"
    assert (context.workspace / "a.txt").read_text() == "hello\n"


async def test_an_exit_code_is_an_answer_and_no_failure(run):
    result = await run("echo no >&2; exit 3")
    assert result.success
    assert result.text == "Exit code 3.\nno"
    assert result.metadata == {"exit_code": 3, "output_bytes": 3}


async def test_a_command_that_kills_itself_says_by_which_signal(run):
    assert (await run("kill -TERM $$")).text == "Killed by signal 15.\n(no output)"


async def test_output_and_errors_come_in_the_order_they_were_written(run):
    assert (await run("echo 1; echo 2 >&2; echo 3")).text == "Exit code 0.\n1\n2\n3"


async def test_its_environment_holds_nothing_of_the_servers(run, context, monkeypatch):
    monkeypatch.setenv("WAKEFUL_TOKEN", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    _, *lines = (await run("env")).text.splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    assert seen.keys() - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "HOME", "LANG"}  # the rest is the shell's own
    assert seen["HOME"] == str(context.workspace)


async def test_there_is_no_input_to_wait_for(run):
    assert (await run("cat; echo done", timeout_seconds=10)).text == "Exit code 0.\ndone"


async def test_it_inherits_no_open_file_of_the_server(run, tmp_path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        listing = (await run("ls -l /proc/self/fd")).text
    assert str(tmp_path / "open") not in listing


async def test_it_has_a_session_and_a_group_of_its_own(run):
    _, group, session = (await run("cut -d' ' -f5,6 /proc/$$/stat | tr ' ' '\\n'")).text.splitlines()
    assert group == session
    assert int(group) != os.getpgrp()


async def test_long_output_keeps_its_beginning_and_its_end(run):
    result = await run("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result.text.startswith("Exit code 0.\nfirst\nxxx")
    assert result.text.endswith("xxx\nlast")
    missing = 3_000_012 - 2 * shell.MOST_KEPT
    assert f"[{missing:,} bytes left out here" in result.text
    assert result.metadata["output_bytes"] == 3_000_012
    assert len(result.text) < 2 * shell.MOST_KEPT + 200


async def test_output_that_just_fits_is_shown_whole(run):
    result = await run(f"head -c {2 * shell.MOST_KEPT} /dev/zero | tr '\\0' x")
    assert result.text == "Exit code 0.\n" + "x" * (2 * shell.MOST_KEPT)


async def test_output_that_is_no_text_does_not_break_it(run):
    assert (await run(r"printf '\377\376'")).text == "Exit code 0.\n��"


@pytest.mark.parametrize(("command", "code"), [("echo a\0b", "command_unusable"), ("echo \ud800", "bad_arguments")])
async def test_a_command_that_cannot_be_run_is_refused(run, command, code):
    result = await run(command)
    assert not result.success
    assert result.metadata["code"] == code


@pytest.mark.parametrize("seconds", [0, -1, 601, "inf", "nan"])
async def test_a_time_out_beyond_the_bounds_is_refused(run, context, seconds):
    result = await run("touch ran", timeout_seconds=seconds)
    assert result.metadata["code"] == "bad_arguments"
    assert not (context.workspace / "ran").exists()


# ── Its end ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# A tree of three that ignores every polite signal, and writes down who it is.
STUBBORN = "trap '' TERM HUP INT; echo $$ >> pids; (trap '' TERM HUP; sh -c 'echo $$ >> pids; exec sleep 300') & "


async def test_a_command_over_its_time_is_killed_with_all_it_started(run, context):
    result = await run(STUBBORN + "echo begun; wait", timeout_seconds=1)
    assert not result.success
    assert result.metadata["code"] == "command_timed_out"
    assert result.metadata["exit_code"] is None
    assert result.text.startswith("Killed after 1 seconds, with all it had started.")
    assert result.text.endswith("begun")
    pids = pids_in(context.workspace / "pids")
    assert len(pids) == 2
    await all_dead(pids)


async def test_a_cancelled_call_kills_the_command_with_all_it_started(run, context):
    call = asyncio.create_task(run(STUBBORN + "wait"))

    async def begun():
        return len(pids_in(context.workspace / "pids")) == 2

    await eventually(begun, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await all_dead(pids_in(context.workspace / "pids"))


async def test_what_a_command_leaves_in_the_background_ends_with_it(run, context):
    result = await run("sleep 300 & echo $! > pids; echo done", timeout_seconds=30)
    assert result.text == "Exit code 0.\ndone"
    await all_dead(pids_in(context.workspace / "pids"))


RUNAWAY = "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do sleep 0.01; done; "


@pytest.mark.parametrize("ending", ["echo done", "wait"])
async def test_a_process_that_ran_away_with_the_pipe_is_found_and_killed_too(run, context, ending):
    result = await run(RUNAWAY + ending, timeout_seconds=2)
    assert result.success == (ending == "echo done")
    [pid] = pids_in(context.workspace / "pids")
    await all_dead([pid])


async def test_a_command_that_kills_its_whole_group_says_by_which_signal(run):
    assert (await run("kill -TERM 0; sleep 30")).text == "Killed by signal 15.\n(no output)"


async def test_a_command_that_never_stops_talking_neither_blocks_nor_fills_the_memory(run):
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    counting = asyncio.create_task(count())
    result = await run("yes", timeout_seconds=1)
    counting.cancel()
    assert result.metadata["output_bytes"] > 1_000_000
    assert len(result.text) < 2 * shell.MOST_KEPT + 500
    assert turns > 10


async def test_commands_leave_no_descriptor_and_no_zombie_behind(run):
    await run("true")
    before = open_descriptors()
    results = await asyncio.gather(*(run("echo $$; exit 1") for _ in range(10)))
    await run("sleep 30", timeout_seconds=0.1)
    assert open_descriptors() == before
    assert not any(is_known(int(result.text.split()[-1])) for result in results)


def test_a_command_is_never_repeated_after_a_crash():
    assert [tool.is_repeatable for tool in shell_tools()] == [False]
