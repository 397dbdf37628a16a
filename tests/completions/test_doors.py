"""Chat completions are recorded with their door and token, braked, and ask for approval only where a page is open."""

import openai
import pytest
from openai import AsyncOpenAI

from live_server import running_server
from openai_server import call, calls, say, usage


def user(content):
    return {"role": "user", "content": content}


async def test_a_person_sees_live_who_started_the_run(server):
    made = await server.call("POST", "/tokens", json={"name": "Open WebUI", "scope": "chat"})
    server.provider.then(say("Hello"))
    async with server.watch_events() as page:
        async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key=made["secret"]) as ai:
            await ai.chat.completions.create(model="Wakeful", messages=[user("Hi")])
        frames = await page.until("run_update")
    [run] = (await server.call("GET", "/runs"))["runs"]
    assert frames[-1]["run_id"] == run["id"]
    assert (run["door"], run["token_name"]) == ("v1", "Open WebUI")


async def test_another_persons_agents_and_sessions_are_not_there(server):
    mine = await server.session()
    [agent] = (await server.call("GET", "/agents"))["agents"]
    stranger = await server.add_user()
    server.provider.then(say("Hello"))
    async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key=stranger, max_retries=0) as ai:
        with pytest.raises(openai.NotFoundError):
            await ai.chat.completions.create(model=f"agent:{agent['id']}", messages=[user("Hi")])
        answer = await ai.chat.completions.with_raw_response.create(
            model="Agent of Grace", messages=[user("Hi")], extra_headers={"X-Wakeful-Session": mine}
        )
    assert answer.headers["X-Wakeful-Session"] != mine  # to them it is a name like any other
    assert await server.messages(mine) == []


async def test_a_token_has_a_brake(settings):
    async with running_server(settings, runs_per_token_per_hour=1) as server:
        server.provider.then(say("Hello"))
        session = await server.session()
        async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key=server.token, max_retries=0) as ai:
            headers = {"X-Wakeful-Session": session}
            await ai.chat.completions.create(model="Wakeful", messages=[user("Hi")], extra_headers=headers)
            with pytest.raises(openai.RateLimitError) as refused:
                await ai.chat.completions.create(model="Wakeful", messages=[user("More")])
        assert refused.value.code == "token_brake"
        assert 0 < int(refused.value.response.headers["Retry-After"]) <= 3600
        assert len((await server.call("GET", "/sessions"))["sessions"]) == 1  # nothing is left of it


async def test_a_tool_that_needs_approval_fails_fast_where_no_page_is_open(server):
    await server.change_agent(ask_before=["write_file"])
    writing = call("write_file", '{"path": "a.txt", "content": "a"}')
    server.provider.then(calls(*writing, usage(10, 5)), say("I may not."))
    async with AsyncOpenAI(base_url=f"{server.address}/v1", api_key=server.token, max_retries=0) as ai:
        answer = await ai.chat.completions.create(model="Wakeful", messages=[user("Write a.txt")])
    assert answer.choices[0].message.content == "I may not."
    assert "no page of Wakeful is open" in server.provider.last["messages"][-1]["content"]
