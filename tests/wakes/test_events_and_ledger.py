"""Recalls on /ws/events compared with the ledger, in every order of events that Hypothesis finds.

People book, edit, skip, cancel, talk, pause and delete; runs fail; the server defers, skips and is killed. Between two
kills a client is sent every change of every wake once, in its order. After a kill it is asked once to load everything,
and holds the truth again.
"""

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fixtures.stores import IS_LONG
from harness import DAY, HOUR, MINUTE, NOON, SECOND, Gate, Harness, doing, eventually
from wakeful.core.errors import WakefulError
from wakeful.core.events import LookAgain
from wakeful.core.frames import recall_status
from wakeful.core.types import Session, Wake

pytestmark = pytest.mark.both_stores

SESSIONS = 3
_starts = itertools.count()

Change = tuple[datetime, str]

which = st.integers(0, SESSIONS - 1)
steps = st.one_of(
    st.tuples(
        st.just("book"),
        which,
        st.sampled_from(["once", "recurring", "immediate"]),
        st.sampled_from(["normal", "low"]),
        st.sampled_from(["skip", "run_once", "run_catchup"]),
    ),
    st.tuples(st.just("wait"), st.sampled_from([MINUTE, 7 * MINUTE, HOUR, 26 * HOUR])),
    st.tuples(st.just("wait"), st.just(HOUR)),
    st.tuples(st.just("edit"), which, st.sampled_from(["in 5 minutes", "in 2 hours"])),
    st.tuples(st.sampled_from(["skip", "cancel", "run_now", "talk", "hush", "fail", "delete"]), which),
    st.tuples(st.sampled_from(["pause", "resume", "kill"])),
)


