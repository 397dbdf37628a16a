"""A server whose sessions get their titles without the script of a test."""

import pytest

from openai_server import say


@pytest.fixture(autouse=True)
def titled(server, monkeypatch):
    """Answer requests for the title of a session apart from the script, and do not record them."""
    provider = server.provider
    next_answer = provider.next_answer

    def answer_title():
        asked = provider.requests[-1].body["messages"][0]["content"]
        if isinstance(asked, str) and asked.startswith("Name this conversation"):
            provider.requests.pop()
            return say("A title")
        return next_answer()

    monkeypatch.setattr(provider, "next_answer", answer_title)
