"""Two servers on one PostgreSQL: one takes the request, the other executes the run."""

import json

from live_server import eventually, provided, running_server
from openai_server import say


def body(*contents, **more):
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": each} for place, each in enumerate(contents)]
    return {"model": "Wakeful", "messages": messages} | more


async def test_an_answer_comes_from_another_node_and_the_conversation_goes_on_there(tmp_path, swept_postgres_url):
    settings = {"config_dir": tmp_path / "config", "database_url": swept_postgres_url}
    async with (
        provided(always=say("Hel", "lo")) as provider,
        running_server(settings, provider, data_dir=tmp_path / "one", node_name="one") as one,
        running_server(settings, provider, data_dir=tmp_path / "two", node_name="two") as two,
    ):
        listed = {each["name"]: each for each in (await one.call("GET", "/nodes"))["nodes"]}
        await one.call("POST", f"/nodes/{listed['one']['id']}/drain")

        async def is_draining():
            return (await one.rest.get("/readyz")).json().get("draining") is True

        await eventually(is_draining)
        streamed = await one.rest.post("/v1/chat/completions", json=body("Hi", stream=True))
        chunks = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
        assert "".join(each["choices"][0]["delta"].get("content", "") for each in chunks) == "Hello"
        assert streamed.text.endswith("data: [DONE]\n\n")
        whole = await two.rest.post("/v1/chat/completions", json=body("Hi", "Hello", "And?"))
        assert whole.headers["X-Wakeful-Session"] == streamed.headers["X-Wakeful-Session"]
        runs = await one.runs_of(whole.headers["X-Wakeful-Session"])
        assert [run["node"] for run in runs] == ["two", "two"]
