"""The session configuration of a schedule is validated when it is booked, and shown."""

import pytest

from asgi_client import opened_rest
from harness import MINUTE, NOON

pytestmark = pytest.mark.both_stores

ASKED = {"kind": "session", "message": "Look at the build, then tell me how it went.", "delay_ms": 60_000}


@pytest.fixture
async def rest(backend_settings):
    async with opened_rest(backend_settings, toolsets=("scheduler", "files")) as rest:
        yield rest


@pytest.fixture
async def path(rest):
    return f"/sessions/{(await rest.harness.session()).id}/schedules"


async def book(rest, path, config, **more):
    return await rest.client.post(path, json=ASKED | {"session_config": config} | more)


async def begun(rest, booked):
    """Let a schedule come and return the session it began."""
    await rest.harness.turn_at(NOON + MINUTE)
    schedule = await rest.call("GET", f"/schedules/{booked.json()['schedule']['id']}")
    return await rest.call("GET", f"/sessions/{schedule['created_session_id']}")


async def test_an_unknown_skill_is_refused_by_name_and_those_that_exist_are_listed(rest, path):
    harness = rest.harness
    await harness.node.services.instructions.save(
        harness.agent.id, harness.user.id, "skills/weekly-report.md", "How to write it."
    )
    refused = await book(rest, path, {"skills": ["weekly-report", "no-such-skill"]})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["field"]) == (
        400,
        "bad_session_config",
        "session_config.skills",
    )
    assert "'no-such-skill'" in error["message"]
    assert "weekly-report" in error["message"]
    assert (await book(rest, path, {"skills": ["weekly-report", "weekly-report.md"]})).status_code == 201


async def test_only_allowed_models_may_be_asked_for(rest, path):
    agent = f"/agents/{rest.harness.agent.id}"
    refused = await book(rest, path, {"model": "openai:gpt-4o"})
    assert refused.status_code == 400
    assert "'openai:gpt-4o'" in refused.json()["error"]["message"]
    assert "demo" in refused.json()["error"]["message"]  # its own
    changed = await rest.call("PATCH", agent, json={"allowed_models": ["openai:gpt-4o", "openai:gpt-4o"]})
    assert changed["allowed_models"] == ["openai:gpt-4o"]
    for model in ("openai:gpt-4o", "demo"):
        assert (await book(rest, path, {"model": model})).status_code == 201
    await rest.call("PATCH", agent, json={"model": "anthropic:claude-haiku-4-5"})
    assert (await book(rest, path, {"model": "anthropic:claude-haiku-4-5"})).status_code == 201
    assert (await book(rest, path, {"model": "demo"})).status_code == 400
    assert (await rest.call("PATCH", agent, json={"allowed_models": []}))["allowed_models"] == []


@pytest.mark.parametrize("name", ["", "two words", "x" * 201])
async def test_a_models_name_that_cannot_be_one_is_refused(rest, name):
    answer = await rest.client.patch(f"/agents/{rest.harness.agent.id}", json={"allowed_models": [name]})
    assert answer.status_code == 422


async def test_a_preloaded_messages_time_must_be_one(rest, path):
    refused = await book(
        rest, path, {"preloaded_messages": [{"role": "user", "content": "Hi", "timestamp": "yesterday"}]}
    )
    assert "'yesterday'" in refused.json()["error"]["message"]
    assert refused.json()["error"]["field"] == "session_config.preloaded_messages.0.timestamp"


@pytest.mark.parametrize(
    ("config", "more", "title"),
    [
        pytest.param({"session_name": "Morning"}, {"label": "check"}, "Morning", id="its name"),
        pytest.param({}, {"label": "check"}, "check", id="else its label"),
        pytest.param({}, {}, "Look at the build, then tell me how it went.", id="else the first words"),
        pytest.param(
            {}, {"message": "word\n" * 100}, "word word word word word word word word word word word…", id="cut off"
        ),
    ],
)
async def test_a_session_that_a_schedule_begins_has_a_title(rest, path, config, more, title):
    assert (await begun(rest, await book(rest, path, config, **more)))["title"] == title


async def test_a_session_that_a_next_run_begins_has_a_title(rest):
    harness = rest.harness
    wake = await harness.book(kind="next_run", at=NOON, instructions="Water the garden with read_file.")
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (await rest.call("GET", f"/sessions/{run.session_id}"))["title"] == "Water the garden with read_file."


async def test_stop_ends_the_running_run_then_the_next_queued_ones_and_names_each(rest):
    harness = rest.harness
    session = await harness.session()
    wakes = [await harness.book(kind="message", session=session, at=NOON + number * MINUTE / 60) for number in range(3)]
    gate = harness.executor.by_wake[wakes[0].id] = harness.gate()
    await harness.turn_at(NOON + MINUTE)
    ids = [(await harness.runs_of(wake))[0].id for wake in wakes]
    stop = f"/sessions/{session.id}/stop"
    assert await rest.call("POST", stop) == {"ok": True, "run_id": ids[0], "was": "running"}
    await harness.let_through(gate)  # and nobody claims the two others
    assert await rest.call("POST", stop) == {"ok": True, "run_id": ids[1], "was": "queued"}
    assert await rest.call("POST", stop) == {"ok": True, "run_id": ids[2], "was": "queued"}
    assert await rest.call("POST", stop) == {"ok": False, "reason": "no active run"}
    assert [(await harness.wake(wake)).status for wake in wakes[1:]] == ["fired", "fired"]


async def test_stop_takes_a_persons_message_before_queued_wakes(rest):
    harness = rest.harness
    session = await harness.session()
    await harness.book(kind="message", session=session, at=NOON)
    await harness.node.engine.scheduler.turn()
    asked = await harness.node.runs.ask(session.id, harness.user.id, "Hello?")
    answer = await rest.call("POST", f"/sessions/{session.id}/stop")
    assert answer == {"ok": True, "run_id": asked.id, "was": "queued"}


async def test_deleting_no_recall_is_fine_and_deleting_one_of_no_session_is_not(rest):
    session = await rest.harness.session()
    assert await rest.call("DELETE", f"/sessions/{session.id}/recall") == {"ok": True}
    assert (await rest.client.delete("/sessions/no-such-session/recall")).status_code == 404
