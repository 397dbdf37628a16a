"""Word from an agent to its user, who may not be there."""

from pydantic import Field

from wakeful.service.inbox.channels import Deliveries
from wakeful.service.inbox.notify import Notify
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult


class NotifyUser(Arguments):
    title: str = Field(description="One line that says what it is about.")
    body: str = Field(description="What your user should know, short enough to read at a glance.")
    view_ref: str | None = Field(None, description="The name of a saved view of your database that shows more.")


def notify_tools(service: Notify) -> list[Tool]:
    """Make the tool of the toolset `notify`."""

    async def notify(context: ToolContext, asked: NotifyUser) -> ToolResult:
        told = await service.send(context.run, context.agent, asked.title, asked.body, asked.view_ref)
        at = f"{told.notice.created_at:%Y-%m-%d %H:%M:%S} UTC"
        if told.channels is None:
            text = f"inbox: not told again, because the same title and body are there since {at}. Nobody else was told."
            did = {"inbox": "duplicate"}
        else:
            text = f"inbox: saved at {at}. {_pages(told.open_pages)} {_channels(told.channels)} Whether it was read is "
            text += f"not known. Notification id: {told.notice.id}."
            did = {"inbox": "saved", "browser": f"{told.open_pages} open"}
            did |= {each.channel: each.outcome for each in told.channels.deliveries}
        return ToolResult(text=text, metadata={"channels": did, "notification_id": told.notice.id})

    return [
        Tool(
            name="notify",
            toolset="notify",
            description=(
                "Tell your user something while nobody is present: in their inbox, on open pages and over the channels "
                "they set up. For what they must know or decide, not for progress. The same words are told once an "
                "hour, and there is a limit. The answer says what each channel really did."
            ),
            arguments=NotifyUser,
            act=notify,
        )
    ]


def _pages(count: int) -> str:
    pages = "page is" if count == 1 else "pages are"
    return f"browser: {count or 'no'} {pages} open here."


def _channels(told: Deliveries) -> str:
    if told.is_muted:
        return "Channels: not told, because your user muted the wake of this run."
    if not told.deliveries:
        return "Channels: none is set up."
    lines = [f"channel {each.channel!r}: {_OUTCOMES[each.outcome]}" for each in told.deliveries]
    reasons = [f" ({each.reason})" if each.reason else "" for each in told.deliveries]
    return " ".join(f"{line}{reason}." for line, reason in zip(lines, reasons, strict=True))


_OUTCOMES = {"sent": "sent", "failed": "failed", "timed_out": "timed out", "rate_limited": "rate-limited, not sent"}
