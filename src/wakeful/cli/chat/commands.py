"""`wakeful chat`, a conversation with an agent in the terminal, and `wakeful ask`, one message and its answer."""

import asyncio
import os
import signal
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wakeful.cli.arguments import read_seconds
from wakeful.cli.nouns import find_session_id
from wakeful.cli.output import WRONG, AsJson, Failed, echo, fail, in_words, printable, show_json
from wakeful.cli.server import Server, connect

if TYPE_CHECKING:
    from wakeful.cli.chat.conversation import Conversation
    from wakeful.cli.chat.prompt import PromptScreen
    from wakeful.cli.chat.screen import PlainScreen

# Exit codes of commands that wait for a run. docs/cli.md lists them.
FAILED, STOPPED, TIMED_OUT, INTERRUPTED, NEEDS_APPROVAL = 1, 4, 5, 6, 7
CTRL_C = 130
BY_STATUS = {"success": 0, "failed": FAILED, "stopped": STOPPED, "interrupted": INTERRUPTED, "skipped": FAILED}
BY_FRAME = {"stream_end": 0, "stream_stopped": STOPPED, "error": FAILED}
_SHOWN = 10
_STOP_SECONDS = 3.0  # a run ends within two after a request to stop


def chat(
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="An agent, by id or name; without it, your first one.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Continue this session, by id or the beginning of it.")] = None,
    is_continued: Annotated[
        bool, typer.Option("--continue", "-c", help="Continue the latest session, of AGENT if it is given.")
    ] = False,
    history: Annotated[
        int, typer.Option(help="How many messages of a continued session to show.", min=0, max=10_000)
    ] = _SHOWN,
) -> None:
    """Talk to an agent. /help in the chat lists its commands; Ctrl-C stops the agent, Ctrl-D leaves."""
    if session is not None and is_continued:
        fail("Give --session or --continue, not both.", WRONG)
    server = connect()
    session_id = find_session_id(server, session)
    if is_continued:
        session_id = _latest(server, server.agent_id(agent))
    chosen = _choose(server, agent)
    server.shows_progress = False  # a conversation has a status line of its own
    raise typer.Exit(asyncio.run(_talk(server, chosen, session_id, history)))