class Client:
    """A client of /ws/events: what it was sent since it last loaded everything, and what it shows."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness
        self._cursor: int | None = None
        self.resyncs = 0
        self.heard: defaultdict[str, list[str]] = defaultdict(list)
        self.shown: dict[str, tuple[str, datetime]] = {}

    async def read(self) -> None:
        """Read what was sent, as the socket does; if that is gone, load everything."""
        feed, user_id = self._harness.node.services.feed, self._harness.user.id
        frames = None if self._cursor is None else feed.after(user_id, self._cursor)
        if frames is None:
            self.resyncs += 1
            self._cursor = feed.last_seq(user_id)
            self.heard.clear()
            self.shown = {wake.id: show(wake) for wake in await recalls_of(self._harness)}
            return
        for frame in frames:
            self._cursor = frame.seq
            said = json.loads(frame.text)
            if said["type"] == "recall_update":
                self.heard[said["recall_id"]].append(said["action"])
                self.shown[said["recall_id"]] = (said["status"], datetime.fromisoformat(said["trigger_at"]))

    async def read_all(self) -> None:
        """Read until everything that was committed before is there: a last session is announced after it."""
        last = await self._harness.session()
        feed, user_id = self._harness.node.services.feed, self._harness.user.id

        async def is_there() -> bool:
            return any(last.id in frame.text for frame in feed.after(user_id, self._cursor or 0) or ())

        await eventually(is_there)
        await self.read()


class Scene:
    """One harness, a few sessions, and a client that watches."""

    def __init__(self, harness: Harness, stack: AsyncExitStack) -> None:
        self.harness = harness
        self.stack = stack
        self.client = Client(harness)
        self.since = harness.clock.now()  # the last kill
        self.sessions: list[Session] = []
        self.talks: dict[str, Gate] = {}  # by session

    async def begin(self) -> None:
        await self.harness.settle_in()
        self.sessions = [await self.harness.session() for _ in range(SESSIONS)]
        await self.client.read()

    async def step(self, name: str, *args: Any) -> None:
        self.harness.clock.set(self.harness.clock.now() + SECOND)
        with suppress(WakefulError):  # refused, so nothing has changed
            await getattr(self, name)(*args)
        if name != "kill":
            await self.harness.work()

    async def book(self, place: int, call_type: str, priority: str, on_miss: str) -> None:
        session = self.sessions[place]
        await self.harness.book(session=session, call_type=call_type, priority=priority, on_miss=on_miss)

    async def wait(self, length) -> None:
        await self.harness.turn_at(self.harness.clock.now() + length)

    async def edit(self, place: int, when: str) -> None:
        recalls = self.harness.node.services.recalls
        await recalls.edit(self.sessions[place].id, self.harness.user.id, {"when": when})

    async def skip(self, place: int) -> None:
        await self.harness.node.services.recalls.skip(self.sessions[place].id, self.harness.user.id)

    async def cancel(self, place: int) -> None:
        await self.harness.node.services.recalls.cancel(self.sessions[place].id, self.harness.user.id)

    async def run_now(self, place: int) -> None:
        await self.harness.node.services.recalls.run_now(self.sessions[place].id, self.harness.user.id)

    async def talk(self, place: int) -> None:
        session = self.sessions[place]
        if session.id not in self.talks:
            await self.harness.node.runs.ask(session.id, self.harness.user.id, "Hello?")
            self.talks[session.id] = self.harness.executor.by_session[session.id] = self.harness.gate()

    async def hush(self, place: int) -> None:
        gate = self.talks.pop(self.sessions[place].id, None)
        if gate is not None:
            del self.harness.executor.by_session[self.sessions[place].id]
            await self.harness.let_through(gate)

    async def fail(self, place: int) -> None:
        pending = await self.harness.node.services.recalls.pending(self.sessions[place].id, self.harness.user.id)
        if pending is not None:
            self.harness.executor.by_wake[pending.id] = doing(fall)

    async def delete(self, place: int) -> None:
        await self.hush(place)
        await self.harness.node.sessions.delete(self.sessions[place].id, self.harness.user.id)
        self.sessions[place] = await self.harness.session()

    async def pause(self) -> None:
        await self.harness.node.pauses.pause(self.harness.user.id, None, None)

    async def resume(self) -> None:
        await self.harness.node.pauses.resume(self.harness.user.id, None)

    async def kill(self) -> None:
        """Lose the process with its runs and its feed, whether or not the client has read everything."""
        await self.check(is_read=False)
        await self.harness.crash()
        self.talks.clear()
        self.harness.forget_gates()
        await self.stack.aclose()
        self.harness.node = self.harness.another_node()
        await open_node(self.harness, self.stack)
        self.since = self.harness.clock.now()
        resyncs = self.client.resyncs
        await self.client.read()
        assert self.client.resyncs == resyncs + 1

    async def check(self, *, is_read: bool) -> None:
        """Compare what the client was sent since the last kill with the ledger."""
        resyncs = self.client.resyncs
        await (self.client.read_all() if is_read else self.client.read())
        assert self.client.resyncs == resyncs
        wakes = await recalls_of(self.harness)
        for wake in wakes:
            changes = [action for at, action in await self.ledger_of(wake) if at > self.since]
            heard = self.client.heard.get(wake.id, [])
            assert heard == (changes if is_read else changes[: len(heard)]), wake
        assert set(self.client.heard) <= {wake.id for wake in wakes}
        if is_read:
            await self.check_shown(wakes)

    async def check_shown(self, wakes: Sequence[Wake]) -> None:
        for wake in wakes:
            runs = await self.harness.runs_of(wake)
            if not any(run.status in ("queued", "running") for run in runs):  # else its next time is yet to be said
                assert self.client.shown[wake.id] == show(wake)

    async def ledger_of(self, wake: Wake) -> list[Change]:
        """Return the changes of a wake that its rows tell of, in their order."""
        decisions = await self.harness.node.store.read(lambda tx: tx.notices.decisions_of(wake.id))
        words = {"edited": "rescheduled", "deferred": "deferred", "cancelled": "cancelled"}
        changes = [(wake.created_at, "scheduled")]
        changes += [(each.at, words[each.code]) for each in decisions if each.code in words]
        if wake.reason == "session_deleted":
            changes.append((wake.updated_at, "cancelled"))
        ended_at = next((at for at, action in changes if action == "cancelled"), None)
        rows = await self.harness.runs_of(wake)
        folded = {each.at for each in decisions if each.code == "folded"}
        begun = folded | {run.queued_at for run in rows if run.status != "skipped" or run.reason == "no_slot"}
        skips = {
            run.finished_at
            for run in rows
            if run.reason in ("skipped_by_request", "no_slot")
            or (run.reason in ("missed", "user_active") and run.status == "skipped" and run.queued_at not in begun)
        }
        changes += [(at, "skipped") for at in skips if at is not None]
        for run in sorted(rows, key=lambda run: (run.started_at or NOON, run.nominal_at)):
            if run.started_at is not None:
                changes.append((run.started_at, "fired"))
            if run.started_at is not None and run.finished_at is not None:
                changes += [(run.finished_at, "failed")] if run.status in ("failed", "interrupted") else []
                is_back = wake.is_recurring and (ended_at is None or ended_at > run.finished_at)
                changes += [(run.finished_at, "rescheduled")] if is_back else []
        return sorted(changes, key=lambda change: change[0])


async def fall(_run: object) -> None:
    raise RuntimeError("no such file")


def show(wake: Wake) -> tuple[str, datetime]:
    return recall_status(wake.status), wake.nominal_at


async def recalls_of(harness: Harness) -> list[Wake]:
    return await harness.node.wakes.find(harness.user.id, most=1_000)


def compare(make_settings: Callable[[], dict[str, Any]], examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=not IS_LONG,
        phases=[Phase.generate, *([Phase.shrink] if IS_LONG else [])],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.lists(steps, min_size=12, max_size=40))
    def test(chosen: list[tuple[Any, ...]]) -> None:
        asyncio.run(play(make_settings(), chosen))

    test()


async def open_node(harness: Harness, stack: AsyncExitStack) -> None:
    """Open the harness's node; on a shared store it has every client look again once it listens to the others."""
    is_listening = asyncio.Event()
    harness.node.store.on(LookAgain, lambda _: is_listening.set())
    await stack.enter_async_context(harness.node.opened())
    if harness.node.store.is_shared:
        await is_listening.wait()


async def play(chosen_settings: dict[str, Any], chosen: Sequence[tuple[Any, ...]]) -> None:
    harness = Harness(chosen_settings, now=NOON + 30 * next(_starts) * DAY)
    async with AsyncExitStack() as stack:
        await open_node(harness, stack)
        scene = Scene(harness, stack)
        await scene.begin()
        for step in chosen:
            await scene.step(*step)
        for place in range(SESSIONS):
            await scene.step("hush", place)
        await scene.step("wait", HOUR)
        await scene.check(is_read=True)
        harness.clock.set(harness.clock.now() + SECOND)
        await harness.node.agents.delete(harness.agent.id, harness.user.id)


def test_on_each_store_a_client_of_events_hears_what_the_ledger_says(backend_settings):
    is_shared = "database_url" in backend_settings
    few, many = (3, 200) if is_shared else (8, 1_000)
    compare(lambda: backend_settings | {"lease_seconds": 30}, many if IS_LONG else few)
