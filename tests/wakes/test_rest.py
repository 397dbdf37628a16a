"""Wakes of every kind by their id over REST, and the history of runs."""

import re

import pytest

from live_server import eventually, of_kind
from openai_server import refuse, say

TODO = "Read notes.txt with read_file."
BOOKINGS = {
    "recall": ("POST", "/sessions/{session}/recall", {"call_type": "once", "when": "1h"}),
    "message": ("POST", "/sessions/{session}/schedules", {"kind": "message", "delay_ms": 3_600_000}),
    "session": (
        "POST",
        "/sessions/{session}/schedules",
        {"kind": "session", "delay_ms": 3_600_000, "session_config": {}},
    ),
    "next_run": ("PUT", "/agents/{agent}/next-run", {"in_seconds": 3_600}),
}
TEXT = {"recall": "additional_context_message", "message": "message", "session": "message", "next_run": "instructions"}


class Desk:
    """A server, a session in it, and the first agent."""

    def __init__(self, server, session, agent):
        self.server, self.session, self.agent = server, session, agent

    async def book(self, kind, **changes):
        """Book as a person and return the wake's id."""
        method, path, body = BOOKINGS[kind]
        path = path.format(session=self.session, agent=self.agent)
        booked = await self.server.call(method, path, json=body | {TEXT[kind]: TODO} | changes)
        [shown] = [booked[name] for name in ("recall", "schedule", "next_run") if name in booked]
        return shown["id"].removeprefix("sch-")

    async def wake(self, wake_id):
        return await self.server.call("GET", f"/wakes/{wake_id}")

    async def try_out(self, method, path, **more):
        """Ask for something and return the status and the error."""
        answer = await self.server.rest.request(method, path, **more)
        return answer.status_code, answer.json().get("error", {})

    async def end_of(self, run):
        async def is_over():
            return (await self.server.run(run["id"]))["finished_at"]

        await eventually(is_over)
        return await self.server.run(run["id"])


@pytest.fixture
async def desk(server):
    [agent] = (await server.call("GET", "/agents"))["agents"]
    return Desk(server, await server.session(), agent["id"])


@pytest.mark.parametrize("kind", BOOKINGS)
async def test_any_wake_is_changed_run_and_ended_by_its_id(desk, kind):
    wake_id = await desk.book(kind)
    before = await desk.wake(wake_id)
    changes = {"when": "2h", "instructions": "Read b.txt with read_file.", "comment": "later"}
    after = await desk.server.call("PATCH", f"/wakes/{wake_id}", json=changes)
    assert after["nominal_at"] > before["nominal_at"]
    assert (after["id"], after["instructions"], after["comment"]) == (wake_id, changes["instructions"], "later")
    status, error = await desk.try_out("POST", f"/wakes/{wake_id}/skip")
    assert (status, error["code"]) == (400, "wake_fires_once")
    desk.server.provider.then(say("Done."))
    run = await desk.server.call("POST", f"/wakes/{wake_id}/run-now")
    assert (await desk.end_of(run))["status"] == "success"
    assert desk.server.provider.last["messages"][-1]["content"] == "Read b.txt with read_file."
    for method, path in (("DELETE", ""), ("POST", "/run-now")):
        status, error = await desk.try_out(method, f"/wakes/{wake_id}{path}")
        assert (status, error["code"]) == (409, "wake_not_live")
    second = await desk.book(kind)
    await desk.server.call("DELETE", f"/wakes/{second}")
    assert (await desk.wake(second))["status"] == "cancelled"


