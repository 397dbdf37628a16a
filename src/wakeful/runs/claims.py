"""Ownership of runs: claims, leases, saved steps, finishes. Every write checks that the run is still ours."""

import logging
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import ErrorFrame, RunFrame, StepSaved
from wakeful.core.labels import LOOP_ENDED
from wakeful.core.records import NodeIdentity, Outcome
from wakeful.core.texts import title_of
from wakeful.core.types import ClaimedRun, Decision, Message, Rules, Run, Wake
from wakeful.core.values import replace
from wakeful.core.zones import format_duration
from wakeful.homes.directories import Directories
from wakeful.notices.texts import describe_end, make_notice
from wakeful.runs.rules import OUTAGE, LeaseLost, try_again_at
from wakeful.sessions.presence import hold_wakes
from wakeful.store.agents import NoSuchAgent
from wakeful.store.drivers.database import SideConnection, Together
from wakeful.store.rows import to_micros
from wakeful.store.runs import Claimed
from wakeful.store.sessions import NoSuchSession
from wakeful.store.store import Store, Tx
from wakeful.timing import lifecycle, next_run_request
from wakeful.timing.fire_rule import decision

log = logging.getLogger(__name__)

_MAX_USER_RUNS = 256  # of one claim; people are never held back by a number


class _Ending(NamedTuple):
    """The end of a run, with everything about it that is not saved yet."""

    run: ClaimedRun
    outcome: Outcome
    last_step: StepSaved | None
    unsaved: Sequence[RunFrame]
    last_frame: RunFrame | None


