"""The brake on one token of a program, or one hook: a limit of bookings and runs an hour, on all nodes together."""

import asyncio
import itertools
from contextlib import nullcontext

import pytest

from asgi_client import opened_rest
from harness import HOUR, MINUTE, NOON, SECOND
from wakeful.core.labels import TokenBraked, Via
from wakeful.runs.service import SIDE_REQUESTS
from wakeful.timing.next_run_request import NextRunRequest
from wakeful.timing.recall_request import RecallRequest
from wakeful.timing.schedule_request import ScheduleRequest

pytestmark = pytest.mark.both_stores

MOST = 5  # an hour, instead of sixty
TODO = "Read notes.txt with read_file."
_numbers = itertools.count()
LAPTOP = Via(door="mcp", token_id="token-1", token_name="laptop")
PHONE = Via(door="v1", token_id="token-2", token_name="phone")
HOOK = Via(door="hook", token_id="hook-1", token_name="builds")
PERSON = Via(door="rest", token_id="token-3", token_name="a person's script")


def another_task():
    """Return a text of its own: the same booking within a minute is a retry, and books nothing."""
    return f"{TODO} Then write {next(_numbers)} to report.md."


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"runs_per_token_per_hour": MOST}


async def recall(harness, via, when="in 1 hour", node=None):
    session = await harness.session()
    request = RecallRequest(call_type="once", when=when, additional_context_message=another_task())
    booked = await (node or harness.node).services.recalls.book(request, session.id, harness.user.id, via)
    return booked.wake


async def message(harness, via):
    session = await harness.session()
    request = ScheduleRequest(kind="message", message=another_task(), delay_ms=60_000)
    return await harness.node.services.schedules.book(request, session.id, harness.user.id, via)


async def next_run(harness, via):
    request = NextRunRequest(instructions=another_task(), in_seconds=600)
    return await harness.node.services.next_runs.book(request, harness.agent.id, harness.user.id, via)


async def ask(harness, via):
    session = await harness.session()
    return await harness.node.runs.ask(session.id, harness.user.id, "Hello?", via=via)


async def use_up(harness, via):
    for _ in range(MOST):
        await recall(harness, via)


@pytest.mark.parametrize("act", [recall, message, next_run, ask])
async def test_every_booking_and_every_run_of_a_token_counts(harness, act):
    for _ in range(MOST):
        await act(harness, LAPTOP)
    with pytest.raises(TokenBraked, match=r"The token 'laptop' .* 5 runs .* in 1 h, at 2026-03-02T13:00:00Z") as braked:
        await act(harness, LAPTOP)
    assert braked.value.seconds == 3_600
    for other in (PHONE, HOOK, PERSON, None):  # each has a count of its own, and people have none
        await act(harness, other)


@pytest.mark.parametrize("via", [LAPTOP, PHONE, HOOK])
async def test_bookings_and_runs_count_together_and_a_booking_once(harness, via):
    wake = await recall(harness, via, when="in 1 minute")
    for _ in range(MOST - 2):
        await ask(harness, via)
    await harness.turn_at(NOON + MINUTE)  # the wake fires, and is counted as a run from now on
    [run] = await harness.runs_of(wake)
    assert (run.door, run.token_id, run.token_name) == (via.door, via.token_id, via.token_name)
    await recall(harness, via)
    with pytest.raises(TokenBraked):
        await recall(harness, via)


async def test_a_refused_booking_leaves_nothing_and_is_possible_when_the_hour_is_over(harness):
    await use_up(harness, LAPTOP)
    session = await harness.session()
    with pytest.raises(TokenBraked):
        await harness.node.runs.ask(session.id, harness.user.id, "Hello?", via=LAPTOP)
    assert await harness.node.sessions.messages(session.id, harness.user.id) == []
    harness.clock.set(NOON + HOUR - SECOND)
    with pytest.raises(TokenBraked, match="in 1 s,"):
        await harness.node.runs.ask(session.id, harness.user.id, "Hello?", via=LAPTOP)
    harness.clock.set(NOON + HOUR)
    await harness.node.runs.ask(session.id, harness.user.id, "Hello?", via=LAPTOP)


async def test_run_now_counts_for_the_token_that_asks_and_not_for_the_one_that_booked(harness):
    wake = await recall(harness, LAPTOP)
    await use_up(harness, PHONE)
    with pytest.raises(TokenBraked, match="'phone'"):
        await harness.node.wakes.run_now(wake.id, harness.user.id, PHONE)
    run = await harness.node.wakes.run_now(wake.id, harness.user.id, HOOK)
    assert (run.door, run.token_name) == ("hook", "builds")


