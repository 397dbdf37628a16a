"""The shell toolset with real processes, confined and not: environment, output, left-over processes."""

import asyncio
import os
from pathlib import Path

import pytest

from confined import ALL_LEVELS, at_level, processes_with_home
from harness import eventually, tool_context
from wakeful.sandbox import shell
from wakeful.sandbox.shell import ShellSettings, shell_tools
from wakeful.toolbox.registry import Tools


@pytest.fixture(params=ALL_LEVELS)
def level(request):
    return request.param


@pytest.fixture
def context(tmp_path):
    return tool_context(tmp_path / "workspace", "shell")


@pytest.fixture
def run(context, level):
    tools = Tools(shell_tools(ShellSettings(confinement=at_level(level), is_unconfined=level == "none")))

    async def run(command, **more):
        return await tools.call("run_command", {"command": command, **more}, context)

    return run


async def all_dead(context) -> None:
    async def gone():
        return not processes_with_home(context.workspace)

    await eventually(gone)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (a descriptor listing itself, not a path)


# ── What it sees and says ───────────────────────────────────────────────────────────────────────────────────────────


async def test_it_runs_in_the_workspace_which_is_made_for_it(run, context):
    result = await run("pwd; echo hello > a.txt")
    assert result.text == f"Exit code 0.\n{context.workspace}"
    assert (context.workspace / "a.txt").read_text() == "hello\n"


async def test_a_workspace_that_is_a_link_is_not_entered(run, context, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    context.workspace.parent.mkdir(parents=True, exist_ok=True)
    context.workspace.symlink_to(outside)
    result = await run("echo hello > a.txt")
    assert (result.success, result.metadata["code"]) == (False, "path_is_link")
    assert not any(outside.iterdir())


async def test_an_exit_code_is_an_answer_and_no_failure(run):
    result = await run("echo no >&2; exit 3")
    assert result.success
    assert result.text == "Exit code 3.\nno"
    assert result.metadata == {"exit_code": 3, "output_bytes": 3}


def killed_by_sigterm(level):
    """Bubblewrap stands between the command and us, and passes a signal on as an exit code, as shells do."""
    return "Exit code 143." if level == "bubblewrap" else "Killed by signal 15."


async def test_a_command_that_kills_itself_says_by_which_signal(run, level):
    assert (await run("kill -TERM $$")).text == f"{killed_by_sigterm(level)}\n(no output)"


async def test_output_and_errors_come_in_the_order_they_were_written(run):
    assert (await run("echo 1; echo 2 >&2; echo 3")).text == "Exit code 0.\n1\n2\n3"


async def test_its_environment_holds_nothing_of_the_servers(run, context, level, monkeypatch):
    monkeypatch.setenv("WAKEFUL_TOKEN", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    _, *lines = (await run("env")).text.splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    given = {"PATH", "HOME", "LANG"} | ({"TMPDIR"} if level != "none" else set())
    assert seen.keys() - {"PWD", "OLDPWD", "SHLVL", "_"} == given  # the rest is the shell's own
    assert seen["HOME"] == str(context.workspace)


async def test_there_is_no_input_to_wait_for(run):
    assert (await run("cat; echo done", timeout_seconds=10)).text == "Exit code 0.\ndone"


LIST_DESCRIPTORS = """
import os
for number in range(3, 1024):
    try:
        print(number, os.fstat(number))
    except OSError:
        pass
"""


async def test_it_inherits_no_open_file_of_the_server(run, tmp_path):
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        result = await run(
            "python3 -c 'import os\nfor n in range(3, 1024):\n try: print(n, os.fstat(n))\n except OSError: 0'"
        )
    assert result.text == "Exit code 0.\n(no output)"


async def test_it_has_a_session_and_a_group_of_its_own(run):
    asked = "python3 -c 'import os; print(os.getpgrp(), os.getsid(0))'"
    group, session = (await run(asked)).text.split()[-2:]
    assert group == session  # 0 and 0 where the guard, which leads both, is out of sight
    assert int(group) != os.getpgrp()


async def test_long_output_keeps_its_beginning_and_its_end(run):
    result = await run("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result.text.startswith("Exit code 0.\nfirst\nxxx")
    assert result.text.endswith("xxx\nlast")
    missing = 3_000_012 - 2 * shell.MAX_KEPT
    assert f"[{missing:,} bytes left out here" in result.text
    assert result.metadata["output_bytes"] == 3_000_012
    assert len(result.text) < 2 * shell.MAX_KEPT + 200


async def test_output_that_just_fits_is_shown_whole(run):
    result = await run(f"head -c {2 * shell.MAX_KEPT} /dev/zero | tr '\\0' x")
    assert result.text == "Exit code 0.\n" + "x" * (2 * shell.MAX_KEPT)


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
    assert result.text.startswith("Killed after 1 seconds, with all its processes.")
    assert result.text.endswith("begun")
    assert len((context.workspace / "pids").read_text().split()) == 2
    await all_dead(context)


async def test_a_cancelled_call_kills_the_command_with_all_it_started(run, context):
    call = asyncio.create_task(run(STUBBORN + "wait"))

    async def begun():
        pids = context.workspace / "pids"
        return pids.exists() and len(pids.read_text().split()) == 2

    await eventually(begun, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await all_dead(context)


async def test_what_a_command_leaves_in_the_background_ends_with_it(run, context):
    result = await run("sleep 300 & echo $! > pids; echo done", timeout_seconds=30)
    assert result.text == "Exit code 0.\ndone"
    await all_dead(context)


RUNAWAY = "setsid sh -c 'echo $$ > pids; exec sleep 300' & while [ ! -s pids ]; do sleep 0.01; done; "


@pytest.mark.parametrize("ending", ["echo done", "wait"])
async def test_a_process_that_ran_away_with_the_pipe_is_found_and_killed_too(run, context, ending):
    result = await run(RUNAWAY + ending, timeout_seconds=2)
    assert result.success == (ending == "echo done")
    await all_dead(context)


async def test_a_command_that_kills_its_whole_group_says_by_which_signal(run, level):
    assert (await run("kill -TERM 0; sleep 30")).text == f"{killed_by_sigterm(level)}\n(no output)"


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
    assert len(result.text) < 2 * shell.MAX_KEPT + 500
    assert turns > 10


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


async def test_commands_leave_no_descriptor_and_no_zombie_behind(run):
    await run("true")
    before = open_descriptors(), children()
    await asyncio.gather(*(run("exit 1") for _ in range(10)))
    await run("sleep 30", timeout_seconds=0.1)
    assert (open_descriptors(), children()) == before


def test_a_command_is_never_repeated_after_a_crash():
    assert [tool.is_repeatable for tool in shell_tools()] == [False]


# ── Where commands cannot be confined ───────────────────────────────────────────────────────────────────────────────


async def test_a_command_is_refused_and_people_are_told_where_it_cannot_be_confined(context):
    told = []

    async def announce(agent, confinement):
        told.append((agent.id, confinement.problems))

    tools = Tools(shell_tools(ShellSettings(confinement=at_level("none")), announce))
    result = await tools.call("run_command", {"command": "touch ran"}, context)
    assert (result.success, result.metadata["code"]) == (False, "shell_not_confined")
    assert "was not run" in result.text
    assert not (context.workspace / "ran").exists()
    assert told == [(context.agent.id, ("landlock: not in this kernel",))]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "has no network"),
        ({"has_network": True}, "has network"),
        ({"is_unconfined": True}, "access whatever the server's user can"),
    ],
)
def test_the_model_is_told_what_a_command_reaches(settings, words):
    [tool] = shell_tools(ShellSettings(**settings))
    assert words in tool.description