class Claims:
    """The runs that one process holds."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rules: Rules,
        owner: str,
        lease: timedelta,
        directories: Directories | None = None,  # None: a node without a data directory
        node: NodeIdentity | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self.owner = owner
        self._lease = lease
        self._directories = directories
        self._node = node
        self._finish_together = Together(self._finish_all)
        self._renewed_at = clock.monotonic()
        self._is_failing = False  # to renew
        self._behind_until = self._renewed_at
        self._record_together = Together(self._record_calls)

    @property
    def lease(self) -> timedelta:
        return self._lease

    @property
    def passes_by(self) -> bool:
        """Whether a claim leaves out rows that another transaction holds: PostgreSQL has many at once."""
        return self._store.is_shared

    @property
    def is_behind(self) -> bool:
        """Whether the store was unavailable for so long that leases of live owners have run out.

        Until each had the time to renew its own, a lease that has run out says nothing.
        """
        now, most = self._clock.monotonic(), self._lease.total_seconds() * 2 / 3
        return now < self._behind_until or (self._is_failing and now - self._renewed_at > most)

    async def claim(self, headless: int) -> list[Claimed]:
        """Claim every user's run whose session is free, and up to that number of headless ones."""
        now = self._clock.now()
        alive_since = None if self._directories is None else self._directories.alive_since(now)

        async def work(tx: Tx) -> list[Claimed]:
            return await tx.runs.claim(
                self.owner,
                now,
                self._lease,
                alive_since,
                messages=_MAX_USER_RUNS,
                headless=headless,
                rules=self._rules,
                node=self._node,
            )

        # A claim that a power failure undoes is made again; the first step that the run saves makes it durable.
        return await self._store.write(work, is_synced=False, is_single=True)

    async def record_call(self, run: Run) -> None:
        """Count this start of a run as an attempt, before its first model or tool call; raise if it is not ours."""
        if not await self._record_together(run):
            raise LeaseLost(run)

    async def saved_steps(self, run: Run) -> list[Message]:
        """Return what an earlier attempt at this run had saved."""
        return await self._store.read(lambda tx: tx.sessions.steps_of(run.id))

    async def save(self, run: ClaimedRun, step: StepSaved | None, frames: Sequence[RunFrame], writing_id: str) -> None:
        """Save a step and the frames up to it, or raise if the run is no longer ours.

        The same writing is done once. Frames are saved before subscribers see them.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            if not await tx.runs.holds_lease(run):
                raise LeaseLost(run)
            if step is not None:
                await tx.sessions.append(_message(run, step, writing_id, now))
                await _save_facts(tx, run, step)
                if run.is_resuming:
                    await tx.runs.leave_probation(run.id)
            tx.say(run.session_id, frames, now, run_id=run.id, writing_id=writing_id)

        await self._store.write(work, is_repeatable=True)

    async def finish(
        self,
        run: ClaimedRun,
        outcome: Outcome,
        last_frame: RunFrame | None = None,
        *,
        last_step: StepSaved | None = None,
        unsaved: Sequence[RunFrame] = (),
    ) -> bool:
        """Write the end of a run, with its last step and frames. False if it was no longer ours: nothing was written.

        The final answer and the run's status are one transaction: killed at any moment, either both are there or
        neither is.
        """
        return await self._finish_together(_Ending(run, outcome, last_step, unsaved, last_frame))

    @property
    def is_store_away(self) -> bool:
        return self._store.health.problem is not None

    async def release_all_but(self, claims: Collection[tuple[str, int]]) -> int:
        """Release every run that is ours in the store besides these (run id, fence), not counted as an attempt."""

        async def work(tx: Tx) -> int:
            ours = await tx.runs.held_by(self.owner)
            return await tx.runs.release([run for run in ours if (run.id, run.fence) not in claims])

        return await self._store.write(work)

    async def put_off(self, run: Run, why: str) -> None:
        """Release a run because of a shortage in this process, and record that for the wake's `why`, once."""
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            if not await tx.runs.release([run]) or run.wake_id is None:
                return
            if any(each.run_id == run.id and each.code == why for each in await tx.notices.decisions_of(run.wake_id)):
                return
            await tx.notices.record(
                [Decision(wake_id=run.wake_id, nominal_at=run.nominal_at, at=now, code=why, run_id=run.id)]
            )

        await self._store.write(work)

    async def hold(self, run: ClaimedRun, error: str) -> bool:
        """Queue the run of a once-wake again for later, because its model does not answer. False: it has failed."""
        now = self._clock.now()

        async def work(tx: Tx) -> bool:
            wake = None if run.wake_id is None else await tx.wakes.get(run.wake_id)
            if wake is None or wake.is_recurring or wake.status != "running":  # else a person started it once more
                return False
            if wake.slot is not None and await tx.wakes.live_in_slot(wake.slot) is not None:
                return False  # booked since this one has begun
            tried = [each.at for each in await tx.notices.decisions_of(wake.id) if each.code == OUTAGE]
            until = try_again_at(min(tried, default=now), now, self._rules)
            if until is None or not await tx.runs.hold(run, until):
                return False
            held = replace(wake, status="queued", attempt_at=until, held_by=OUTAGE, updated_at=now)
            await tx.wakes.move([(held, "deferred")])
            said = decision(wake, now, OUTAGE, run_id=run.id, until=until.isoformat(), error=error)
            await tx.notices.record([said])
            text = f"{error} It is tried again by itself in {format_duration(until - now)}."
            tx.say(run.session_id, [ErrorFrame(message=text, code=OUTAGE)], now, run_id=run.id)
            return True

        return await self._store.write(work)

    async def stops(self) -> list[str]:
        """Return the ids of our runs with a stop request."""
        return await self._store.read(lambda tx: tx.runs.stops_of(self.owner), is_single=True)

    async def open_heartbeat(self) -> SideConnection:
        """Open the connection that renews the leases; it belongs to the thread that calls this."""
        with self._recording_failures():
            return await self._store.side_connection()

    async def renew(self, connection: SideConnection) -> set[tuple[str, int]]:
        """Renew all our leases and return the runs that are still ours, each with its fence."""
        until, asked = self._clock.now() + self._lease, self._clock.monotonic()
        with self._recording_failures():
            rows = await connection.fetch("renew_leases", {"owner": self.owner, "lease_until": to_micros(until)})
        if self._is_failing and asked - self._renewed_at > self._lease.total_seconds() * 2 / 3:
            self._behind_until = asked + self._lease.total_seconds() / 3
        self._is_failing, self._renewed_at = False, asked
        if self._directories is not None:
            await self._directories.beat(connection)
        return {(row["id"], row["fence"]) for row in rows}

    @contextmanager
    def _recording_failures(self) -> Generator[None]:
        try:
            yield
        except StoreUnavailable:
            self._is_failing = True
            raise

    async def _record_calls(self, runs: Sequence[Run]) -> list[bool]:
        # Not synced: it survives a crash of the process, and after a power failure one attempt more is harmless.
        ours = await self._store.write(
            lambda tx: tx.runs.record_calls(runs), is_synced=False, is_single=True, is_repeatable=True
        )
        return [run.id in ours for run in runs]

    async def _finish_all(self, endings: Sequence[_Ending]) -> list[bool]:
        now = self._clock.now()
        outcomes = [(ending.run, ending.outcome) for ending in endings]

        async def work(tx: Tx) -> set[str]:
            ours = await tx.runs.finish(outcomes, now)
            settled = [
                (run.wake_id, "stopped" if outcome.status == "stopped" else outcome.reason)
                for run, outcome in outcomes
                if run.wake_id is not None and run.id in ours and outcome.status != "failed"
            ]
            for ending in endings:
                if ending.run.id in ours and ending.outcome.status != "failed":
                    _say_end(tx, ending, now)  # before its wake's next time, which would come between its frames
            await tx.wakes.mark_finished(settled, now)
            await hold_wakes(tx, [run for run, _ in outcomes if run.id in ours], now, self._rules)
            for ending in endings:
                if ending.run.id in ours:
                    await self._end(tx, ending, now)
            return ours

        ours = await self._store.write(work)
        for run, _ in outcomes:
            if run.id not in ours:
                log.warning("stale finish refused", extra={"run_id": run.id, "fence": run.fence})
        return [run.id in ours for run, _ in outcomes]

    async def _end(self, tx: Tx, ending: _Ending, now: datetime) -> None:
        """Save the last step, the usage and the notices of one run."""
        run, outcome, step = ending.run, ending.outcome, ending.last_step
        if step is not None:
            with suppress(NoSuchSession):  # deleted meanwhile
                await tx.sessions.append(_message(run, step, ids.new_id(now), now))
            await _save_facts(tx, run, step)
        if outcome.status == "failed":
            await record_failure(tx, run, outcome.reason, outcome.error, now, self._rules)
            _say_end(tx, ending, now)  # after its wake has failed: clients load the session again on this frame
            return
        if outcome.note == "unkept_promise":
            await add_unkept_promise_notice(tx, run, now)
        await add_loop_end_notice(tx, run, now)