async def test_the_times_of_a_recurring_wake_wait_when_its_token_has_had_its_hour(harness):
    session = await harness.session()
    request = RecallRequest(
        call_type="recurring", when="in 1 minute", interval_seconds=60, additional_context_message=TODO
    )
    wake = (await harness.node.services.recalls.book(request, session.id, harness.user.id, LAPTOP)).wake
    await harness.live_until(NOON + 30 * MINUTE)
    assert len(harness.executor.ran) == MOST
    held = await harness.wake(wake)
    assert (held.held_by, held.attempt_at) == ("token_brake", NOON + MINUTE + HOUR)
    [notice] = [each for each in await harness.notices() if each.code == "token_brake"]
    assert "“laptop”" in notice.body
    assert "Held until 2026-03-02T13:01:00Z: too many runs of its token within an hour." in [
        step.text for step in await harness.node.wakes.why(wake.id, harness.user.id)
    ]
    await harness.live_until(NOON + MINUTE + HOUR)
    assert len(harness.executor.ran) == MOST + 1


async def test_many_wakes_due_at_once_start_no_more_than_the_brake_allows(harness):
    for _ in range(MOST):
        await recall(harness, LAPTOP, when="in 3 hours")
    harness.clock.set(NOON + HOUR)
    for _ in range(MOST):
        await recall(harness, LAPTOP, when="in 2 hours")
    await harness.turn_at(NOON + 3 * HOUR)
    assert len(harness.executor.ran) == MOST
    await harness.turn_at(NOON + 4 * HOUR)
    assert len(harness.executor.ran) == 2 * MOST


async def test_requests_at_the_same_time_on_two_nodes_share_one_brake(harness, tmp_path):
    # An embedded store has one node; its requests still come at the same time.
    is_shared = harness.node.store.is_shared
    other = harness.another_node(data_dir=tmp_path / "other") if is_shared else harness.node
    async with other.opened() if is_shared else nullcontext():
        nodes = [harness.node, other] * MOST
        answers = await asyncio.gather(*[recall(harness, LAPTOP, node=node) for node in nodes], return_exceptions=True)
    assert sum(isinstance(answer, TokenBraked) for answer in answers) == MOST
    assert len(await harness.node.wakes.find(harness.user.id)) == MOST


async def test_why_says_who_booked_it_and_how(harness):
    wake = await recall(harness, LAPTOP)
    [step] = await harness.node.wakes.why(wake.id, harness.user.id)
    assert step.text.startswith(
        "You scheduled it for 2026-03-02T13:00:00Z, through MCP (token “laptop”). Requested: “in 1 hour”"
    )


TITLE = "### Task:\nWrite a title.\n<chat_history>\nUSER: Hi\n</chat_history>"


async def test_titles_tags_and_follow_ups_have_a_limit_of_their_own(backend_settings):
    async with opened_rest(backend_settings) as rest:

        async def complete(text, token=rest.client.headers["Authorization"]):
            body = {"model": f"agent:{rest.harness.agent.id}", "messages": [{"role": "user", "content": text}]}
            return await rest.client.post("/v1/chat/completions", json=body, headers={"Authorization": token})

        most = rest.harness.node.rules.runs_per_token * SIDE_REQUESTS
        made = await rest.call("POST", "/tokens", json={"name": "other", "scope": "chat"})
        assert [(await complete(TITLE)).status_code for _ in range(most - 2)] == [200] * (most - 2)
        rest.harness.clock.advance(MINUTE)
        answers = await asyncio.gather(*(complete(TITLE) for _ in range(3)))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429]
        refused = await complete(TITLE)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "token_brake")
        assert f"asked for {most} titles, tags and follow-ups within an hour" in refused.json()["error"]["message"]
        assert refused.headers["Retry-After"] == str((HOUR - MINUTE) // SECOND)
        [token] = [each for each in (await rest.call("GET", "/tokens"))["tokens"] if each["name"] != "other"]
        await recall(rest.harness, Via(door="v1", token_id=token["id"], token_name=token["name"]))  # has its own room
        assert (await complete(TITLE, f"Bearer {made['secret']}")).status_code == 200
        rest.harness.clock.advance(HOUR - MINUTE)
        assert (await complete(TITLE)).status_code == 200
