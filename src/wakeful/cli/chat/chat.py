"""`wakeful chat`: a conversation with an agent in the terminal."""

import asyncio
import os
import signal
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wakeful.cli.arguments.ids import find_session_id
from wakeful.cli.chat.outcomes import BY_FRAME, CTRL_C
from wakeful.cli.client import Server, connect
from wakeful.cli.fail import WRONG, Failed, fail

if TYPE_CHECKING:
    from wakeful.cli.chat.conversation import Conversation
    from wakeful.cli.chat.plain import PlainScreen
    from wakeful.cli.chat.prompt import PromptScreen

_SHOWN = 10


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
            if not await _take(conversation, line):
                break
    await conversation.leave_session()
    if conversation.failure is not None:
        return conversation.failure.exit_code
    if sys.stdin.isatty() or conversation.last_end is None:
        return CTRL_C if interrupts.has_left and not sys.stdin.isatty() else 0
    return BY_FRAME.get(conversation.last_end["type"], 0)


def _open_console(interrupts: "Interrupts") -> "PlainScreen | PromptScreen":
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        from wakeful.cli.chat.commands import COMMANDS
        from wakeful.cli.chat.prompt import PromptScreen

        return PromptScreen([f"/{name}" for name in COMMANDS], interrupts.take)
    from wakeful.cli.chat.plain import PlainScreen

    console = PlainScreen()

    def interrupt() -> None:
        if interrupts.take(False) == "leave":
            console.close()

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
    return console


async def _take(conversation: "Conversation", line: str) -> bool:
    """Do what a line says; return whether the chat goes on."""
    from wakeful.cli.chat.commands import Leave, run_command

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


class Interrupts:
    """Decides what Ctrl-C does: the first one stops the run, the next one leaves."""

    def __init__(self) -> None:
        self.conversation: Conversation | None = None
        self.has_left = False
        self._stopping: asyncio.Task[None] | None = None

    def take(self, has_text: bool) -> Literal["stop", "clear", "leave"]:
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
