"""Firing: read due wakes, apply the rule, write the result, in one transaction per batch."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from wakeful.core.clock import Clock
from wakeful.core.errors import StoreBusy
from wakeful.core.labels import is_braked
from wakeful.core.types import Decision, Pause, Rules, Run, Wake, is_bounded
from wakeful.notices.texts import make_notice
from wakeful.runs.claims import add_loop_end_notice, end_wake, record_failure
from wakeful.runs.rules import last_frame, recover
from wakeful.sessions.presence import hold_wakes
from wakeful.store.store import Store, Tx
from wakeful.store.wakes import DueWake
from wakeful.store.webhooks import wake_missed
from wakeful.telemetry.logs import log_each
from wakeful.timing import bounds
from wakeful.timing.fire_rule import Facts, Verdict, fire

log = logging.getLogger(__name__)

_TRY_AGAIN = timedelta(minutes=5)
_FIRED = ("wake_id", "run_id", "agent_id", "kind", "late_seconds")
_SKIPPED = ("wake_id", "run_id", "agent_id", "kind", "reason", "times")


@dataclass(slots=True)
class _Tally:
    """Runs of one agent or token that count towards its limits, with those of the batch so far."""

    started: int = 0
    first_at: datetime | None = None
    used_today: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringObserver:
    """Called after the commit of what was decided."""

    on_decided: Callable[[Sequence[Verdict]], None] = lambda _: None
    on_recovered: Callable[[Run], None] = lambda _: None
    on_shed: Callable[[Run], None] = lambda _: None


class Firing:
    """Turns due wakes into runs, and recovers runs whose owner is gone."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rules: Rules,
        owner: str,
        batch: int = 64,
        lease: timedelta = timedelta(seconds=30),
        observer: "FiringObserver | None" = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rules = rules
        self._owner = owner
        self._batch = batch
        self._lease = lease
        self._observer = observer or FiringObserver()

    async def fire_due(self, most: int | None = None, skip: int = 0) -> int:
        """Decide about a batch of due wakes, after the skipped ones, and return how many there were.

        Raises StoreBusy if one of them needs a row that someone holds: then none was decided about.
        """
        now = self._clock.now()
        limit = most or self._batch

        async def work(tx: Tx) -> tuple[int, Sequence[Verdict]]:
            due = await tx.wakes.due(now, limit, skip)
            if not due:
                return 0, ()
            return len(due), await write_verdicts(tx, await self._judge(tx, due, now), due[0].free_turn)

        # Decisions that a power failure undoes are made again, with the same run ids; a saved step makes them durable.
        decided, written = await self._store.write(work, is_synced=False)
        _log_verdicts(written, now)
        self._observer.on_decided(written)
        return decided

    async def set_aside(self, error: str, skip: int = 0) -> str | None:
        """Postpone the first due wake after the skipped ones, which cannot be fired, so that the others can."""
        now = self._clock.now()

        async def work(tx: Tx) -> str | None:
            wake = await tx.wakes.set_aside(error, now + _TRY_AGAIN, now, skip)
            if wake is None:
                return None
            kind = "unfirable_for_good" if wake.status == "failed" else "unfirable"
            if await tx.notices.add(make_notice(kind, wake, now, error=error)):  # else there is one already
                said = Decision(
                    wake_id=wake.id, nominal_at=wake.nominal_at, at=now, code="error", detail={"error": error}
                )
                await tx.notices.record([said])
            return wake.id

        return await self._store.write(work)

    async def next_moment(self, since: datetime) -> datetime | None:
        """Return when the scheduler must look next; a pause or hold that ended since its last look counts."""
        now = self._clock.now()
        rules = self._rules
        # Other nodes notice a step of the clock by themselves, and correct their leases with the next heartbeat.
        unjudged = max(0.0, self._lease.total_seconds() - self._clock.seconds_since_step())
        return await self._store.read(
            lambda tx: tx.wakes.next_moment(
                self._owner,
                since,
                rules.shed_after,
                last_hold=now + rules.hold_for,
                judge_at=now + timedelta(seconds=unjudged),
                latest=self._latest_lease(now),
            ),
            is_single=True,
        )

    async def find_recovery_work(self) -> tuple[bool, bool]:
        """Return whether there are runs of other processes whose lease ran out, and whether stop requests wait.

        Leases are not judged soon after a step of the clock.
        """
        now = self._clock.now()
        latest = self._latest_lease(now)
        has_lost, has_stop_requests = await self._store.read(
            lambda tx: tx.runs.left_behind(self._owner, now, latest), is_single=True
        )
        if has_lost:
            await self._clock.measure()
            has_lost = self._clock.seconds_since_step() >= self._lease.total_seconds()
        return has_lost, has_stop_requests

    async def recover(self, *, every_other_owner: bool = False) -> list[Run]:
        """Recover runs whose lease ran out; at the start of an embedded store, all that another process held.

        What a dead node still holds is left for the next time, and does not keep the others waiting.
        """
        try:
            return await self._recover(self._batch, of_everyone=every_other_owner)
        except StoreBusy:  # one of them needs a row besides its own, such as its wake's
            log.warning("runs are taken over one by one, since another node holds what one of them needs")
        recovered: list[Run] = []
        left = 0
        while left < self._batch:
            try:
                one = await self._recover(1, skip=left, of_everyone=every_other_owner)
            except StoreBusy:
                left += 1
                continue
            if not one:
                break
            recovered += one
        return recovered

    async def _recover(self, most: int, skip: int = 0, *, of_everyone: bool) -> list[Run]:
        now = self._clock.now()

        async def work(tx: Tx) -> list[Run]:
            recovered: list[Run] = []
            latest = self._latest_lease(now)
            for run in await tx.runs.expired(self._owner, now, latest, most, skip, of_everyone=of_everyone):
                after = recover(run, now, self._rules)
                if await tx.runs.recover(after):
                    await _record_recovery(tx, after, now, self._rules)
                    recovered.append(after)
                    frame = last_frame(after)
                    if frame is not None and after.session_id is not None:
                        tx.say(after.session_id, [frame], now, run_id=after.id)
            await hold_wakes(tx, [run for run in recovered if run.status != "queued"], now, self._rules)
            return recovered

        recovered = await self._store.write(work)
        for run in recovered:
            _log_recovery(run)
            self._observer.on_recovered(run)
        return recovered

    async def shed_low(self) -> list[Run]:
        """Drop low-priority runs that found no free slot in time; only those that this node could have taken."""
        if self._clock.seconds_since_step() < self._rules.shed_after.total_seconds():
            return []  # they have not waited for the time that the clock was set by
        now = self._clock.now()

        async def work(tx: Tx) -> list[Run]:
            shed = await tx.runs.shed_low(now, now - self._rules.shed_after)
            for run in shed:
                await end_wake(tx, run, "skipped", "no_slot", now)
            return shed

        shed = await self._store.write(work)
        for run in shed:
            log.info("wake skipped", extra={"wake_id": run.wake_id, "run_id": run.id, "reason": "no_slot"})
            self._observer.on_shed(run)
        return shed

    async def cancel_ephemeral(self) -> int:
        """End the schedules that were booked to last until a restart."""
        now = self._clock.now()
        return await self._store.write(lambda tx: tx.wakes.cancel_ephemeral(now))

    def _latest_lease(self, now: datetime) -> datetime:
        """Return the latest plausible end of a lease; those of other nodes may be longer than ours."""
        return now + 3 * self._lease

    async def _judge(self, tx: Tx, due: Sequence[DueWake], now: datetime) -> list[Verdict]:
        paused_since = [each.wake.nominal_at for each in due if each.has_pauses]
        pauses = await tx.agents.pauses_since(min(paused_since)) if paused_since else []
        tallies: dict[str, _Tally] = {}
        by_token: dict[str, _Tally] = {}
        verdicts: list[Verdict] = []
        for each in due:
            wake = each.wake
            is_agents = wake.scheduled_by == "agent"
            if is_agents and wake.agent_id not in tallies:
                tallies[wake.agent_id] = await self._tally(tx, each, now)
            tally = tallies[wake.agent_id] if is_agents else _Tally()
            of_token = await self._tally_token(tx, wake, by_token, now)
            is_talking = wake.priority == "low" and await tx.runs.is_user_talking(
                wake.agent_id, now, self._rules.talking_within
            )
            verdict = fire(wake, _facts(each, tally, of_token, pauses, is_talking), now, self._rules)
            _count(tally, verdict, now)
            _count(of_token, verdict, now)
            verdicts.append(verdict)
        return verdicts

    async def _tally(self, tx: Tx, each: DueWake, now: datetime) -> _Tally:
        started = await tx.runs.started_by_agent(each.wake.agent_id, now - timedelta(hours=1))
        midnight = bounds.local_day_start(now, each.agent_timezone)
        used = await tx.runs.next_runs_since(each.wake.agent_id, midnight)
        return _Tally(started.count, started.first_at, used)

    async def _tally_token(self, tx: Tx, wake: Wake, known: dict[str, _Tally], now: datetime) -> _Tally:
        """Return the runs of the token that booked a wake, if its bookings have a brake."""
        if wake.token_id is None or not is_braked(wake):
            return _Tally()
        if wake.token_id not in known:
            started = await tx.token_uses.started(wake.token_id, now)
            known[wake.token_id] = _Tally(started.count, started.first_at)
        return known[wake.token_id]


