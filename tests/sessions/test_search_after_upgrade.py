"""Messages and titles of 0.2 are found after the upgrade, by their own user."""

import pytest

from harness import eventually

pytestmark = pytest.mark.upgrade


async def search(upgraded, q, **more):
    return (await upgraded.rest.get("/search", params={"q": q}, **more)).json()


async def test_what_0_2_wrote_is_found(upgraded, old):
    async def is_complete() -> bool:
        return (await search(upgraded, "garden"))["index"] == {"is_complete": True, "percent": 100}

    await eventually(is_complete, seconds=60)
    title = (await search(upgraded, "the GARDEN"))["results"][0]
    assert (title["session_id"], title["snippet"]) == (old.facts["session_id"], "The garden")
    session = (await upgraded.rest.get(f"/sessions/{old.facts['session_id']}")).json()
    expected = [
        message["id"]
        for message in session["messages"]
        if "plumber" in message["content"] and message["role"] in ("user", "assistant")
    ]
    found = [each for each in (await search(upgraded, "plumber"))["results"] if each["session_id"] == session["id"]]
    assert [each["message_id"] for each in found if each["message_id"]] == expected[::-1]
    assert expected
    theirs = {"Authorization": f"Bearer {old.facts['grace_token']}"}
    assert (await search(upgraded, "plumber", headers=theirs))["results"] == []
