"""`wakeful session …`, and `wakeful search`, which finds messages and sessions by their words."""

from pathlib import Path
from typing import Annotated

import typer

from wakeful.cli.nouns import SESSION, NounCommands, find_id
from wakeful.cli.output import (
    AsJson,
    Limit,
    OutputZone,
    PageOption,
    echo,
    fail,
    harmless,
    print_note,
    show_done,
    show_json,
    show_list,
    show_time,
)
from wakeful.cli.server import Server, connect

app = NounCommands(SESSION)

SessionId = Annotated[str, SESSION.argument]


@app.command(name="ls")
def list_sessions(
    search: Annotated[str | None, typer.Option(help="Only those with these words in the title.")] = None,
    agent: Annotated[str | None, typer.Option(help="Only this agent's, by id or name.")] = None,
    booked: Annotated[bool, typer.Option("--booked", help="Only those with a pending recall.")] = False,
    limit: Limit = 50,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, the latest first."""
    server = connect()
    found = server.get(
        "sessions", q=search, agent_id=server.agent_id(agent), has_recall=booked or None, limit=limit, page=page
    )
    names = {each["id"]: each["name"] for each in server.get("agents")["agents"]}
    rows = [
        {
            **each,
            "agent": names.get(each["agent_id"], "(deleted)"),
            "status": "running" if each["is_running"] else "failed" if each["is_failed"] else None,
            "recall_at": each["recall"] and each["recall"]["trigger_at"],
            "title": each["title"] or "(untitled)",
        }
        for each in found["sessions"]
    ]
    columns = ("id", "updated_at", "agent", "status", "recall_at", "title")
    show_list(found, rows, columns, empty="No sessions. `wakeful chat` begins one.", as_json=as_json)


@app.command()
def show(
    session: SessionId,
    last: Annotated[int | None, typer.Option(help="Only this number of messages, from the end.", min=1)] = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """Print the messages of a session."""
    from wakeful.cli.chat.screen import PlainScreen, View

    server = connect()
    found = server.get("sessions", find_id(server, SESSION, session))
    if as_json:
        show_json(found)
        return
    names = {each["id"]: each["name"] for each in server.get("agents")["agents"]}
    agent = names.get(found["agent_id"], "a deleted agent")
    echo(f"{harmless(found['title'] or '(untitled)')} · {harmless(agent)} · {show_time(found['created_at'])}")
    view = View(PlainScreen(has_notes_on_stdout=True))
    for message in found["messages"][-last if last else 0 :]:
        view.show_message(message)
    if not found["messages"]:
        echo("It has no messages yet.")


@app.command()
def export(
    session: SessionId,
    to: Annotated[Path | None, typer.Option(help="The file to write; without it, the terminal.")] = None,
) -> None:
    """Export a session as Markdown."""
    server = connect()
    text = server.get_text("sessions", find_id(server, SESSION, session), "export.md")
    if to is None:
        echo(text, nl=False)
        return
    try:
        to.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        fail(f"The file {str(to)!r} cannot be written: {error.strerror}.")
    echo(f"Exported to {to}.")


@app.command()
def rename(
    session: SessionId, title: Annotated[str, typer.Argument(help="Its new title.")], as_json: AsJson = False
) -> None:
    """Rename a session."""
    server = connect()
    changed = server.patch("sessions", find_id(server, SESSION, session), body={"title": title})
    show_done(changed, f"Renamed to {harmless(changed['title'])}.", as_json)


def _ask_about_session(server: Server, session_id: str, _name: str) -> str:
    found = server.get("sessions", session_id)
    return (
        f"Its {len(found['messages'])} messages are deleted and its wakes are cancelled. This cannot be undone.\n"
        f"Delete the session {harmless(found['title'] or '(untitled)')}?"
    )


app.rm("Delete a session: its run is stopped and its wakes are cancelled.", question=_ask_about_session)


def search(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORDS", help='Words that must all occur; put a "quoted phrase" in single quotes.'),
    ],
    limit: Limit = 20,
    page: PageOption = None,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """Search your messages and session titles, the latest first.

    Case, accents and punctuation do not matter. A word of three letters or more is found anywhere in a word, a shorter
    one at its beginning. Results of tools are not searched.
    """
    found = connect().get("search", q=" ".join(words), limit=limit, page=page)
    rows = [{**each, "from": each["role"] or "title", "text": each["snippet"]} for each in found["results"]]
    columns = ("session_id", "created_at", "from", "text")
    show_list(found, rows, columns, empty="Nothing found.", as_json=as_json)
    if not found["index"]["is_complete"]:
        print_note(
            f"The search index is being built: {found['index']['percent']} %. Older messages are not all found yet."
        )