@pytest.mark.parametrize(
    ("kind", "changes", "field"),
    [
        ("message", {"when": "2 days"}, "when"),
        ("session", {"when": "25 hours"}, "when"),
        ("next_run", {"when": "2h", "timezone": "Mars/Olympus"}, "timezone"),
        ("message", {"timezone": "Asia/Tokyo"}, "timezone"),  # only with a time to read in it
        ("next_run", {"cron": "0 9 * * *"}, "cron"),
        ("message", {"interval_seconds": 60}, "interval_seconds"),
        ("recall", {"interval_seconds": 60}, "interval_seconds"),
        ("recall", {"instructions": " "}, "instructions"),
        ("recall", {"when": "yesterday"}, "when"),
        ("recall", {"instructions": "a\x00"}, "instructions"),
    ],
)
async def test_a_change_is_held_to_what_the_door_takes(desk, kind, changes, field):
    wake_id = await desk.book(kind)
    before = await desk.wake(wake_id)
    status, error = await desk.try_out("PATCH", f"/wakes/{wake_id}", json=changes)
    assert status in (400, 422)
    assert error["field"] == field
    assert await desk.wake(wake_id) == before


async def test_a_next_run_beyond_the_horizon_is_moved_by_a_change_as_by_a_booking(desk):
    wake_id = await desk.book("next_run")
    first = (await desk.wake(wake_id))["booking"]
    after = await desk.server.call("PATCH", f"/wakes/{wake_id}", json={"when": "in 2 days", "timezone": "Asia/Tokyo"})
    assert (after["booking"]["requested"], after["booking"]["moved_by"]) == ("in 2 days", ["max_horizon"])
    assert after["booking"]["final"] == after["nominal_at"]
    assert (first["changed_by"], after["booking"]["changed_by"]) == (None, "user")
    await desk.server.call("PATCH", f"/wakes/{wake_id}", json={"when": "3h"})
    decisions = (await desk.server.call("GET", f"/wakes/{wake_id}/why"))["decisions"]
    assert [each["code"] for each in decisions] == ["booked", "edited", "edited"]
    assert [each["detail"]["requested"] for each in decisions] == [first["requested"], "in 2 days", "3h"]


async def test_those_who_watch_a_session_are_told_what_became_of_its_recall(desk):
    wake_id = await desk.book("recall", call_type="recurring", interval_seconds=3_600)
    async with desk.server.watch(desk.session) as client:
        await desk.server.call("POST", f"/wakes/{wake_id}/skip")
        await desk.server.call("PATCH", f"/wakes/{wake_id}", json={"cron": "0 9 * * *", "timezone": "UTC"})
        await desk.server.call("DELETE", f"/wakes/{wake_id}")
        told = [*await client.until("recall_update"), *await client.until("recall_update")]
        told += await client.until("recall_update")
    assert [frame["action"] for frame in of_kind(told, "recall_update")] == ["skipped", "rescheduled", "cancelled"]
    wake = await desk.wake(wake_id)
    assert (wake["cron"], wake["interval_seconds"]) == ("0 9 * * *", None)


async def test_what_waits_can_be_listed_alone(desk):
    ended, waiting = await desk.book("message"), await desk.book("message")
    await desk.server.call("DELETE", f"/wakes/{ended}")
    listed = (await desk.server.call("GET", "/wakes", params={"live": True}))["wakes"]
    assert [wake["id"] for wake in listed] == [waiting]


async def test_the_history_of_an_agent_says_what_each_run_was_for_and_used(desk):
    desk.server.provider.then(say("Done."), refuse(400, "No such model."))
    good = await desk.end_of(await desk.server.call("POST", f"/wakes/{await desk.book('next_run')}/run-now"))
    bad = await desk.end_of(await desk.server.call("POST", f"/wakes/{await desk.book('recall')}/run-now"))
    first = await desk.server.call("GET", "/runs", params={"agent_id": desk.agent, "limit": 1})
    second = await desk.server.call("GET", "/runs", params={"agent_id": desk.agent, "limit": 1, "page": first["next"]})
    [failed], [succeeded] = first["runs"], second["runs"]
    texts = {"brief", "answer"}  # a list has only their first words
    assert [failed, succeeded] == [{key: run[key] for key in run.keys() - texts} for run in (bad, good)]
    assert (failed["status"], failed["trigger"], failed["kind"]) == ("failed", "run_now", "recall")
    assert "No such model." in failed["error"]
    assert (succeeded["usage"]["input_tokens"], succeeded["usage"]["output_tokens"]) == (12, 1)
    assert succeeded["session_id"]
    assert succeeded["started_at"] <= succeeded["finished_at"]
    assert "cost" in succeeded["usage"]
    another = await desk.server.call("POST", "/agents", json={"name": "Another"})
    assert (await desk.server.call("GET", "/runs", params={"agent_id": another["id"]}))["runs"] == []


