"""Versions of a turn: a person edits their last message, or has it answered again. Earlier versions stay readable."""

from collections.abc import Sequence

from wakeful.domain.errors import Conflict, NotFound
from wakeful.domain.types import Message


class NoSuchMessage(NotFound):
    code = "no_such_message"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"There is no message {message_id!r} in this session. GET the session: its messages have their ids."
        )


class NotTheLastMessage(Conflict):
    code = "not_the_last_message"

    def __init__(self) -> None:
        super().__init__(
            "Only your last message can be edited or answered again, and only until a scheduled run follows it. Send a "
            "new message instead."
        )


class ReplacedByVersion(Conflict):
    code = "replaced_by_version"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"Run {run_id!r} belongs to an earlier version of the conversation, so it cannot be continued. Continue "
            "the run that replaced it, or send a new message."
        )


def current(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that are part of the conversation, without earlier versions."""
    return [message for message in messages if message.superseded_by is None]


def find_last_asked(messages: Sequence[Message], message_id: str) -> Message:
    """Return a person's last message, if this is it: only that one can be replaced."""
    asked = next((message for message in messages if message.id == message_id), None)
    if asked is None:
        raise NoSuchMessage(message_id)
    last = next((message for message in reversed(current(messages)) if message.role == "user"), None)
    if asked is not last or asked.wake_id is not None or asked.source is not None:
        raise NotTheLastMessage
    return asked