def _facts(each: DueWake, tally: _Tally, of_token: _Tally, pauses: Sequence[Pause], is_talking: bool) -> Facts:
    wake = each.wake
    return Facts(
        agent_timezone=each.agent_timezone,
        bounds=each.read_bounds() if is_bounded(wake) else None,
        pauses=[p for p in pauses if p.user_id == wake.user_id and p.agent_id in (None, wake.agent_id)],
        used_today=tally.used_today,
        started_lately=tally.started,
        first_lately=tally.first_at,
        token_started=of_token.started,
        token_first=of_token.first_at,
        busy_run_id=each.busy_run_id,
        waiting_run_id=each.waiting_run_id,
        running_run_id=each.running_run_id,
        is_user_talking=is_talking,
        gone=each.gone,
    )


async def _record_recovery(tx: Tx, run: Run, now: datetime, rules: Rules) -> None:
    if run.wake_id is not None:
        said = Decision(
            wake_id=run.wake_id,
            nominal_at=run.nominal_at,
            at=now,
            code=run.reason or "resumed",
            run_id=run.id,
            detail={"attempt": run.attempt} | ({"lost_starts": run.lost_starts} if run.lost_starts else {}),
        )
        await tx.notices.record([said])
    if run.status == "interrupted":
        error = run.error or "It was interrupted."
        await tx.notices.add(make_notice("interrupted", run, now, error=error))
        await record_failure(tx, run, "interrupted", run.error, now, rules)
    elif run.status == "stopped":
        if run.wake_id is not None:
            await tx.wakes.mark_finished([(run.wake_id, "stopped")], now)
        await add_loop_end_notice(tx, run, now)