async def test_schedules_come_in_pages_the_newest_first_recalls_left_out(desk):
    booked = [await desk.book("message", label=str(number)) for number in range(3)]
    await desk.book("recall")
    await desk.server.call("DELETE", f"/wakes/{booked[0]}")
    path, query = f"/sessions/{desk.session}/schedules", {"limit": 2, "fields": "id,status"}
    first = await desk.server.call("GET", path, params=query)
    assert first["schedules"] == [{"id": f"sch-{each}", "status": "pending"} for each in (booked[2], booked[1])]
    second = await desk.server.call("GET", path, params=query | {"page": first["next"]})
    assert second == {"schedules": [{"id": f"sch-{booked[0]}", "status": "cancelled"}]}
    status, error = await desk.try_out("GET", path, params={"page": "nonsense"})
    assert (status, error["field"]) == (400, "page")


# ── What is not there ───────────────────────────────────────────────────────────────────────────────────────────────

NOWHERE = [
    ("GET", "/nope"),
    ("GET", "/agents/nope"),
    ("POST", "/channels/nope/test"),
    ("POST", "/notifications/nope/read"),
    ("GET", "/runs/nope"),
    ("POST", "/runs/{run}/approvals/nope"),
    ("DELETE", "/schedules/nope"),
    ("GET", "/sessions/nope"),
    ("GET", "/sessions/{session}/images/nope"),
    ("DELETE", "/tokens/nope"),
    ("GET", "/users/nope"),
    ("GET", "/wakes/nope"),
    ("GET", "/wakes/nope/why"),
]
NOT_BOOKED = [
    ("POST", "/sessions/{session}/recall/run-now"),
    ("POST", "/agents/{agent}/next-run/run-now"),
]


async def test_what_is_not_there_is_named_with_where_to_look_or_what_to_do(desk):
    desk.server.provider.then(say("Done."))
    run = await desk.end_of(await desk.server.call("POST", f"/wakes/{await desk.book('message')}/run-now"))
    ids = {"session": desk.session, "agent": desk.agent, "run": run["id"]}
    for method, path in NOWHERE:
        body = {"approve": True} if "approvals" in path else None
        status, error = await desk.try_out(method, path.format(**ids), json=body)
        assert (status, "'nope'" in error["message"] or "'/nope'" in error["message"]) == (404, True), (path, error)
        [there] = re.findall(r"GET (/[^\s;,.)]+|the session)", error["message"])
        there = there.replace("the session", "/sessions/ID").replace("/ID", f"/{desk.session}")
        assert (await desk.server.rest.get(there)).is_success, error["message"]
    for method, path in NOT_BOOKED:
        status, error = await desk.try_out(method, path.format(**ids))
        assert (status, "Book one first" in error["message"]) == (404, True), (path, error)


async def test_the_address_that_runs_are_reported_to_is_set_removed_and_never_shown(desk):
    wake_id = await desk.book("recall")
    secret = "http://93.184.215.14/0f7e2a44"
    changed = await desk.server.call("PATCH", f"/wakes/{wake_id}", json={"ping_url": secret})
    assert changed["ping_to"] == "http://93.184.215.14/****"
    assert "0f7e2a44" not in str(await desk.wake(wake_id))
    answer = await desk.server.rest.patch(f"/wakes/{wake_id}", json={"ping_url": "http://127.0.0.1/x", "when": "3h"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (403, "ping_url")
    kept = await desk.wake(wake_id)
    assert (kept["ping_to"], kept["nominal_at"]) == (changed["ping_to"], changed["nominal_at"])
    removed = await desk.server.call("PATCH", f"/wakes/{wake_id}", json={"ping_url": None})
    assert removed["ping_to"] is None
