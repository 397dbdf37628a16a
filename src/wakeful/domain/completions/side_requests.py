"""Side requests: chat pages ask the model of a conversation for its title, tags and follow-ups, in a chat of its own.

They come like any message, and would fill an agent's sessions with them. They are recognised by what the chat pages
write into them.
"""

from wakeful.domain.completions.request import CompletionRequest
from wakeful.domain.errors import Forbidden, LimitReached

# All marks of one line occur in the message, which is the only one. Open WebUI's prompt for documents also begins with
# "### Task:", and is a person's question, so that mark is not enough.
_MARKS = (
    ("### task:", "<chat_history>", "</chat_history>"),  # Open WebUI: title, tags, follow-ups, searches, completion
    ("reflect the speaker's likely facial expression",),  # Open WebUI: an emoji
    ("a set of responses from various models to the latest user query",),  # Open WebUI: merged answers
    ("5-word-or-less title for the conversation",),  # LibreChat
    ("analyze this conversation and provide", "concise title in the detected language"),  # LibreChat
)

MAX_AT_ONCE = 4  # of one token on one node; a chat page asks for three after a message
_RETRY_AFTER = 5  # seconds


class SideRequestsOff(Forbidden):
    code = "side_requests_off"

    def __init__(self) -> None:
        super().__init__(
            "This looks like a request of a chat page for a title, tags or follow-ups, and the server's setting "
            "v1_side_requests refuses them. Choose another model for such tasks in the chat page, or set it to "
            "'answer'."
        )


class TooManySideRequests(LimitReached):
    code = "too_many_side_requests"

    def __init__(self) -> None:
        super().__init__(
            f"{MAX_AT_ONCE} requests of this token for titles, tags or follow-ups are being answered, which is the "
            f"limit. Try again in {_RETRY_AFTER} s.",
            seconds=_RETRY_AFTER,
        )


class BudgetUsedUp(LimitReached):
    code = "insufficient_quota"

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"The budget of the agent {agent!r} for today is used up, so its model was not asked. Raise the budget, or "
            "wait until tomorrow."
        )


def is_side_request(request: CompletionRequest) -> bool:
    """Return whether a chat page asks for something about a conversation, and no person asks the agent."""
    if request.history:
        return False
    text = f"{request.system}\n{request.last.text}".lower()
    return any(all(mark in text for mark in marks) for marks in _MARKS)
