"""The commands of a chat: lines that begin with a slash."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from wakeful.cli.chat.conversation import Conversation
from wakeful.cli.nouns import SESSION, WAKE, find_id
from wakeful.cli.output import fail, in_words, show_time

_LISTED = 10
_SHOWN = 10  # messages of a session that is continued


class Command(NamedTuple):
    """A command: its argument, its line in /help, and what it does."""

    argument: str
    help: str
    act: Callable[[Conversation, str], Awaitable[None]]


class Leave(Exception):
    """Leave the chat."""


async def run_command(conversation: Conversation, line: str) -> None:
    """Do what a line with a slash says. Raises Failed if it cannot be done, and Leave if the chat is over."""
    name, _, argument = line[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        fail(f"There is no command /{name}. /help lists them; to send such a text, begin it with two slashes.")
    await command.act(conversation, argument.strip())


async def _help(conversation: Conversation, _: str) -> None:
    width = max(len(f"{name} {each.argument}") for name, each in COMMANDS.items())
    for name, each in COMMANDS.items():
        conversation.view.note(f"/{f'{name} {each.argument}':<{width}}  {each.help}")
    conversation.view.note("Ctrl-C stops the run; again, or with nothing to stop, it leaves. Alt-Enter: a new line.")


async def _new(conversation: Conversation, _: str) -> None:
    await conversation.leave_session()
    conversation.view.note(f"A new session with {conversation.agent['name']} begins with your next message.")


async def _list_sessions(conversation: Conversation, _: str) -> None:
    found = await conversation.do(lambda server: server.get("sessions", limit=_LISTED))
    for each in found["sessions"]:
        mark = "*" if each["id"] == conversation.session_id else " "
        state = " (running)" if each["is_running"] else " (failed)" if each["is_failed"] else ""
        at = show_time(each["updated_at"], "%Y-%m-%d %H:%M")
        conversation.view.note(f"{mark} {each['id']}  {at}  {each['title'] or '(untitled)'}{state}")
    if not found["sessions"]:
        conversation.view.note("You have no sessions yet.")


async def _resume(conversation: Conversation, wanted: str) -> None:
    if not wanted:
        fail("/resume needs a session: its id, or the beginning of it. /sessions shows the latest.")
    session_id = await conversation.do(lambda server: find_id(server, SESSION, wanted))
    await conversation.open_session(session_id, _SHOWN)


async def _agent(conversation: Conversation, wanted: str) -> None:
    if not wanted:
        conversation.view.note(f"You are talking to {conversation.agent['name']} ({conversation.agent['id']}).")
        return
    chosen: dict[str, Any] = await conversation.do(lambda server: server.agent(wanted))
    session_id = conversation.session_id
    if session_id is not None:
        body = {"agent_id": chosen["id"]}
        await conversation.do(lambda server: server.patch("sessions", session_id, body=body))
    conversation.agent = chosen
    conversation.view.note(f"You are now talking to {chosen['name']}.")


async def _stop(conversation: Conversation, _: str) -> None:
    await conversation.stop()


async def _go_on(conversation: Conversation, _: str) -> None:
    session_id = conversation.session_id
    if session_id is None:
        fail("/continue needs a session. /resume ID opens one.")
    if conversation.is_busy:
        fail("The run has not ended. /stop stops it.")
    found = await conversation.do(lambda server: server.get("runs", session_id=session_id, limit=1))
    if not found["runs"]:
        fail("Nothing has run in this session yet.")
    await conversation.go_on(found["runs"][0]["id"])


async def _list_wakes(conversation: Conversation, _: str) -> None:
    found = await _wakes_here(conversation)
    for each in found:
        about = " ".join((each["comment"] or each["instructions"]).split())
        again = f" every {each['interval_seconds']} s" if each["interval_seconds"] else ""
        again = f" by {each['cron']!r}" if each["cron"] else again
        kind = in_words(each["kind"])
        conversation.view.note(f"{each['id']}  {show_time(each['nominal_at'])}{again}  {kind}: {about[:60]}")
    if not found:
        conversation.view.note("Nothing is booked in this session.")


async def _run_now(conversation: Conversation, wanted: str) -> None:
    if wanted:
        wake_id = await conversation.do(lambda server: find_id(server, WAKE, wanted))
    else:
        found = await _wakes_here(conversation)
        if len(found) != 1:
            fail(f"{len(found)} wakes are booked in this session. /recall shows them; give /run-now the id of one.")
        wake_id = found[0]["id"]
    await conversation.do(lambda server: server.post("wakes", wake_id, "run-now"))
    conversation.view.note("It runs as soon as the session is idle.")


async def _rename(conversation: Conversation, title: str) -> None:
    session_id = conversation.session_id
    if session_id is None or not title:
        fail("/rename needs a title, and a session that has begun.")
    await conversation.do(lambda server: server.patch("sessions", session_id, body={"title": title}))
    conversation.view.note(f"This session is now called {title}.")


async def _thinking(conversation: Conversation, _: str) -> None:
    view = conversation.view
    view.shows_thinking = not view.shows_thinking
    view.note("The agent's reasoning is shown." if view.shows_thinking else "The agent's reasoning is hidden.")
    if view.shows_thinking and view.last_thinking:
        view.show({"type": "turn_thinking", "thinking": view.last_thinking})


async def _quit(_conversation: Conversation, _: str) -> None:
    raise Leave


async def _wakes_here(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the live wakes of the session."""
    found = await conversation.do(lambda server: server.get("wakes", live=True, limit=200))
    here = conversation.session_id
    return [each for each in found["wakes"] if here is not None and each["session_id"] == here]


COMMANDS = {
    "help": Command("", "list the commands", _help),
    "new": Command("", "begin a new session with the same agent", _new),
    "sessions": Command("", "list your latest sessions", _list_sessions),
    "resume": Command("ID", "continue a session; the beginning of its id is enough", _resume),
    "agent": Command("[NAME]", "show the agent, or let another one continue this session", _agent),
    "stop": Command("", "stop the run, as Ctrl-C does", _stop),
    "continue": Command("", "continue the last run, if it failed, was stopped or was interrupted", _go_on),
    "recall": Command("", "show what is booked in this session", _list_wakes),
    "run-now": Command("[ID]", "run what is booked here now", _run_now),
    "rename": Command("TITLE", "rename this session", _rename),
    "thinking": Command("", "show the agent's reasoning, or hide it again", _thinking),
    "quit": Command("", "leave; so does Ctrl-D", _quit),
}