async def _save_facts(tx: Tx, run: ClaimedRun, step: StepSaved) -> None:
    """Save what a run has used and read up to a step."""
    if step.usage is not None:
        await tx.usage.save(step.usage)
    if step.outside_sources is not None:
        await tx.runs.mark(run.id, step.outside_sources)


def _say_end(tx: Tx, ending: _Ending, now: datetime) -> None:
    """Add the last frames of a run, published after the commit: a message that a client then sends is accepted."""
    run = ending.run
    last = [] if ending.last_frame is None else [ending.last_frame]
    tx.say(run.session_id, [*ending.unsaved, *last], now, run_id=run.id)


def _message(run: ClaimedRun, step: StepSaved, message_id: str, now: datetime) -> Message:
    return Message(
        id=message_id,
        session_id=run.session_id,
        position=0,
        role=step.role,
        content=step.content,
        created_at=now,
        run_id=run.id,
        is_recall=step.is_recall,
        source=step.source,
        wake_id=run.wake_id,
        label=step.label,
        data=step.data,
    )


# ── Effects of the end of a run on its wake ───────────────────────────────────────────────────────────────────────────


async def cancel_wake(tx: Tx, wake: Wake, reason: str | None, now: datetime, *, run_reason: str) -> Wake:
    """Cancel a live wake, and skip its runs that have not begun."""
    after = lifecycle.cancel(wake, reason, now)
    await tx.runs.end_queued_of_wakes([wake.id], "skipped", run_reason, now)
    await tx.wakes.move([(after, "cancelled")])
    await tx.notices.record([lifecycle.explain_cancelled(wake, reason, now)])
    return after


