"""The engine compared with a small model, in every order of events that Hypothesis finds.

The model knows a wake as a first instant and a period, and counts how many of its instants were judged. The engine
knows it as rows in a real store. After every step the two are compared: each planned instant is in exactly one row,
none comes early, nothing that ended changes, and a run is finished only by the process that holds it.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fixtures.stores import IS_LONG, empty_database
from harness import DAY, HOUR, MINUTE, NOON, SECOND, Harness
from wakeful.core.records import Outcome
from wakeful.core.types import FOREVER, Run, Wake
from wakeful.runs.claims import Claims
from wakeful.timing.lifecycle import WakeNotLive
from wakeful.wakes.firing import Firing

pytestmark = pytest.mark.both_stores

MICROSECOND = timedelta(microseconds=1)
LEASE = 30 * SECOND
GRACE = 5 * MINUTE
MAX_CAUGHT_UP = 10
MAX_WAKES = 8  # that many are enough to meet each other
FAILURES_BEFORE_BACKOFF = 5
ENDED = ("success", "failed", "stopped", "skipped", "interrupted")

KOLKATA = "Asia/Kolkata"  # five and a half hours ahead all year round, so its cron grids are plain arithmetic
CRONS = {
    "*/5 * * * *": (timedelta(0), 5 * MINUTE),
    "0 * * * *": (30 * MINUTE, HOUR),
    "30 6 * * *": (HOUR, DAY),
}

moments = st.sampled_from([timedelta(0), SECOND, 10 * SECOND, MINUTE, 7 * MINUTE, HOUR, 30 * HOUR])
periods = st.sampled_from([10 * SECOND, 90 * SECOND, 10 * MINUTE, HOUR, DAY])
policies = st.sampled_from(["skip", "run_once", "run_catchup"])
forward = st.sampled_from([SECOND, 29 * SECOND, 31 * SECOND, 61 * SECOND, 4 * MINUTE, 6 * MINUTE, HOUR, 25 * HOUR])
back = st.sampled_from([-SECOND, -MINUTE, -10 * MINUTE, -HOUR, -5 * HOUR])
outcomes = st.sampled_from(["success", "failed", "failed", "stopped"])
bookings = st.fixed_dictionaries(
    {
        "what": st.sampled_from(["recall", "message", "interval", "interval", "cron"]),
        "who": st.integers(0, 1),
        "on_miss": policies,
        "ahead": moments,
        "every": periods,
        "cron": st.sampled_from(sorted(CRONS)),
        "length": st.sampled_from([None, None, timedelta(0), 10 * MINUTE, 3 * HOUR]),
        "max_runs": st.sampled_from([None, None, 1, 3]),
    }
)


@dataclass
class Plan:
    """A row of planned instants, and how many of them have been judged."""

    first: datetime
    period: timedelta | None  # None: this one only
    judged: int = 0

    def instant(self, number: int) -> datetime:
        return self.first + number * self.period if self.period is not None else self.first

    def due(self, now: datetime) -> int:
        if now < self.first:
            return 0
        return (now - self.first) // self.period + 1 if self.period is not None else 1


@dataclass(eq=False)
class Promise:
    """A wake in the model."""

    id: str
    agent_id: str
    session_id: str
    on_miss: str
    plan: Plan
    cron: str | None = None
    until: datetime | None = None
    max_runs: int | None = None
    started: int = 0
    failures: int = 0  # in a row
    was_held: bool = False  # by a deferral or back-off: then its lateness is none
    is_cancelled: bool = False
    rows: dict[str, Run] = field(default_factory=dict)  # as last seen

    def due(self, now: datetime) -> int:
        return self.plan.due(now if self.until is None else min(now, self.until))


@dataclass(eq=False)
class Hold:
    """A claim, as the process that made it remembers it."""

    run: Run
    owner: str
    lease_until: datetime
    is_lost: bool = False  # taken back by someone
    is_done: bool = False


class Engine(RuleBasedStateMachine):
    """One node after the other on one store, as long as the example lasts."""

    promises = Bundle("promises")
    holds = Bundle("holds")

    def __init__(self, store_settings: dict[str, object]) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.harness = Harness(store_settings)
        self.known: dict[str, Promise] = {}
        self.held: list[Hold] = []
        self.pauses: list[tuple[str | None, datetime]] = []  # whose, until when
        self.ends: dict[str, Run] = {}
        self.edits = 0
        self.start()
        self.do(self.settle_in())

    # ── The world ───────────────────────────────────────────────────────────────────────────────────────────────────

    def do(self, coroutine):
        return self.loop.run(coroutine)

    @property
    def now(self) -> datetime:
        return self.harness.clock.now()

    async def settle_in(self) -> None:
        await self.harness.settle_in()
        other = await self.harness.add_agent()
        self.agents = [self.harness.agent, other]

    def start(self) -> None:
        self.node = self.harness.node = self.harness.another_node()
        self.owner = token_hex(4)
        self.do(self.node.store.open(self.now))

    def claims_of(self, owner: str) -> Claims:
        return Claims(self.node.store, self.harness.clock, self.node.rules, owner, LEASE)

    def is_paused(self, agent_id: str) -> bool:
        return any(who in (None, agent_id) and until > self.now for who, until in self.pauses)

    def was_ever_paused(self, agent_id: str) -> bool:
        return any(who in (None, agent_id) for who, _ in self.pauses)

    def teardown(self) -> None:
        self.do(self.node.store.close())
        self.loop.close()
        shutil.rmtree(self.harness.settings["data_dir"], ignore_errors=True)

    # ── What people do ──────────────────────────────────────────────────────────────────────────────────────────────

    @initialize(target=promises, booking=bookings)
    def begin(self, booking):
        return self.book(**booking)

    @precondition(lambda self: len(self.known) < MAX_WAKES)
    @rule(target=promises, booking=bookings)
    def add(self, booking):
        return self.book(**booking)

    @precondition(lambda self: len(self.known) < MAX_WAKES)
    @rule(target=promises, promise=promises, ahead=moments)
    def add_beside(self, promise, ahead):
        """A message in the session of another wake, so that a recall finds its session busy with something else."""
        agent = next(agent for agent in self.agents if agent.id == promise.agent_id)
        session = self.do(self.node.store.read(lambda tx: tx.sessions.get(promise.session_id, agent.user_id)))
        wake = self.do(self.harness.book(agent=agent, session=session, kind="message", at=self.now + ahead))
        return self.promise(wake, Plan(self.now + ahead, None))

    def book(self, what, who, on_miss, ahead, every, cron, length, max_runs) -> Promise:
        first = self.now + ahead
        common = {"agent": self.agents[who], "on_miss": on_miss}
        if what == "cron":
            request = common | {"call_type": "recurring", "cron": cron, "timezone": KOLKATA}
            return self.promise(self.do(self.harness.book(**request)), plan_by_cron(cron, after=self.now), cron=cron)
        if what == "interval":
            until = None if length is None else first + length
            request = common | {"call_type": "recurring", "at": first, "every": every}
            wake = self.do(self.harness.book(**request, until=until, max_runs=max_runs))
            return self.promise(wake, Plan(first, every), until=until, max_runs=max_runs)
        wake = self.do(self.harness.book(**common, kind=what, at=first))
        return self.promise(wake, Plan(first, None))

    def promise(self, wake: Wake, plan: Plan, **what) -> Promise:
        promise = Promise(wake.id, wake.agent_id, wake.session_id, wake.on_miss, plan, **what)
        self.known[wake.id] = promise
        self.compare()
        return promise

    @rule(promise=promises, what=st.sampled_from(["time", "interval", "policy"]), booking=bookings)
    def edit(self, promise, what, booking):
        if what == "time":
            self.edit_time(promise, booking["ahead"])
        elif what == "interval":
            self.edit_interval(promise, booking["every"])
        else:
            self.edit_policy(promise, booking["on_miss"], booking["max_runs"])
        self.compare()

    def edit_time(self, promise: Promise, ahead: timedelta) -> None:
        """Plan afresh, at instants that have no row yet: a run's name is its wake and instant, so there is one."""
        self.edits += 1
        at = self.now + ahead + self.edits * MICROSECOND
        plan = Plan(at, promise.plan.period)
        if promise.cron is not None:
            plan = plan_by_cron(promise.cron, after=at - MICROSECOND)
            if any(row.nominal_at >= plan.first for row in promise.rows.values()):
                return
        if self.change(promise, {"nominal_at": at, "until": None}):
            promise.plan, promise.until, promise.was_held = plan, None, False

    def edit_interval(self, promise: Promise, every: timedelta) -> None:
        if promise.plan.period is None or promise.cron is not None:
            return
        first = max(promise.plan.instant(promise.plan.judged), self.now)
        if promise.until is not None and promise.until < first:
            return
        if self.change(promise, {"every": every}):
            promise.plan, promise.was_held = Plan(first, every), False

    def edit_policy(self, promise: Promise, on_miss: str, max_runs: int | None) -> None:
        """A change of anything but the time moves no planned instant."""
        changes: dict[str, object] = {"on_miss": on_miss, "instructions": "Read it again."}
        if promise.plan.period is not None and max_runs is not None and promise.started < max_runs:
            changes["max_runs"] = max_runs
        if self.change(promise, changes):
            promise.on_miss = on_miss
            promise.max_runs = max_runs if "max_runs" in changes else promise.max_runs

    def change(self, promise: Promise, changes: dict[str, object]) -> bool:
        try:
            self.do(self.harness.change_wake(promise.id, changes))
        except WakeNotLive:
            assert self.read_wake(promise).status != "pending"
            return False
        return True

    @rule(promise=promises, is_for_good=st.sampled_from([False, False, True]))
    def skip_or_cancel(self, promise, is_for_good):
        if is_for_good:
            self.cancel(promise)
        elif promise.plan.period is not None:
            self.skip(promise)

    def cancel(self, promise: Promise) -> None:
        try:
            self.do(self.node.wakes.cancel(promise.id, self.harness.user.id))
            promise.is_cancelled = True
        except WakeNotLive:
            assert self.read_wake(promise).status not in ("pending", "queued")
        self.compare()

    def skip(self, promise: Promise) -> None:
        try:
            self.do(self.node.wakes.skip(promise.id, self.harness.user.id))
        except WakeNotLive:
            assert self.read_wake(promise).status != "pending"
            self.compare()
        else:
            upcoming = promise.plan.instant(promise.plan.judged)
            self.compare(skipped=promise)
            assert promise.plan.judged == promise.due(max(self.now, upcoming))

    @rule(who=st.sampled_from([None, 0, 1]), length=st.sampled_from([None, MINUTE, HOUR, DAY]))
    def pause(self, who, length):
        agent_id = None if who is None else self.agents[who].id
        until = None if length is None else self.now + length
        self.do(self.node.pauses.pause(self.harness.user.id, agent_id, until))
        self.lift(agent_id)
        self.pauses.append((agent_id, until or FOREVER))
        self.compare()

    @precondition(lambda self: any(until > self.now for _, until in self.pauses))
    @rule(which=st.integers(0, 9))
    def resume(self, which):
        held = [who for who, until in self.pauses if until > self.now]
        agent_id = held[which % len(held)]
        assert self.do(self.node.pauses.resume(self.harness.user.id, agent_id))
        self.lift(agent_id)
        assert not self.do(self.node.pauses.resume(self.harness.user.id, agent_id))
        self.compare()

    def lift(self, agent_id: str | None) -> None:
        """A lifted pause has been one until now, by the clock on the wall."""
        self.pauses = [(who, min(until, self.now) if who == agent_id else until) for who, until in self.pauses]

    # ── What time does ──────────────────────────────────────────────────────────────────────────────────────────────

    @rule(by=st.one_of(forward, back))
    def step(self, by):
        """Nobody looks: a suspended machine, or a clock that was set back."""
        self.pass_by(by)

    def pass_by(self, by: timedelta) -> None:
        if by < timedelta(0):
            self.harness.clock.step(by)
        else:
            self.harness.clock.advance(by)

    @rule(by=forward)
    def live_on(self, by):
        self.harness.clock.advance(by)
        self.tick()

    @rule(promise=promises)
    def live_until_its_next_instant(self, promise):
        upcoming = promise.plan.instant(promise.plan.judged)
        if self.now < upcoming < NOON + 1000 * DAY:
            self.harness.clock.set(upcoming)
        self.tick()

    @rule(away=st.one_of(st.just(timedelta(0)), forward, back))
    def crash_and_restart(self, away):
        """Nothing is drained or released: what the process held stays held by nobody."""
        self.do(self.node.store.close())
        self.pass_by(away)
        self.start()
        if not self.node.store.is_shared:
            firing = Firing(self.node.store, self.harness.clock, self.node.rules, self.owner)
            while self.do(firing.recover(every_other_owner=True)):
                pass
            for hold in self.held:
                hold.is_lost = True
        self.compare()

    # ── What the engine does ────────────────────────────────────────────────────────────────────────────────────────

    @rule()
    def tick(self):
        before = {promise.id: promise.plan.judged for promise in self.known.values()}
        is_busy = {hold.run.session_id for hold in self.held if self.is_running(hold)}
        if self.harness.clock.seconds_since_step() >= LEASE.total_seconds():  # nobody judges leases soon after a step
            for hold in self.held:
                hold.is_lost |= not self.now < hold.lease_until <= self.now + 3 * LEASE
        self.do(self.node.engine.scheduler.turn())
        wakes = self.compare(is_firing=True)
        for promise in self.known.values():
            wake = wakes[promise.id]
            if self.is_paused(promise.agent_id):
                assert promise.plan.judged == before[promise.id], "fired while paused"
            elif wake.status == "pending":
                self.check_all_judged(promise, wake, is_busy)

    def check_all_judged(self, promise: Promise, wake: Wake, is_busy: set[str | None]) -> None:
        if wake.attempt_at > self.now and wake.held_by == "deferred":
            assert promise.was_held or promise.session_id in is_busy, "deferred for nobody"
            promise.was_held = True
        elif wake.attempt_at > self.now and wake.held_by == "backoff":
            assert promise.failures >= FAILURES_BEFORE_BACKOFF
            promise.was_held = True
        else:
            # More than that, after a skip or when the clock went back.
            assert promise.plan.judged >= promise.due(self.now), "due, free and not judged"

    @rule(target=holds, most=st.integers(1, 3), is_calling=st.booleans())
    def claim(self, most, is_calling):
        return multiple(*self.take(most, is_calling=is_calling))

    def take(self, most: int, *, is_calling: bool = True) -> list[Hold]:
        rows = [row for promise in self.known.values() for row in promise.rows.values()]
        busy = {row.session_id for row in rows if row.status == "running"}
        taken = [claimed.run for claimed in self.do(self.claims_of(self.owner).claim(most))]
        assert len(taken) <= most
        assert not busy & {run.session_id for run in taken}, "claimed in a busy session"
        assert len({run.session_id for run in taken}) == len(taken), "two of one session"
        assert not [run for run in taken if self.is_paused(run.agent_id) and run.fence == 1], "claimed while paused"
        assert taken or not self.claimable(rows, busy), "free, queued and not claimed"
        for run in taken if is_calling else ():
            self.do(self.claims_of(self.owner).record_call(run))
        made = [Hold(run, self.owner, self.now + LEASE) for run in taken]
        self.held += made
        self.compare()
        return made

    def claimable(self, rows: list[Run], busy: set[str | None]) -> list[Run]:
        is_probing = any(row.status == "running" and row.is_resuming for row in rows)
        first: dict[str | None, Run] = {}
        for row in sorted(rows, key=lambda row: (not row.is_resuming, row.nominal_at, row.turn, row.id)):
            if row.status == "queued" and row.session_id not in busy:
                first.setdefault(row.session_id, row)
        return [
            row
            for row in first.values()
            if not (row.is_resuming and is_probing)
            and (row.started_at is not None or not self.is_paused(row.agent_id))  # what has begun outlasts a pause
        ]

    @rule(hold=holds, status=outcomes)
    def finish(self, hold, status):
        promise = self.known[hold.run.wake_id]
        is_ours = self.is_running(hold)
        assert self.do(self.claims_of(hold.owner).finish(hold.run, Outcome(status=status))) == is_ours
        if is_ours:
            assert promise.rows[hold.run.id].status == "running", "finished twice"
            hold.is_done = True
            promise.failures = promise.failures + 1 if status == "failed" else 0
        self.compare()
        if is_ours:
            assert promise.rows[hold.run.id].status == status

    @rule(status=outcomes)
    def finish_all(self, status):
        for hold in self.held:
            self.finish(hold, status)

    @rule(status=outcomes)
    def work(self, status):
        """As the runner does: claim, carry out, finish, until nothing waits."""
        while any(self.is_running(hold) for hold in self.take(3)):
            self.finish_all(status)

    @rule()
    def beat(self):
        """The heartbeat of every process that ever was, as far as it still holds something."""
        for owner in {hold.owner for hold in self.held}:
            mine = [hold for hold in self.held if hold.owner == owner and self.is_running(hold)]
            assert self.do(self.renew(owner)) == {(hold.run.id, hold.run.fence) for hold in mine}
            for hold in mine:
                hold.lease_until = self.now + LEASE

    async def renew(self, owner: str) -> set[tuple[str, int]]:
        claims = self.claims_of(owner)
        connection = await claims.open_heartbeat()
        try:
            return await claims.renew(connection)
        finally:
            await connection.close()

    def is_running(self, hold: Hold) -> bool:
        return not (hold.is_lost or hold.is_done)

    # ── The comparison ──────────────────────────────────────────────────────────────────────────────────────────────

    def read_wake(self, promise: Promise) -> Wake:
        return self.do(self.node.wakes.get(promise.id, self.harness.user.id))

    def compare(self, *, is_firing: bool = False, skipped: Promise | None = None) -> dict[str, Wake]:
        """Read everything back, and find every new row where the model expects the next planned instant."""

        async def read(tx):
            return {each: (await tx.wakes.read(each), await tx.runs.of_wake(each)) for each in self.known}

        found = self.do(self.node.store.read(read))
        for promise in self.known.values():
            wake, rows = found[promise.id]
            may_grow = is_firing or promise is skipped
            self.compare_rows(promise, rows, may_grow=may_grow, may_be_early=promise is skipped)
            self.compare_wake(promise, wake)
        return {wake.id: wake for wake, _ in found.values()}

    def compare_rows(self, promise: Promise, rows: list[Run], *, may_grow: bool, may_be_early: bool) -> None:
        plan, before = promise.plan, promise.rows
        new = [row for row in rows if row.id not in before]
        folded = sum(row.covers - before[row.id].covers for row in rows if row.id in before)
        assert not before.keys() - {row.id for row in rows}, "a row is gone"
        assert may_grow or not (new or folded), "a row out of nothing"
        assert folded >= 0
        for row in new:
            assert row.covers >= 1
            assert row.nominal_at == plan.instant(plan.judged), "a planned instant is lost, or covered twice"
            plan.judged += row.covers
        plan.judged += folded
        if (new or folded) and not may_be_early:
            assert plan.instant(plan.judged - 1) <= self.now, "early"
        to_run = [row for row in new if row.status != "skipped"]
        assert len(to_run) <= (MAX_CAUGHT_UP if promise.on_miss == "run_catchup" else 1)
        if promise.on_miss == "skip" and not promise.was_held and not self.was_ever_paused(promise.agent_id):
            assert all(row.nominal_at >= self.now - GRACE for row in to_run), "ran although missed"
        promise.started += len(to_run)
        promise.rows = {row.id: row for row in rows}
        for row in rows:
            if row.status in ENDED:
                promise.failures += row.status == "interrupted" and row.id not in self.ends
                assert self.ends.setdefault(row.id, row) == row, "changed after its end"

    def compare_wake(self, promise: Promise, wake: Wake) -> None:
        plan = promise.plan
        assert wake.held_by != "error"
        assert wake.attempt_at >= wake.nominal_at
        if promise.max_runs is not None:
            assert promise.started <= max(promise.max_runs, 1)
        if wake.status == "pending":
            assert not promise.is_cancelled
            assert wake.nominal_at == plan.instant(plan.judged)
        elif promise.is_cancelled:
            assert wake.status == "cancelled"
        elif plan.period is None:
            assert plan.judged == 1
        elif wake.reason == "until":
            assert plan.judged == promise.due(FOREVER)
        else:
            assert wake.reason == "max_runs"
            assert promise.started >= promise.max_runs