def _count(tally: _Tally, verdict: Verdict, now: datetime) -> None:
    queued = [run for run in verdict.runs if run.status == "queued"]
    tally.started += len(queued)
    tally.first_at = tally.first_at or (now if queued else None)
    tally.used_today += sum(run.kind == "next_run" for run in queued)


def _log_verdicts(verdicts: Sequence[Verdict], now: datetime) -> None:
    """Log a line for each run that was queued and each time that was held or skipped."""
    if not log.isEnabledFor(logging.INFO):
        return
    fired = [_fired_row(verdict, verdict.runs[0], now) for verdict in verdicts if _is_plainly_fired(verdict)]
    log_each(log, "wake fired", _FIRED, fired)
    if len(fired) == len(verdicts):
        return
    for verdict in verdicts:
        if not _is_plainly_fired(verdict):
            _log_verdict(verdict, now)


def _is_plainly_fired(verdict: Verdict) -> bool:
    """Return whether there is nothing to say but that it fired, as of nearly all."""
    is_one = len(verdict.runs) == 1 and verdict.runs[0].status == "queued"
    return is_one and verdict.fold is None and verdict.wake.held_by is None and verdict.wake.status != "cancelled"


def _fired_row(verdict: Verdict, run: Run, now: datetime) -> tuple[Any, ...]:
    wake = verdict.wake
    return wake.id, run.id, wake.agent_id, wake.kind, round((now - run.nominal_at).total_seconds(), 3)


