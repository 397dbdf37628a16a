"""Servers whose sessions get their titles without the script of a test."""

import pytest

from openai_server import say


def answer_titles_apart(provider):
    """Answer requests for the title of a session apart from the script, and do not record them."""
    if hasattr(provider, "next_scripted"):
        return
    provider.next_scripted = provider.next_answer

    def next_answer():
        asked = provider.requests[-1].body["messages"][0]["content"]
        if isinstance(asked, str) and asked.startswith("Name this conversation"):
            provider.requests.pop()
            return say("A title")
        return provider.next_scripted()

    provider.next_answer = next_answer


@pytest.fixture
async def server(sqlite_server):
    """Most of these tests do not depend on the store; those that do define their own."""
    answer_titles_apart(sqlite_server.provider)
    async with sqlite_server.as_new_owner() as server:
        yield server


@pytest.fixture
async def stored_server(shared_server):
    """A server on each backend."""
    answer_titles_apart(shared_server.provider)
    async with shared_server.as_new_owner() as server:
        yield server
