"""The agents and sessions of 0.1 have what came with holds and allowed models."""


async def test_agents_of_0_1_allow_no_other_models_and_can_be_given_some(upgraded, old):
    agent = f"/agents/{old.facts['agent_id']}"
    assert (await upgraded.rest.get(agent)).json()["allowed_models"] == []
    changed = await upgraded.rest.patch(agent, json={"allowed_models": ["openai:gpt-4o"]})
    assert changed.json()["allowed_models"] == ["openai:gpt-4o"]


async def test_a_session_of_0_1_takes_a_message(upgraded, old):
    path = f"/sessions/{old.facts['session_id']}"
    assert (await upgraded.rest.post(f"{path}/messages", json={"content": "Hello again"})).status_code == 202
    assert (await upgraded.rest.delete(f"{path}/recall")).json() == {"ok": True}
