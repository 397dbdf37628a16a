"""Word from an agent to its user, who may not be there."""

from pydantic import Field

from wakeful.service.notify import Notify
from wakeful.tools.registry import Arguments, Tool, ToolContext, ToolResult

_ELSEWHERE = "No other channel is configured, and whether it was read is not known."


class NotifyUser(Arguments):
    title: str = Field(description="One line that says what it is about.")
    body: str = Field(description="What your user should know, short enough to read at a glance.")
    view_ref: str | None = Field(None, description="The name of a saved view of your database that shows more.")


def notify_tools(service: Notify) -> list[Tool]:
    """Make the tool of the toolset `notify`."""

    async def notify(context: ToolContext, asked: NotifyUser) -> ToolResult:
        told = await service.tell(context.run, context.agent, asked.title, asked.body, asked.view_ref)
        at = f"{told.notice.created_at:%Y-%m-%d %H:%M:%S} UTC"
        if told.is_new:
            text = f"inbox: saved at {at}. {_ELSEWHERE} Notification id: {told.notice.id}."
        else:
            text = f"inbox: not told again, because the same title and body are there since {at}. {_ELSEWHERE}"
        return ToolResult(
            text=text,
            metadata={
                "channels": {"inbox": "saved" if told.is_new else "duplicate"},
                "notification_id": told.notice.id,
            },
        )

    return [
        Tool(
            name="notify",
            toolset="notify",
            description=(
                "Tell your user something while nobody is present, by a notification in their inbox. For what they "
                "must know or decide, not for progress. The same words are told once an hour, and there is a limit."
            ),
            arguments=NotifyUser,
            act=notify,
        )
    ]
