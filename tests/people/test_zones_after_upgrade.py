"""Agents of 0.1, which 0.2 has upgraded, keep their stored zone; their user's is offered once."""

import pytest

from upgrade.old_data import change

pytestmark = pytest.mark.upgrade


@pytest.fixture
async def old(old):
    """A store that 0.2 has upgraded from 0.1, where every agent had a zone of its own."""
    await change(old, "UPDATE users SET timezone = NULL; UPDATE agents SET offers_zone = 1")
    await change(old, "UPDATE agents SET timezone = 'Etc/UTC' WHERE timezone IS NULL")
    return old


async def get(server, path, **more):
    answer = await server.rest.get(path, **more)
    assert answer.is_success, answer.text
    return answer.json()


async def patch(server, path, **body):
    answer = await server.rest.patch(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def agents(server):
    return {agent["name"]: agent for agent in (await get(server, "/agents"))["agents"]}


@pytest.fixture
async def at_home(upgraded):
    """The upgraded server, which has been told the zone of its owner."""
    me = (await get(upgraded, "/me"))["user"]
    assert me["timezone"] is None
    await patch(upgraded, f"/users/{me['id']}", timezone="Europe/Berlin")
    return upgraded


async def test_stored_zones_stay_and_nothing_is_offered_before_the_users_is_known(upgraded):
    found = await agents(upgraded)
    assert [(each["timezone"], each["zone"]) for each in found.values()] == [
        ("Etc/UTC", "Etc/UTC"),
        ("Europe/Berlin", "Europe/Berlin"),
    ]
    assert not any(each["offered_timezone"] for each in found.values())


async def test_the_users_zone_is_offered_to_an_agent_that_has_another(at_home):
    found = await agents(at_home)
    assert found["Wakeful"]["offered_timezone"] == "Europe/Berlin"
    assert found["Janitor"]["offered_timezone"] is None  # it has the same
    assert found["Wakeful"]["zone"] == "Etc/UTC"


async def test_an_offer_that_is_taken_makes_the_agent_follow_its_user(at_home):
    path = f"/agents/{(await agents(at_home))['Wakeful']['id']}"
    taken = await patch(at_home, path, timezone=None)
    assert (taken["timezone"], taken["zone"], taken["offered_timezone"]) == (None, "Europe/Berlin", None)


async def test_an_offer_that_is_declined_is_not_made_again(at_home):
    path = f"/agents/{(await agents(at_home))['Wakeful']['id']}"
    await patch(at_home, path, description="Another")  # no answer to the question
    assert (await get(at_home, path))["offered_timezone"] == "Europe/Berlin"
    kept = await patch(at_home, path, timezone="Etc/UTC")
    assert (kept["timezone"], kept["offered_timezone"]) == ("Etc/UTC", None)
    await patch(at_home, f"/users/{(await get(at_home, '/me'))['user']['id']}", timezone="Asia/Tokyo")
    assert (await get(at_home, path))["offered_timezone"] is None


async def test_a_new_agent_is_not_asked_about(at_home):
    made = await at_home.rest.post("/agents", json={"name": "New", "timezone": "America/New_York"})
    assert made.json()["offered_timezone"] is None


async def test_a_user_in_utc_is_not_offered_utc(upgraded):
    await patch(upgraded, f"/users/{(await get(upgraded, '/me'))['user']['id']}", timezone="UTC")
    assert (await agents(upgraded))["Wakeful"]["offered_timezone"] is None
