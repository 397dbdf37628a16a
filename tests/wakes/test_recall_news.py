"""News of recalls: every change is announced, in the same words, on /ws/events and in the recall's session."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from events_feed import EventsFeed, said_in
from harness import DAY, HOUR, MINUTE, NOON, doing
from wakeful.core.errors import StoreUnavailable
from wakeful.timing.recall_request import RecallRequest

pytestmark = pytest.mark.both_stores


@pytest.fixture
def backend_settings(backend_settings):
    return backend_settings | {"lease_seconds": 3600}  # nobody renews leases here


@pytest.fixture
def feed(harness):
    return EventsFeed(harness)


async def fail(_run):
    raise RuntimeError("no such file")


# ── What the server decides ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_low_recall_that_gives_way_is_announced_as_skipped(harness, feed):
    session = await harness.session()
    elsewhere = await harness.session()
    await harness.book(session=session, priority="low")
    harness.clock.set(NOON + HOUR)
    async with harness.talking(elsewhere):
        await harness.turn()
    expected = [("scheduled", "pending"), ("skipped", "cancelled")]
    assert (await feed.recalls(), await said_in(harness, session.id)) == (expected, expected)


async def test_a_missed_recall_under_on_miss_skip_is_announced_as_skipped(harness, feed):
    session = await harness.session()
    await harness.book(session=session, on_miss="skip")
    await harness.turn_at(NOON + DAY)
    expected = [("scheduled", "pending"), ("skipped", "cancelled")]
    assert (await feed.recalls(), await said_in(harness, session.id)) == (expected, expected)


@pytest.mark.parametrize(("call_type", "status"), [("once", "cancelled"), ("recurring", "pending")])
async def test_a_low_recall_that_found_no_slot_is_announced_as_skipped(
    backend_settings, harness, feed, call_type, status
):
    gate = harness.gate()
    for _ in range(harness.node.settings.max_headless_runs):
        busy = await harness.book(call_type="immediate", kind="session")
        harness.executor.by_wake[busy.id] = gate
    await harness.turn()
    session = await harness.session()
    await harness.book(session=session, priority="low", call_type=call_type)
    await harness.turn_at(NOON + HOUR)
    await harness.turn_at(NOON + HOUR + harness.node.rules.shed_after)
    expected = [("scheduled", "pending"), ("skipped", status)]
    assert (await feed.recalls(), await said_in(harness, session.id)) == (expected, expected)
    await harness.let_through(gate)


async def test_a_deferral_is_announced(harness, feed):
    session = await harness.session()
    await harness.book(session=session)
    harness.clock.set(NOON + HOUR)
    async with harness.talking(session):
        await harness.turn()
    expected = [("scheduled", "pending"), ("deferred", "pending")]
    assert (await feed.recalls(), await said_in(harness, session.id)) == (expected, expected)


async def test_a_failed_recall_is_announced_as_failed(harness, feed):
    session = await harness.session()
    wake = await harness.book(session=session)
    harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn_at(NOON + HOUR)
    assert await feed.recalls() == [("scheduled", "pending"), ("fired", "fired"), ("failed", "cancelled")]
    assert (await said_in(harness, session.id))[-1] == ("failed", "cancelled")


@pytest.mark.parametrize("is_failing", [False, True])
async def test_after_a_run_of_a_recurring_recall_its_next_time_is_announced(harness, feed, is_failing):
    session = await harness.session()
    wake = await harness.book(session=session, call_type="recurring")
    if is_failing:
        harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn_at(NOON + HOUR)
    *_, last = [frame for frame in await feed.frames() if frame["type"] == "recall_update"]
    assert (last["action"], last["status"], last["trigger_at"]) == (
        "rescheduled", "pending", (NOON + 2 * HOUR).isoformat().replace("+00:00", "Z"),
    )  # fmt: skip
    ran = [("fired", "pending"), *([("failed", "pending")] if is_failing else []), ("rescheduled", "pending")]
    assert await feed.recalls() == [("scheduled", "pending"), *ran]
    assert await said_in(harness, session.id) == [("scheduled", "pending"), *ran[1:]]  # the loop says that it fired


@pytest.mark.parametrize("limit", [{"max_runs": 1}, {"until": NOON + HOUR + MINUTE}])
@pytest.mark.parametrize("is_failing", [False, True])
async def test_the_end_of_a_recurring_recall_is_announced_after_its_last_run(harness, feed, limit, is_failing):
    session = await harness.session()
    wake = await harness.book(session=session, call_type="recurring", every=HOUR, at=NOON + HOUR, **limit)
    if is_failing:
        harness.executor.by_wake[wake.id] = doing(fail)
    await harness.turn_at(NOON + HOUR)
    last = ("failed", "fired") if is_failing else ("fired", "fired")
    assert await feed.recalls() == [("scheduled", "pending"), ("fired", "pending"), last]
    assert (await said_in(harness, session.id))[-1] == last


# ── What people do ──────────────────────────────────────────────────────────────────────────────────────────────────


async def book(harness, session, **request) -> Any:
    asked = RecallRequest(
        **{"call_type": "once", "when": "in 1 hour", "additional_context_message": "Read notes.txt."} | request
    )
    return (await harness.node.services.recalls.book(asked, session.id, harness.user.id)).wake


async def test_an_edit_a_skip_and_a_cancel_are_announced_in_their_own_words(harness, feed):
    session = await harness.session()
    recalls = harness.node.services.recalls
    await book(harness, session, call_type="recurring", interval_seconds=3600)
    await recalls.edit(session.id, harness.user.id, {"when": "in 2 hours"})
    await recalls.skip(session.id, harness.user.id)
    await recalls.cancel(session.id, harness.user.id)
    actions = [("scheduled", "pending"), ("rescheduled", "pending"), ("skipped", "pending"), ("cancelled", "cancelled")]
    assert (await feed.recalls(), await said_in(harness, session.id)) == (actions, actions)


class DiesAfter:
    """A database whose process dies after a number of transactions."""

    def __init__(self, database, writes: int) -> None:
        self._database = database
        self._left = writes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, *args: Any, **kwargs: Any) -> Any:
        if self._left == 0:
            raise StoreUnavailable("The process has died.")
        self._left -= 1
        return await self._database.write(*args, **kwargs)


EDITS: dict[str, Callable[[Any, Any, Any], Awaitable[Any]]] = {
    "by session": lambda node, wake, user: node.services.recalls.edit(wake.session_id, user.id, {"when": "in 2 hours"}),
    "by id": lambda node, wake, user: node.wakes.edit(wake.id, user.id, {"when": "in 2 hours"}),
}


@pytest.mark.parametrize("way", EDITS)
@pytest.mark.parametrize("writes", [0, 1, 2])
async def test_a_crash_leaves_an_edit_not_made_or_made_and_announced(harness, way, writes):
    session = await harness.session()
    wake = await book(harness, session)
    store = harness.node.store
    whole, store.database = store.database, DiesAfter(store.database, writes)
    await asyncio.gather(EDITS[way](harness.node, wake, harness.user), return_exceptions=True)
    store.database = whole
    after = await harness.wake(wake)
    is_made = after.nominal_at == NOON + 2 * HOUR
    is_announced = ("rescheduled", "pending") in await said_in(harness, session.id)
    assert (is_announced, after.seen_at == NOON) == (is_made, is_made)
    assert is_made == (writes > 0)


async def test_two_changes_of_an_agent_at_once_lose_neither(harness):
    for number in range(5):
        changes: list[dict[str, Any]] = [
            {"name": f"Agent {number}"},
            {"description": f"Number {number}"},
            {"max_iterations": 10 + number},
        ]
        change = partial(harness.node.agents.change, harness.agent.id, harness.user)
        await asyncio.gather(*[change(lambda _, each=each: each) for each in changes])
        agent = await harness.node.agents.get(harness.agent.id, harness.user.id)
        assert (agent.name, agent.description, agent.max_iterations) == (
            f"Agent {number}", f"Number {number}", 10 + number,
        )  # fmt: skip


async def test_a_frame_of_work_that_failed_is_neither_saved_nor_published(harness):
    session = await harness.session()
    wake = await book(harness, session)

    async def slip(tx):
        await tx.wakes.move([(wake, "deferred")])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await harness.node.store.write(slip)
    assert await said_in(harness, session.id) == [("scheduled", "pending")]
    frames = await harness.node.stream.after(session.id, 0)
    assert [json.loads(frame.text)["seq"] for frame in frames] == [1]


async def test_a_session_that_was_opened_by_a_schedule_is_announced(harness, feed):
    wake = await harness.book(kind="session", at=NOON + MINUTE)
    await harness.turn_at(NOON + MINUTE)
    opened = (await harness.wake(wake)).created_session_id
    assert opened in [frame.get("session_id") for frame in await feed.frames() if frame["type"] == "session_update"]
