"""`wakeful model …` in a terminal beside a running server."""

import asyncio
import contextlib
import os
import pty
import re
import select
import subprocess
import sys

import pytest

from ollama_server import call, ollama
from openai_server import OpenAIServer, listing, refuse
from terminal import Terminal, a_terminal


@pytest.fixture(scope="module")
async def local():
    async with ollama(always=call("report_ready", word="ready")) as server:
        yield server


@pytest.fixture(scope="module")
def terminal(tmp_path_factory, local):
    with a_terminal(tmp_path_factory.mktemp("models"), WAKEFUL_LOCAL_MODEL_PORTS=str(local.port)) as terminal:
        yield terminal


async def run(terminal: Terminal, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(terminal.run, "model", *arguments)


async def type_in(terminal: Terminal, text: str, *arguments: str) -> tuple[int, str]:
    """Run a command in a pseudo-terminal and type into it; return its exit code and everything it showed."""
    return await asyncio.to_thread(_type_in, terminal, text, arguments)


def _type_in(terminal: Terminal, text: str, arguments: tuple[str, ...]) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from wakeful.cli.main import app; app()", "model", *arguments]
    process = subprocess.Popen(command, env=terminal.environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, is_typed = b"", False
    with contextlib.suppress(OSError):  # the other end is closed
        while select.select([ours], [], [], 30)[0] and (part := os.read(ours, 65_536)):
            shown += part
            if not is_typed and shown.endswith(b": "):  # a prompt for a key discards what was typed before it
                is_typed = bool(os.write(ours, text.encode()))
    os.close(ours)
    process.kill()  # does nothing if it has ended
    return process.wait(30), shown.decode()


async def test_from_the_demo_model_to_a_local_one_in_one_command(terminal, local):
    assert (await run(terminal, "default")).stdout == "demo\n"
    code, shown = await type_in(terminal, "1\n", "add")
    assert code == 0, shown
    assert "Found on this machine:" in shown
    assert f"qwen3:8b  (Ollama, {local.origin})" in shown
    assert "Added qwen3-8b: qwen3:8b at Ollama" in shown
    assert "a context window of 16,384 tokens" in shown
    assert "Agents without a model of their own use it now." in shown
    assert (await run(terminal, "default")).stdout == "qwen3-8b\n"
    tested = await run(terminal, "test")
    assert tested.returncode == 0, tested.stderr
    assert "qwen3-8b answered in" in tested.stdout
    assert "It calls tools." in tested.stdout
    removed = await run(terminal, "rm", "qwen3-8b")
    assert removed.returncode == 1
    assert "every agent without a model of its own (it is the default)" in removed.stderr
    listed = await run(terminal, "ls")
    assert "qwen3-8b *" in listed.stdout
    assert "16,384" in listed.stdout
    assert "native" in listed.stdout


async def test_without_a_terminal_the_commands_for_what_was_found_are_shown(terminal, local):
    done = await run(terminal, "add")
    assert done.returncode == 2
    assert f"wakeful model add ollama qwen3:8b --address {local.origin}" in done.stderr


async def test_a_provider_without_a_model_is_answered_with_its_models(terminal, local):
    refused = await run(terminal, "add", "ollama", "--address", local.origin)
    assert refused.returncode == 2
    assert "wakeful model add ollama MODEL" in refused.stderr
    assert "Ollama has: qwen3:8b" in refused.stderr


async def test_a_misspelt_provider_is_refused_before_a_model_is_asked_for(terminal):
    refused = await run(terminal, "add", "llama.cpp")
    assert refused.returncode == 1
    assert "There is no provider 'llama.cpp'; the nearest is 'llamacpp'." in refused.stderr
    assert "Which model" not in refused.stderr


async def test_a_model_with_a_key_from_stdin_is_added_edited_and_removed(terminal, tmp_path):
    async with OpenAIServer(refuse(401, "Wrong key."), routes={"GET /v1/models": listing("m")}) as endpoint:
        code, shown = await type_in(
            terminal, "sk-typed-key\n", "add", "openai-chat", "m", "--key", "--address", endpoint.base_url
        )
        assert code == 0, shown
        assert "sk-typed-key" not in shown
        assert endpoint.lookups[0].headers["authorization"] == "Bearer sk-typed-key"
        tested = await run(terminal, "test", "m")
        assert tested.returncode == 1
        assert "The model 'm' gave no answer: Wrong key. (HTTP 401)" in tested.stderr
        async with OpenAIServer(routes={"GET /v1/models": listing("m")}) as other:
            changed = await run(terminal, "edit", "m", "--address", other.base_url)
            assert "The key was dropped" in changed.stderr
        assert (await run(terminal, "rm", "m")).stdout == "Removed.\n"


async def test_a_default_that_was_removed_is_named_everywhere_with_the_next_step(terminal):
    await run(terminal, "add", "vllm", "x", "--name", "gone", "--no-check", "--default")
    assert (await run(terminal, "rm", "gone", "--force")).returncode == 0
    advice = "gone was removed: runs of agents without a model of their own fail. Choose another one"
    assert advice in (await run(terminal, "ls")).stderr
    shown = await run(terminal, "default")
    assert (shown.stdout, advice in shown.stderr) == ("gone\n", True)
    status, asked, doctor = [
        await asyncio.to_thread(terminal.run, *command) for command in (["status"], ["ask", "Hi"], ["doctor"])
    ]
    assert "gone, which was REMOVED: choose another one with `wakeful model default NAME`" in status.stdout
    assert "The default model 'gone' was removed." in asked.stderr
    assert "`wakeful model default NAME`" in asked.stderr
    assert re.search(r"WRONG model: The default model 'gone' was removed\n +→ .*`wakeful model default", doctor.stdout)
    assert (await run(terminal, "default", "--unset")).returncode == 0
    assert "REMOVED" not in (await asyncio.to_thread(terminal.run, "status")).stdout


@pytest.fixture(scope="module")
async def known(terminal):
    """A model that is there."""
    added = await run(terminal, "add", "vllm", "x", "--name", "known", "--no-check", "--no-default")
    assert added.returncode == 0, added.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "olama", "x"], "the nearest is 'ollama'"),
        (["default", "knwon"], "did you mean 'known'?"),
        (["rm", "nobody"], "There is no model named 'nobody'."),
        (["edit", "known"], "Nothing to change"),
        (["add", "ollama", "x", "--address", "http://127.0.0.1:1"], "cannot be reached"),
    ],
)
async def test_refusals_name_the_value_and_the_next_step(terminal, known, arguments, words):
    done = await run(terminal, *arguments)
    assert done.returncode != 0
    assert words in done.stderr
