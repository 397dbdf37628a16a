"""Data of 0.2 is complete after an upgrade, on both backends."""

import httpx
import pytest

from fixtures.stores import BACKENDS
from upgrade.old_data import copy_old_data, running_old_server

pytestmark = pytest.mark.upgrade


@pytest.fixture(params=BACKENDS)
def old(request, tmp_path):
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else None
    return copy_old_data(request.param, tmp_path, url, "0.2")


@pytest.fixture
async def upgraded(old):
    async with running_old_server(old.settings, old.stopped_at) as server:
        server.rest.headers["Authorization"] = f"Bearer {old.facts['token']}"
        yield server


async def get(server, path, **more):
    answer = await server.rest.get(path, **more)
    assert answer.is_success, answer.text
    return answer.json()


async def test_people_agents_and_sessions_are_there(upgraded, old):
    agents = {agent["name"]: agent for agent in (await get(upgraded, "/agents"))["agents"]}
    assert set(agents) == {"Wakeful", "Janitor"}
    assert agents["Janitor"]["timezone"] == "Europe/Berlin"
    assert [user["name"] for user in (await get(upgraded, "/users"))["users"]] == ["Owner", "Grace"]
    session = await get(upgraded, f"/sessions/{old.facts['session_id']}")
    assert session["title"] == "The garden"
    assert any("plumber" in message["content"] for message in session["messages"])
    assert [channel["name"] for channel in (await get(upgraded, "/channels"))["channels"]] == ["phone"]
    for name in ("token", "read_token", "grace_token"):
        async with upgraded.client(old.facts[name]) as client:
            assert (await client.get("/me")).status_code == 200, name


async def test_wakes_still_wait_and_report_to_their_address(upgraded):
    wakes = [wake for wake in (await get(upgraded, "/wakes"))["wakes"] if wake["status"] == "pending"]
    assert sorted(wake["kind"] for wake in wakes) == ["message", "next_run", "recall", "recall"]
    assert [wake["ping_to"] for wake in wakes if wake["ping_to"]] == ["https://hc-ping.com/****"]


async def test_the_agents_database_and_files_are_there(upgraded, old):
    db = f"/agents/{old.facts['agent_id']}/db"
    assert (await get(upgraded, f"{db}/verify"))["intact"]
    assert (await get(upgraded, f"{db}/tables/prices/rows"))["total"] == 7
    deleted = await get(upgraded, f"{db}/tables/prices/rows", params={"show": "deleted"})
    assert deleted["total"] == 1
    assert len((await upgraded.rest.post(f"{db}/views/cheap/run", json={})).json()["rows"]) == 4
    found = (await get(upgraded, f"/agents/{old.facts['agent_id']}/instructions"))["files"]
    assert {each["path"]: each["accepted"] for each in found} == {"AGENTS.md": True, "skills/watering.md": True}
    workspace = upgraded.node.services.workspace_of(old.facts["agent_id"])
    assert (workspace / "notes.txt").read_text() == "water the tomatoes"


async def test_a_models_key_and_a_browsers_login_are_still_good(upgraded, old):
    [far] = [model for model in (await get(upgraded, "/models"))["models"] if model["name"] == "far"]
    assert far["has_key"]
    headers = {"Cookie": f"wakeful={old.facts['cookie']}", "X-Wakeful-Page": old.facts["page_secret"]}
    async with httpx.AsyncClient(base_url=upgraded.address, headers=headers) as browser:
        assert (await browser.get("/me")).json()["user"]["name"] == "Owner"