async def end_wake(
    tx: Tx,
    run: Run,
    status: Literal["fired", "skipped", "failed"],
    reason: str | None,
    now: datetime,
    error: str | None = None,
) -> bool:
    """End the wake of a run that did not succeed; a recurring one continues with its next occurrence.

    Return whether its owner has a notice that no next run is scheduled.
    """
    if run.wake_id is None:
        return False
    wake = await tx.wakes.get(run.wake_id)
    if wake.status in ("queued", "running"):
        action = status
        if status == "fired":  # stopped: a run that has begun was announced then, any other never begins
            action = None if wake.status == "running" else "cancelled"
        await tx.wakes.move([(replace(wake, status=status, reason=reason, error=error, updated_at=now), action)])
    elif status == "skipped":
        await tx.wakes.move([(replace(wake, updated_at=max(wake.updated_at, now)), "skipped")])
    return await add_loop_end_notice(tx, run, now)


async def add_loop_end_notice(tx: Tx, run: Run, now: datetime) -> bool:
    """Add one notice when an agent that booked its own next runs has no further one, not even a person's.

    Call it after the run's row and its wake were saved. It reads nothing for runs that the agent did not book.
    """
    if not next_run_request.is_own(run) or await _goes_on(tx, run, now):
        return False
    ended = await tx.runs.read(run.id)
    try:
        agent = await tx.agents.get(run.agent_id, run.user_id)
    except NoSuchAgent:
        return False
    if not agent.self_scheduling or run.wake_id is None:
        return False  # the person who turned it off knows
    if await tx.notices.add(make_notice(LOOP_ENDED, ended, now, agent=agent, end=describe_end(ended))):
        said = Decision(wake_id=run.wake_id, nominal_at=run.nominal_at, at=now, code="loop_ended", run_id=run.id)
        await tx.notices.record([said])
    return True


async def add_unkept_promise_notice(tx: Tx, run: Run, now: datetime) -> None:
    """Add a notice about a run that promised later work and booked nothing."""
    with suppress(NoSuchAgent):
        agent = await tx.agents.get(run.agent_id, run.user_id)
        await tx.notices.add(make_notice("unkept_promise", run, now, agent=agent))


async def _goes_on(tx: Tx, run: Run, now: datetime) -> bool:
    """Return whether a next run is pending, or another one that the agent booked is running and may still book one."""
    waiting = await tx.wakes.in_slot(next_run_request.slot_of(run.agent_id))
    return waiting is not None or await tx.runs.is_another_under_way(run, now)


async def record_failure(tx: Tx, run: Run, reason: str | None, error: str | None, now: datetime, rules: Rules) -> None:
    """Fail a run's wake if it fires once, and tell its owner; a recurring one continues, later if it keeps failing."""
    if run.wake_id is None:
        return
    wake = await tx.wakes.get(run.wake_id)
    if not wake.is_recurring:
        is_told = await end_wake(tx, run, "failed", reason, now, error)
        is_news = wake.status in ("queued", "running") and reason != "interrupted"  # which has a notice of its own
        if is_news and not is_told:
            title, error = title_of(wake.comment, wake.instructions), error or "The run failed."
            await tx.notices.add(make_notice("wake_failed", run, now, wake=title, at=wake.nominal_at, error=error))
        return
    after = lifecycle.back_off(wake, now, rules)
    await tx.wakes.move([(after, "failed")])
    if after.held_by == "backoff":
        said = Decision(
            wake_id=wake.id,
            nominal_at=wake.nominal_at,
            at=now,
            code="backoff",
            run_id=run.id,
            detail={"failures": after.failures, "until": after.attempt_at.isoformat()},
        )
        await tx.notices.record([said])
        await tx.notices.add(make_notice("backoff", after, now, next=after.attempt_at))
