"""Data of 0.1.0 is complete after an upgrade, on both backends."""


async def get(server, path, **more):
    answer = await server.rest.get(path, **more)
    assert answer.is_success, answer.text
    return answer.json()


async def test_agents_people_and_sessions_are_there(upgraded, old):
    agents = {agent["name"]: agent for agent in (await get(upgraded, "/agents"))["agents"]}
    assert set(agents) == {"Wakeful", "Janitor"}
    assert agents["Janitor"]["timezone"] == "Europe/Berlin"
    assert agents["Wakeful"]["timezone"] == "Etc/UTC"  # a stored zone stays
    assert [user["name"] for user in (await get(upgraded, "/users"))["users"]][-1] == "Grace"
    session = await get(upgraded, f"/sessions/{old.facts['session_id']}")
    assert session["title"] == "The garden"
    assert any("plumber" in message["content"] for message in session["messages"])


async def test_wakes_still_wait(upgraded):
    wakes = (await get(upgraded, "/wakes"))["wakes"]
    assert sorted(wake["kind"] for wake in wakes if wake["status"] == "pending") == [
        "message",
        "next_run",
        "recall",
        "recall",
    ]


async def test_tokens_still_open_the_server(upgraded, old):
    for name in ("token", "read_token", "grace_token"):
        async with upgraded.client(old.facts[name]) as client:
            assert (await client.get("/me")).status_code == 200, name


async def test_the_agents_database_keeps_rows_history_and_views(upgraded, old):
    db = f"/agents/{old.facts['agent_id']}/db"
    assert (await get(upgraded, f"{db}/verify"))["intact"]
    rows = await get(upgraded, f"{db}/tables/prices/rows")
    assert rows["total"] == 7
    deleted = await get(upgraded, f"{db}/tables/prices/rows", params={"show": "deleted"})
    assert deleted["total"] == 1
    found = (await upgraded.rest.post(f"{db}/views/cheap/run", json={})).json()
    assert found["rows"]


async def test_files_of_the_workspace_are_there(upgraded, old):
    workspace = upgraded.node.services.workspace_of(old.facts["agent_id"])
    assert (workspace / "notes.txt").read_text() == "water the tomatoes"
    assert (workspace / "AGENTS.md").exists()


async def test_browsers_can_subscribe_to_push_messages(upgraded):
    offered = await get(upgraded, "/push-subscriptions")
    assert offered["problem"] is None
    assert len(offered["public_key"]) == 87  # a point on P-256 in base64url
