"""Metrics for a monitoring system."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness import eventually
from live_server import running_server
from openai_server import call, calls, say

LABELS = ("trigger", "status", "kind", "model", "direction", "code", "tool", "outcome", "reason", "state")


@pytest.fixture
async def server(settings):
    """A server of its own: it counts everything since its start."""
    async with running_server(settings) as server:
        yield server


async def figures(server):
    answer = await server.rest.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(sample.labels[name] for name in LABELS if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


async def wait_for(server, name, value):
    """Scrape until a figure of the store is shown: a scrape does not wait for the store."""

    async def is_shown() -> bool:
        return (await figures(server)).get(name) == value

    await eventually(is_shown)


async def test_a_new_server_is_ready_and_has_nothing_to_do(server):
    await wait_for(server, ("wakeful_wakes_pending",), 0)
    found = await figures(server)
    assert found["wakeful_ready",] == 1
    assert found["wakeful_wakes_pending",] == 0
    assert (found["wakeful_runs_unfinished", "queued"], found["wakeful_runs_unfinished", "running"]) == (0, 0)
    assert found["process_resident_memory_bytes",] > 0
    assert (found["wakeful_store_available",], found["wakeful_next_wake_timestamp_seconds",]) == (1, 0)
    assert (found["wakeful_overdue_seconds",], found["wakeful_approvals_waiting",]) == (0, 0)
    assert found["wakeful_sockets_open",] == 0
    assert found["wakeful_build_info",] == 1


async def test_what_ends_and_what_waits_is_counted(server):
    session = await server.session()
    server.provider.then(say("Hello"))
    async with server.watch(session) as client:
        await client.say("Hi")
        await client.until("stream_end")
    await server.call(
        "POST",
        f"/sessions/{session}/recall",
        json={"call_type": "once", "when": "2h", "additional_context_message": "Read notes.txt"},
    )
    await wait_for(server, ("wakeful_wakes_pending",), 1)
    found = await figures(server)
    assert found["wakeful_runs_finished_total", "message", "success"] == 1
    assert found["wakeful_run_seconds_count",] == 1
    assert found["wakeful_wake_lateness_seconds_count",] == 0  # a person's message is never late
    assert found["wakeful_next_wake_timestamp_seconds",] > server.node.clock.now().timestamp()
    [model] = [key[1] for key in found if key[0] == "wakeful_model_tokens_total" and key[2] == "input"]
    assert found["wakeful_model_tokens_total", model, "output"] > 0
    assert found["wakeful_model_call_seconds_count", model] == 1


async def test_tool_calls_are_counted_and_names_that_a_model_made_up_are_not_labels(server):
    session = await server.session()
    server.provider.then(calls(*call("list_files", "{}")), calls(*call("ticket_4711_of_ada", "{}")), say("Done"))
    async with server.watch(session) as client:
        await client.ask("Look")
    found = await figures(server)
    assert found["wakeful_tool_calls_total", "unknown", "failed"] == 1
    assert not [key for key in found if "ticket_4711_of_ada" in key]
    assert sum(value for key, value in found.items() if key[0] == "wakeful_tool_calls_total") == 2


async def test_a_wake_is_measured_from_its_planned_instant(server):
    session = await server.session()
    server.provider.then(say("Done"))
    async with server.watch(session) as client:
        await server.book(session)
        await client.until("stream_end")
    found = await figures(server)
    assert found["wakeful_runs_finished_total", "wake", "success"] == 1
    assert found["wakeful_wake_lateness_seconds_count",] == 1
    assert found["wakeful_wakes_fired_total", "recall"] == 1


async def test_they_are_an_owners_alone(server):
    user = await server.call("POST", "/users", json={"name": "Ada"})
    token = await server.call("POST", "/tokens", json={"user_id": user["id"], "scope": "admin", "name": "hers"})
    answer = await server.rest.get("/metrics", headers={"Authorization": f"Bearer {token['secret']}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "owners_only")
