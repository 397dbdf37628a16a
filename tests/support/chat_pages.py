"""Requests in the form in which Open WebUI and LibreChat send them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPEN_WEBUI_HEADERS = {  # with ENABLE_FORWARD_USER_INFO_HEADERS
    "X-OpenWebUI-User-Name": "Ada",
    "X-OpenWebUI-User-Id": "5f1c2a30-0000-4000-8000-000000000001",
    "X-OpenWebUI-User-Role": "admin",
}


@dataclass(frozen=True)
class Recorded:
    """A request that Open WebUI sent, and the answer that it got and shows in the next ones."""

    step: str
    headers: dict[str, str]
    body: dict[str, Any]
    answer: str

    @property
    def is_aside(self) -> bool:
        return self.step.startswith("aside")


def recorded_in_open_webui() -> Iterator[Recorded]:
    """Yield the requests that Open WebUI 0.12.4 sent while it was driven as its page does, in their order.

    Ids are replaced; the schemas of its tools and the texts of its tasks are shortened.
    """
    kept = json.loads((Path(__file__).parents[1] / "data" / "open_webui.json").read_text())
    for each in kept["requests"]:
        if "tools" in each["body"]:
            each["body"]["tools"] = kept["tools"]
        yield Recorded(**each)


def open_webui_chat(*messages: dict[str, Any], chat: str | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return body and headers of a message: streamed, with the usage, and the sampling parameters that are set."""
    body = {
        "stream": True,
        "model": "Wakeful",
        "messages": list(messages),
        "stream_options": {"include_usage": True},
        "temperature": 0.7,
    }
    return body, OPEN_WEBUI_HEADERS | ({} if chat is None else {"X-OpenWebUI-Chat-Id": chat})


def open_webui_task(what: str, chat: str | None = None) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request about a chat, with its history in the text: for a title, tags, or follow-ups."""
    text = (
        f"### Task:\n{what}\n\n### Guidelines:\n- Be short.\n\n### Output:\nJSON alone.\n\n"
        "### Chat History:\n<chat_history>\nUSER: Hi\nASSISTANT: Hello\n</chat_history>"
    )
    body = {
        "model": "Wakeful",
        "messages": [{"role": "user", "content": text}],
        "stream": False,
        "max_completion_tokens": 1000,
    }
    return body, OPEN_WEBUI_HEADERS | ({} if chat is None else {"X-OpenWebUI-Chat-Id": chat})


def open_webui_with_documents(question: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a person's question with excerpts of documents: it begins like a task, and is none."""
    text = (
        "### Task:\nAnswer the question from the context below, and cite it.\n\n"
        f'<context>\n<source id="1">Tea is ready at five.</source>\n</context>\n\n{question}'
    )
    return open_webui_chat({"role": "user", "content": text})


def librechat_chat(
    *messages: dict[str, Any], conversation: str | None = None, person: str | None = "665f1c2a0000000000000001"
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return body and headers of a message. Before the first answer the conversation has no id."""
    body = {
        "model": "Wakeful",
        **({} if person is None else {"user": person}),
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": list(messages),
    }
    return body, {"X-Conversation-Id": conversation or "new"}


def librechat_title(conversation: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a request for a title, with `titleMethod: completion`."""
    text = (
        "Provide a concise, 5-word-or-less title for the conversation. Return the title alone.\n\n"
        "Conversation:\nUser: Hi\nAI: Hello"
    )
    body = {"model": "Wakeful", "stream": False, "messages": [{"role": "user", "content": text}]}
    return body, {"X-Conversation-Id": conversation}
