"""The toolset `notify`: send the agent's user a notification."""

from pydantic import Field

from wakeful.core.zones import write_time
from wakeful.outgoing.notify import Notified, Notify
from wakeful.outgoing.rules import Result
from wakeful.store.outgoing import Addressed
from wakeful.toolbox.registry import Arguments, Tool, ToolContext, ToolDeps, ToolResult, tool


class NotifyUser(Arguments):
    title: str = Field(description="One line that says what it is about.")
    body: str = Field(description="What your user should know, short enough to read at a glance.")
    view_ref: str | None = Field(None, description="The name of a saved view of your database that shows more.")


def notify_tools(deps: ToolDeps) -> list[Tool]:
    service = deps[Notify]

    async def notify(context: ToolContext, asked: NotifyUser) -> ToolResult:
        sent = await service.send(context.run, context.agent, asked.title, asked.body, asked.view_ref)
        at = write_time(sent.notice.created_at, context.agent.zone)
        if not sent.is_new:
            text = f"inbox: not saved again, because the same title and body are there since {at}. Nothing was sent."
            outcomes = {"inbox": "duplicate"}
        else:
            pages = "1 page is" if sent.open_pages == 1 else f"{sent.open_pages or 'no'} pages are"
            text = f"inbox: saved at {at}. browser: {pages} open here. {_channels(sent)} "
            text += f"Whether it was read is not known. Notification id: {sent.notice.id}."
            outcomes = {"inbox": "saved", "browser": f"{sent.open_pages} open"}
            outcomes |= {_name(each): sent.results[each.message.id].outcome for each in sent.told}
        return ToolResult(text=text, metadata={"channels": outcomes, "notification_id": sent.notice.id})

    text = (
        "Send your user a notification, which reaches them outside this session too: in their inbox, on open pages and "
        "over the channels they set up. For what they must know or decide, not for progress. The same text is sent "
        "once an hour at most, and there is a limit. The answer says what each channel did."
    )
    return [tool("notify", notify, NotifyUser, text)]


def _channels(sent: Notified) -> str:
    if sent.is_muted:
        return "Channels: nothing was sent, because your user muted the wake of this run."
    if not sent.told:
        return "Channels: none is set up."
    return " ".join(_explain(each, sent.results[each.message.id]) for each in sent.told)


def _explain(told: Addressed, result: Result) -> str:
    reason = f" ({result.reason})" if result.reason else ""
    return f"{told.message.kind} {told.name!r}: {_OUTCOMES[result.outcome]}{reason}."


def _name(told: Addressed) -> str:
    return told.name if told.message.kind == "channel" else f"push {told.name}"


_OUTCOMES = {
    "sent": "sent",
    "handed_over": "handed to the push service",
    "gone": "not sent",
    "failed": "failed",
    "timed_out": "timed out",
    "rate_limited": "rate-limited, not sent",
    "cancelled": "not sent",
    "dropped": "not sent",
}
