"""`wakeful inbox`: notifications, and what can be done about them."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Annotated, Any

import typer

from wakeful.cli.arguments import Yes, confirm
from wakeful.cli.nouns import Commands, Noun, find_id
from wakeful.cli.output import (
    WRONG,
    AsJson,
    Limit,
    OutputZone,
    call_lines,
    echo,
    fail,
    show_done,
    show_json,
    show_list,
    show_one,
)
from wakeful.cli.server import Server, connect
from wakeful.cli.zone import send_zone

NOTIFICATION = Noun(
    name="notification",
    label=itemgetter("title"),
    shown_by="wakeful inbox ls",
    limit=200,
    is_named=False,
)
app = Commands(runs_alone=True)

NoticeId = Annotated[
    str,
    typer.Argument(metavar="ID", help="A notification, by id or the beginning of it; `wakeful inbox ls` shows ids."),
]
_MAX = 200
_COMMANDS = {"loop_ended": ["run", "book"], "wake_failed": ["run"], "interrupted": ["continue"]}


@app.callback()
def inbox(context: typer.Context) -> None:
    """Read notifications, and act on them. Without a command: list those that are unread."""
    if context.invoked_subcommand is None:
        list_notices()


@app.command(name="ls")
def list_notices(
    every: Annotated[bool, typer.Option("--all", help="Also those that were read.")] = False,
    limit: Limit = 50,
    _zone: OutputZone = None,
    as_json: AsJson = False,
) -> None:
    """List notifications that are unread, the latest first."""
    server = connect()
    found = server.get("notifications", limit=limit)
    shown = [each for each in found["notifications"] if every or each["read_at"] is None]
    rows = [{**each, "can": ", ".join(_actions(each)) or None} for each in shown]
    columns = ("id", "created_at", "can", "title")
    read = "Nothing is unread. `wakeful inbox ls --all` shows what was read."
    empty = read if found["notifications"] else "The inbox is empty."
    show_list({"notifications": shown}, rows, columns, empty=empty, as_json=as_json)


@app.command()
def show(notice: NoticeId, _zone: OutputZone = None, as_json: AsJson = False) -> None:
    """Show a notification, and the call that it asks about."""
    server = connect()
    found = _find(server, notice)
    asked = [_approval(server, found, action) for action in found["actions"]]
    if as_json:
        show_json({**found, "approvals": asked})
        return
    show_one({name: value for name, value in found.items() if name != "actions"})
    for each in asked:
        echo("")
        show_one({"tool": each["tool"], "status": each["status"]})
        echo("\n".join(call_lines(each)))
    for action in _actions(found):
        echo(f"wakeful inbox {action} {found['id']}")


@app.command()
def read(
    notice: Annotated[str | None, typer.Argument(metavar="[ID]", help="A notification; or give --all.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every notification.")] = False,
    as_json: AsJson = False,
) -> None:
    """Mark a notification as read, or all of them."""
    if (notice is None) == (not every):
        fail("Name a notification, or give --all.", WRONG)
    server = connect()
    path = () if notice is None else (find_id(server, NOTIFICATION, notice),)
    done = server.post("notifications", *path, "read")
    show_done(done, "Marked as read.", as_json)


@app.command()
def approve(notice: NoticeId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Approve the tool call that a wake's run did not make, and run the wake again with it.

    The whole call is shown first, and asked about unless --yes is given.
    """
    _answer(notice, approve=True, yes=yes, note=None, as_json=as_json)


@app.command()
def refuse(
    notice: NoticeId,
    note: Annotated[str | None, typer.Option(help="A reason, for the record.")] = None,
    as_json: AsJson = False,
) -> None:
    """Refuse the tool call that a wake's run did not make."""
    _answer(notice, approve=False, yes=True, note=note, as_json=as_json)


@app.command()
def run(notice: NoticeId, as_json: AsJson = False) -> None:
    """Run again what a notification is about: the wake of its run."""
    _act_on_run(notice, "run", "again", as_json)


@app.command(name="continue")
def go_on(notice: NoticeId, as_json: AsJson = False) -> None:
    """Continue an interrupted run from its last saved step."""
    _act_on_run(notice, "continue", "continue", as_json)


@app.command()
def book(
    notice: NoticeId,
    instructions: Annotated[str, typer.Argument(metavar="TEXT", help="What the agent reads when it wakes.")],
    when: Annotated[str, typer.Option(help="30m, 'tomorrow at 09:00' or ISO 8601.")],
    as_json: AsJson = False,
) -> None:
    """Book the next run of an agent that has none."""
    server = connect()
    found = _find(server, notice)
    _check(found, "book")
    send_zone(server)
    # The server marks the notification as read: what it tells is no longer so.
    booked = server.put("agents", found["agent_id"], "next-run", body={"instructions": instructions, "when": when})
    show_done(booked, f"Booked: {booked['told']}. Wake {booked['next_run']['id']}.", as_json)


def _actions(notice: Mapping[str, Any]) -> list[str]:
    """Return the commands that go with a notification, as the buttons of the web page do."""
    if notice["actions"]:
        return ["approve", "refuse"]
    return _COMMANDS.get(notice["code"], [])


def _check(notice: Mapping[str, Any], action: str) -> None:
    possible = _actions(notice)
    if action not in possible:
        known = f"Possible is: {', '.join(possible)}." if possible else "There is nothing to do about it."
        fail(f"`{action}` does not go with {notice['title']!r}. {known}")


def _find(server: Server, wanted: str) -> dict[str, Any]:
    notice_id = find_id(server, NOTIFICATION, wanted)
    listed = server.get("notifications", limit=_MAX)["notifications"]
    for each in listed:
        if each["id"] == notice_id:
            return each
    return fail(f"There is no notification {wanted!r} among the latest {_MAX}.")


def _mark_read(server: Server, notice: Mapping[str, Any]) -> None:
    if notice["read_at"] is None:
        server.post("notifications", notice["id"], "read")


def _approval(server: Server, notice: Mapping[str, Any], action: Mapping[str, Any]) -> dict[str, Any]:
    """Return the call that a notification asks about."""
    from urllib.parse import unquote

    call_id = unquote(action["path"].rpartition("/")[2])
    found = server.get("runs", notice["run_id"], "approvals")["approvals"]
    return next(each for each in found if each["call_id"] == call_id)


def _answer(wanted: str, *, approve: bool, yes: bool, note: str | None, as_json: bool) -> None:
    server = connect()
    notice = _find(server, wanted)
    _check(notice, "approve" if approve else "refuse")
    asked = _approval(server, notice, notice["actions"][0])
    if approve:
        echo("\n".join(call_lines(asked)), err=True)
        confirm("Approve it?", yes)
    path = ("runs", notice["run_id"], "approvals", asked["call_id"])
    done = server.post(*path, body={"approve": approve, "note": note})
    _mark_read(server, notice)
    again = f" It runs again: run {done['run_id']}." if done.get("run_id") else ""
    show_done(done, f"{'Approved' if approve else 'Refused'} {asked['tool']}.{again}", as_json)


def _act_on_run(wanted: str, action: str, route: str, as_json: bool) -> None:
    server = connect()
    notice = _find(server, wanted)
    _check(notice, action)
    begun = server.post("runs", notice["run_id"], route)
    _mark_read(server, notice)
    show_done(begun, f"Run {begun['id']} is {begun['status']}.", as_json)