def ask(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message; - reads it from standard input.")],
    agent: Annotated[str | None, typer.Option(help="The agent, by id or name; without it, your first one.")] = None,
    session: Annotated[
        str | None, typer.Option(help="Its session, by id or the beginning of it; without it, a new one.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Stop the run after this long, such as 90s or 5m, and exit with 5.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send one message to an agent and print its answer. The exit code says how the run ended.

    0: it succeeded. 1: it failed, or the server refused. 2: wrong usage. 3: no server answers. 4: it was stopped.
    5: --timeout ended it. 6: it was interrupted. 7: a tool call waits for approval, and there is no terminal to ask on.
    """
    seconds = None if timeout is None else read_seconds(timeout, "--timeout")
    content = sys.stdin.read() if text == "-" else text
    if not content.strip():
        fail("The message is empty.", WRONG)
    server = connect()
    session_id = find_session_id(server, session)
    if session_id is not None and agent is not None:
        fail("--agent is for a new session; the agent of --session answers there.", WRONG)
    chosen = server.agent(server.first_agent_id() if agent is None else agent)
    server.shows_progress = False
    raise typer.Exit(asyncio.run(_ask(server, chosen, session_id, content, seconds, as_json)))


def _latest(server: Server, agent_id: str | None) -> str:
    found = server.get("sessions", agent_id=agent_id, limit=1)["sessions"]
    return found[0]["id"] if found else fail("There is no session to continue. `wakeful chat` begins one.")


def _choose(server: Server, agent: str | None) -> dict[str, Any]:
    return server.agent(server.first_agent_id() if agent is None else agent)


async def _talk(server: Server, agent: dict[str, Any], session_id: str | None, history: int) -> int:
    from wakeful.cli.chat.conversation import Conversation

    interrupts = Interrupts()
    console = _open_console(interrupts)
    conversation = interrupts.conversation = Conversation(server, console, agent)
    if session_id is not None:
        await conversation.open_session(session_id, history)
    conversation.view.note(f"{conversation.agent['name']} · {session_id or 'a new session'} · /help lists commands")
    async with aclosing(console.lines(conversation.is_ready)) as lines:
        async for line in lines:
            if not await _handle_line(conversation, line):
                break
    await conversation.leave_session()
    if conversation.failure is not None:
        return conversation.failure.exit_code
    if sys.stdin.isatty() or conversation.last_end is None:
        return CTRL_C if interrupts.has_left and not sys.stdin.isatty() else 0
    return BY_FRAME.get(conversation.last_end["type"], 0)


def _open_console(interrupts: "Interrupts") -> "PlainScreen | PromptScreen":
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from wakeful.cli.chat.prompt import PromptScreen
        from wakeful.cli.chat.slash_commands import COMMANDS

        return PromptScreen([f"/{name}" for name in COMMANDS], interrupts.decide)
    from wakeful.cli.chat.screen import PlainScreen

    console = PlainScreen()

    def interrupt() -> None:
        if interrupts.decide(False) == "leave":
            console.close()

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    return console


async def _handle_line(conversation: "Conversation", line: str) -> bool:
    """Do what a line says; return whether the chat goes on."""
    from wakeful.cli.chat.slash_commands import Leave, run_command

    try:
        if conversation.approval is not None:
            conversation.console.echo(line)
            await conversation.answer(line)
        elif line.startswith("/") and not line.startswith("//"):
            conversation.console.echo(line)
            await run_command(conversation, line)
        elif line.strip():
            await conversation.send(line.removeprefix("/") if line.startswith("//") else line)
    except Leave:
        return False
    except Failed as error:
        conversation.view.problem(error.message)
    return True


async def _ask(
    server: Server, agent: dict[str, Any], session_id: str | None, content: str, seconds: int | None, as_json: bool
) -> int:
    from wakeful.cli.chat.conversation import Conversation
    from wakeful.cli.chat.screen import PlainScreen

    is_streamed = sys.stdout.isatty() and not as_json
    screen = PlainScreen(streams_answers=is_streamed)
    conversation = Conversation(server, screen, agent)
    code: int | None
    try:
        async with asyncio.timeout(seconds):
            if session_id is not None:
                await conversation.open_session(session_id, 0)
            code = await _run(conversation, screen, content)
    except TimeoutError:
        await conversation.stop()
        await asyncio.wait((asyncio.ensure_future(conversation.is_over.wait()),), timeout=_STOP_SECONDS)
        screen.line(f"No answer within {seconds} s.")
        code = TIMED_OUT
    ended = await _finish(conversation, as_json=as_json, is_streamed=is_streamed)
    screen.end_line()
    if code is not None:
        return code
    return FAILED if ended is None else BY_STATUS.get(ended["status"], FAILED)


async def _run(conversation: "Conversation", screen: "PlainScreen", content: str) -> int | None:
    """Send the message and wait for the end of its run; return an exit code if there is a reason not to."""
    leaving = asyncio.Event()
    tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(leaving.wait())]

    def interrupt() -> None:
        if conversation.is_stopping or not conversation.is_busy:
            leaving.set()
            return
        screen.line("Stopping. Ctrl-C again leaves.")
        conversation.is_stopping = True
        tasks.append(asyncio.ensure_future(conversation.stop()))

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    await conversation.send(content)
    over = asyncio.ensure_future(conversation.is_over.wait())
    answering = asyncio.ensure_future(_answer(conversation, screen))
    try:
        while not over.done() and not leaving.is_set():
            await asyncio.wait((over, answering, tasks[0]), return_when=asyncio.FIRST_COMPLETED)
            if answering.done() and not over.done() and not leaving.is_set():
                return answering.result()
    finally:
        for task in (over, answering, *tasks):
            task.cancel()
    if conversation.failure is not None:
        raise conversation.failure
    return CTRL_C if leaving.is_set() else None


async def _answer(conversation: "Conversation", screen: "PlainScreen") -> int:
    """Ask about each call that needs approval; return an exit code if there is no terminal to ask on."""
    while True:
        await conversation.is_ready.wait()
        asked = conversation.approval
        if asked is None:
            await conversation.is_over.wait()
            await asyncio.Event().wait()  # nothing is left to answer; the caller sees that the run is over
        elif not sys.stdin.isatty():
            screen.line(f"It waits for your answer. Give it with: wakeful chat --session {conversation.session_id}")
            return NEEDS_APPROVAL
        else:
            await conversation.answer(await screen.read_line() or "n")


async def _finish(conversation: "Conversation", *, as_json: bool, is_streamed: bool) -> dict[str, Any] | None:
    """Print the answer, if it was not streamed, and return the run."""
    run_id, end = conversation.run_id, conversation.last_end
    await conversation.leave_session()
    if run_id is None:
        return None
    run: dict[str, Any] = await conversation.do(lambda server: server.get("runs", run_id))
    answer = end["content"] if end is not None and end["type"] == "stream_end" else None
    if as_json:
        show_json({"answer": answer, "session_id": run["session_id"], "run": run})
    elif answer is not None and not is_streamed:
        echo(printable(answer))
    if run["note"] is not None:
        conversation.view.note(f"The run ended with a note: {in_words(run['note'])}.")
    return run


class Interrupts:
    """Decides what Ctrl-C does: the first one stops the run, the next one leaves."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None
        self.has_left = False
        self._stopping: asyncio.Task[None] | None = None

    def decide(self, has_text: bool) -> Literal["stop", "clear", "leave"]:
        """Return what happens; a run is stopped in the background."""
        conversation = self.conversation
        if conversation is not None and conversation.is_busy and not conversation.is_stopping:
            conversation.is_stopping = True
            conversation.console.hint("Stopping. Ctrl-C again leaves.")
            self._stopping = asyncio.ensure_future(self._stop(conversation))
            return "stop"
        if has_text:
            return "clear"
        self.has_left = True
        return "leave"

    async def _stop(self, conversation: "Conversation") -> None:
        try:
            await conversation.stop()
        except Failed as error:
            conversation.view.problem(error.message)
            conversation.is_stopping = False