def plan_by_cron(cron: str, after: datetime) -> Plan:
    phase, period = CRONS[cron]
    origin = datetime(2026, 1, 1, tzinfo=UTC) + phase
    return Plan(origin + ((after - origin) // period + 1) * period, period)


def profile(examples: int, long: int) -> settings:
    return settings(
        max_examples=long if IS_LONG else examples,
        stateful_step_count=120 if IS_LONG else 80,
        derandomize=not IS_LONG,
        database=None,
        report_multiple_bugs=False,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Memory is as good as a disk here: what a crash of the machine does is not what is asked."""
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="wakeful-model-", dir=shm if os.access(shm, os.W_OK) else None) as name:
        yield Path(name)


def test_sqlite_keeps_every_promise_of_the_model():
    with quick_folder() as folder:

        def begin() -> Engine:
            here = folder / token_hex(8)
            return Engine({"data_dir": here, "config_dir": here, "store_encryption": False, "lease_seconds": 30})

        run_state_machine_as_test(begin, settings=profile(45, 1_000))


def test_postgres_keeps_every_promise_of_the_model(postgres_url, tmp_path):
    def begin() -> Engine:
        empty_database(postgres_url)
        return Engine({"data_dir": tmp_path, "config_dir": tmp_path, "database_url": postgres_url, "lease_seconds": 30})

    run_state_machine_as_test(begin, settings=profile(8, 200))
