"""`wakeful ask`: one message to an agent, and its answer."""

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.cli.arguments.durations import read_seconds
from wakeful.cli.arguments.ids import find_session_id
from wakeful.cli.chat.outcomes import BY_STATUS, CTRL_C, FAILED, NEEDS_APPROVAL, TIMED_OUT
from wakeful.cli.client import Server, connect
from wakeful.cli.fail import WRONG, fail
from wakeful.cli.printable import echo
from wakeful.cli.show import AsJson, in_words, printable, show_json

if TYPE_CHECKING:
    from wakeful.cli.chat.conversation import Conversation
    from wakeful.cli.chat.plain import PlainScreen

_STOP_SECONDS = 3.0  # a run ends within two after a request to stop


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


async def _ask(
    server: Server, agent: dict[str, Any], session_id: str | None, content: str, seconds: int | None, as_json: bool
) -> int:
    from wakeful.cli.chat.conversation import Conversation
    from wakeful.cli.chat.plain import PlainScreen

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