def _log_verdict(verdict: Verdict, now: datetime) -> None:
    wake = verdict.wake
    queued = [_fired_row(verdict, run, now) for run in verdict.runs if run.status == "queued"]
    others = [
        (wake.id, run.id, wake.agent_id, wake.kind, run.reason, run.covers)
        for run in verdict.runs
        if run.status != "queued"
    ]
    log_each(log, "wake skipped", _SKIPPED, others)
    log_each(log, "wake fired", _FIRED, queued)
    if verdict.fold is not None:
        log.info("wake joined a queued run", extra={"wake_id": wake.id, "run_id": verdict.fold.into})
    if wake.held_by is not None and verdict.decisions:  # else it is held as before
        until = wake.attempt_at.isoformat()
        log.info("wake held", extra={"wake_id": wake.id, "reason": wake.held_by, "until": until})
    if wake.status == "cancelled":
        log.info("wake ended", extra={"wake_id": wake.id, "reason": wake.reason})


def _log_recovery(run: Run) -> None:
    is_over = run.status != "queued"
    fields = {"run_id": run.id, "session_id": run.session_id, "status": run.status, "reason": run.reason}
    log.log(
        logging.WARNING if is_over else logging.INFO,
        "run of a dead process ended" if is_over else "run of a dead process recovered",
        extra=fields | {"attempt": run.attempt, "lost_starts": run.lost_starts},
    )


async def write_verdicts(tx: Tx, verdicts: Sequence[Verdict], free_turn: int | None = None) -> list[Verdict]:
    """Write what was decided, and return what was written.

    A wake that someone changed meanwhile keeps that change, and fires as changed.
    """
    moved = await tx.wakes.move([(verdict.wake, verdict.action) for verdict in verdicts])
    held = [verdict for verdict in verdicts if verdict.wake.id in moved]
    sessions = [session for verdict in held for session in verdict.sessions]
    if sessions:
        await tx.sessions.add(sessions)
    new_runs = [run for verdict in held for run in verdict.runs]
    if new_runs:
        await tx.runs.add(new_runs, free_turn)
    for verdict in held:
        if verdict.fold is not None and not await tx.runs.fold(verdict.fold.into, verdict.fold.run.covers, "overlap"):
            await tx.runs.add([verdict.fold.run])  # another node claimed the waiting one since we read it
        if verdict.notice is not None:
            await tx.notices.add(verdict.notice)
        if verdict.wake.status == "skipped":
            await add_loop_end_notice(tx, verdict.runs[-1], verdict.wake.updated_at)
    decisions = [decision for verdict in held for decision in verdict.decisions]
    if decisions:
        await tx.notices.record(decisions)
    missed = [(verdict.wake, each) for verdict in held for each in verdict.decisions if each.code == "missed"]
    if missed:
        await tx.webhooks.queue([wake_missed(wake, each.nominal_at, each.detail, each.at) for wake, each in missed])
    return held
