"""Runs in the store: the queue, the claims, the leases, approvals, usage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

import orjson

from wakeful.core.budget import Spent
from wakeful.core.errors import NotFound
from wakeful.core.events import AgentChanged, ApprovalChanged, RunChanged, RunQueued, StopAsked, WakeDueSooner
from wakeful.core.frames import wake_fired
from wakeful.core.outside import add_sources
from wakeful.core.records import WARM, Allowance, Approval, NodeIdentity, Outcome
from wakeful.core.texts import title_of
from wakeful.core.types import ClaimedRun, Rules, Run, RunStatus, RunUsage, WaitingWork
from wakeful.store import rows as queries
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.outgoing import OutgoingRows
from wakeful.store.rows import (
    ADDED_RUN,
    ALLOWANCES,
    APPROVALS,
    CLAIMED_RUNS,
    RECORDED_CALL,
    RUNS,
    USAGE,
    WAITING_WORK,
    from_micros,
    to_micros,
)
from wakeful.store.webhooks import WebhookRows, run_ended

# Runs in the store: the queue, the claims, the leases, the ledger.
_LONG_AGO = timedelta(days=7)  # bounds the look at old rows
_TURN = queries.for_sqlite()["add_runs"].names.index("turn")


class NoSuchRun(NotFound):
    code = "no_such_run"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"There is no run {run_id!r}. `wakeful runs` and GET /runs list yours.")


@dataclass(frozen=True, slots=True)
class Started:
    """Number of runs that an agent's own bookings started, and the time of the first."""

    count: int
    first_at: datetime | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that is ours now, and how long it may take."""

    run: ClaimedRun
    limit: timedelta


class RunRows:
    """Statements about runs, in one transaction."""

    def __init__(self, statements: Statements, webhooks: WebhookRows, outgoing: OutgoingRows) -> None:
        self._statements = statements
        self._webhooks = webhooks
        self._outgoing = outgoing

    async def add(self, runs: Sequence[Run], free_turn: int | None = None) -> set[str]:
        """Write new rows, give the queued ones their turns, and return the ids that were not there before.

        With a turn that is known to be free, since nothing else waits, every agent's first one gets that.
        """
        waiting = [run for run in runs if run.status == "queued"]
        agent_ids = {run.agent_id for run in waiting if run.trigger == "wake"}
        turns = await self._next_turns(agent_ids) if free_turn is None else dict.fromkeys(agent_ids, free_turn)
        rows = [ADDED_RUN(run) for run in runs]
        for run, row in zip(runs, rows, strict=True):
            if run.status == "queued" and run.trigger == "wake":
                row[_TURN] = turns[run.agent_id]
                turns[run.agent_id] += 1
        added = await self._statements.write_each("add_runs", rows)
        self._announce(run for run in runs if run.id in added)
        if waiting:
            self._statements.news.append(RunQueued())
        return added

    async def _next_turns(self, agent_ids: Iterable[str]) -> dict[str, int]:
        """Return the next free place in the queue of each agent.

        An agent with nothing waiting comes in where the queue stands now; one with much waiting queues behind itself.
        So no agent waits for all runs of another, and none is overtaken for ever.
        """
        rows = await self._statements.fetch_many("turns_of_agents", [{"agent_id": each} for each in agent_ids])
        return {
            row["agent_id"]: max(row["current_turn"], -1 if row["last_turn"] is None else row["last_turn"] + 1)
            for row in rows
        }

    async def fold(self, run_id: str, more: int, reason: str) -> bool:
        return bool(await self._statements.fetch("fold_into_run", {"id": run_id, "more": more, "reason": reason}))

    async def get(self, run_id: str, user_id: str | None = None) -> Run:
        """Read a run in order to change it. With a user, someone else's is not there."""
        rows = await self._statements.fetch("lock_run", {"id": run_id})
        if not rows or (user_id is not None and rows[0]["user_id"] != user_id):
            raise NoSuchRun(run_id)
        return RUNS.read(rows[0])

    async def read(self, run_id: str, user_id: str | None = None) -> Run:
        rows = await self._statements.fetch("run_by_id", {"id": run_id})
        if not rows or (user_id is not None and rows[0]["user_id"] != user_id):
            raise NoSuchRun(run_id)
        return RUNS.read(rows[0])

    async def of_wake(self, wake_id: str, most: int = 1_000) -> list[Run]:
        rows = await self._statements.fetch("runs_of_wake", {"wake_id": wake_id, "most": most})
        return [RUNS.read(row) for row in rows]

    async def planned_after(self, wake_id: str, after: datetime) -> set[datetime]:
        """Return the planned instants of a wake after some moment that have a row already."""
        params = {"wake_id": wake_id, "after": to_micros(after)}
        return {from_micros(row["nominal_at"]) for row in await self._statements.fetch("planned_runs_after", params)}

    async def last_of_wakes(self, wake_ids: Sequence[str]) -> dict[str, Run]:
        """Return the latest run of each wake that has ended, by the wake's id."""
        rows = await self._statements.fetch_many("last_runs_of_wakes", [{"wake_id": each} for each in wake_ids])
        return {row["wake_id"]: RUNS.read(row) for row in rows}

    async def subjects(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Return what each run is about: its label, or the first words it was given."""
        rows = await self._statements.fetch_many("subjects_of_runs", [{"id": run_id} for run_id in run_ids])
        return {row["id"]: title_of(row["label"], row["brief"]) for row in rows}

    async def unfinished_in(self, session_id: str) -> Run | None:
        """Return the run that keeps a session from taking a user's message."""
        rows = await self._statements.fetch("unfinished_run_of_session", {"session_id": session_id})
        return RUNS.read(rows[0]) if rows else None

    async def running_or_next_in(self, session_id: str) -> Run | None:
        """Return the running run of a session or, if there is none, the next one in its queue."""
        rows = await self._statements.fetch("next_run_of_session", {"session_id": session_id})
        return RUNS.read(rows[0]) if rows else None

    async def has_failed_since(self, session_id: str, since: datetime) -> bool:
        """Return whether the last thing that happened in a session is a failed run."""
        params = {"session_id": session_id, "since": to_micros(since)}
        return bool(await self._statements.fetch("failed_run_since", params))

    async def go_on(self, run_id: str) -> Run | None:
        """Queue a run again that had ended before its work was done."""
        rows = await self._statements.fetch("continue_run", {"id": run_id})
        if not rows:
            return None
        await self.delete_stop_request(run_id)  # of the time before
        run = RUNS.read(rows[0])
        self._announce([run])
        self._statements.news.append(RunQueued())
        return run

    async def under_way_in(self, session_id: str) -> Run | None:
        """Return the run of a session that has begun and not ended."""
        rows = await self._statements.fetch("run_under_way_in_session", {"session_id": session_id})
        return RUNS.read(rows[0]) if rows else None

    async def some(self, run_ids: Sequence[str]) -> list[Run]:
        rows = await self._statements.fetch_many("runs_by_ids", [{"id": run_id} for run_id in run_ids])
        return [RUNS.read(row) for row in rows]

    async def of_user(
        self,
        user_id: str,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        wake_id: str | None = None,
        status: str | None = None,
        before: tuple[datetime, str] | None = None,
        most: int = 50,
    ) -> list[Run]:
        """Return a page of a user's runs, the latest first."""
        at, before_id = (None, None) if before is None else (to_micros(before[0]), before[1])
        rows = await self._statements.fetch(
            "runs_of_user",
            {
                "user_id": user_id,
                "agent_id": agent_id,
                "session_id": session_id,
                "wake_id": wake_id,
                "status": status,
                "before": at,
                "before_id": before_id,
                "most": most,
            },
        )
        return [RUNS.read(row) for row in rows]

    async def claim(
        self,
        owner: str,
        now: datetime,
        lease: timedelta,
        alive_since: datetime | None = None,
        *,
        messages: int,
        headless: int,
        rules: Rules,
        node: NodeIdentity | None = None,
    ) -> list[Claimed]:
        """Claim up to that number of runs of each sort whose session is free; their once-wakes leave their slots.

        On a shared store, only of agents whose MCP servers this node has. An agent's home comes along. While a node
        that was alive at a time has it, other nodes leave it a moment to claim the run.
        """
        at = to_micros(now)
        params = {
            "owner": owner,
            "now": at,
            "lease_until": to_micros(now + lease),
            "alive_since": at if alive_since is None else to_micros(alive_since),
            "warm_since": to_micros(now - WARM),
            "node": None if node is None else node.name,
            "mcp_servers": orjson.dumps(() if node is None else node.mcp_servers).decode(),
            "most_messages": messages,
            "most_headless": max(0, headless),
            "last_hold": to_micros(now + rules.hold_for),
            "held_since": to_micros(now - rules.hold_at_most),
            "last_start": to_micros(now + rules.max_outage_pause),
        }
        taken = await self._statements.fetch("claim_runs", params)
        if self._statements.dialect == "sqlite":  # elsewhere it is part of the claim
            begun = [row["wake_id"] for row in taken if row["wake_id"] is not None]
            await self._statements.fetch_many("begin_wakes", [{"id": each, "updated_at": at} for each in begun])
        claimed = [_claimed(row) for row in taken]
        self._announce(each.run for each in claimed)
        self._statements.news.extend(
            wake_fired(each.run.wake_id, each.run)
            for each in claimed
            if each.run.wake_id is not None and _is_first_start(each.run)
        )
        # Once: not again when another process takes the run over.
        started = [each.run for each in claimed if each.run.has_ping and each.run.fence == 1]
        await self._outgoing.add_pings([(run, "start", None) for run in started], now)
        return claimed

    async def held_by(self, owner: str) -> list[Run]:
        return [RUNS.read(row) for row in await self._statements.fetch("runs_of_owner", {"owner": owner})]

    async def hurry(self, wake_id: str) -> list[Run]:
        """Put the queued runs of a wake first, because a person asked for it."""
        runs = [RUNS.read(row) for row in await self._statements.fetch("hurry_runs", {"wake_id": wake_id})]
        self._announce(runs)
        self._statements.news.append(RunQueued())
        return runs

    async def stops_of(self, owner: str) -> list[str]:
        return [row["id"] for row in await self._statements.fetch("stops_of_owner", {"owner": owner})]

    async def finish(self, finished: Sequence[tuple[Run, Outcome]], now: datetime) -> set[str]:
        """Write how runs ended and return the ids that were still ours to finish."""
        at = to_micros(now)
        rows = [
            queries.row_of(
                "finish_runs",
                {
                    "id": run.id,
                    "owner": run.owner,
                    "fence": run.fence,
                    "status": outcome.status,
                    "reason": outcome.reason,
                    "note": outcome.note,
                    "error": outcome.error,
                    "finished_at": at,
                },
            )
            for run, outcome in finished
        ]
        ended = await self._statements.write_each("finish_runs", rows)
        ours = [(run, outcome) for run, outcome in finished if run.id in ended]
        self._statements.news.extend(
            RunChanged(run.id, outcome.status, outcome.reason or run.reason) for run, outcome in ours
        )
        if ours:
            await self._webhooks.queue([run_ended(run, it.status, it.reason, it.note, now) for run, it in ours])
            ends = [(run, "ok" if it.status == "success" else "failed", it.reason) for run, it in ours]
            await self._outgoing.add_pings(ends, now)
        return ended

    async def release(self, runs: Sequence[Run]) -> int:
        """Put runs that we hold back into the queue, not counted as an attempt, and return how many were still ours."""
        rows = [queries.row_of("release_runs", {"id": run.id, "owner": run.owner, "fence": run.fence}) for run in runs]
        released = await self._statements.write_each("release_runs", rows)
        if released:
            self._statements.news.extend(RunChanged(run.id, "queued", run.reason) for run in runs if run.id in released)
            self._statements.news.append(RunQueued())
        return len(released)

    async def hold(self, run: Run, until: datetime) -> bool:
        """Put a run that we hold back into the queue until a time, not counted as an attempt. False: it is not ours."""
        params = {"id": run.id, "owner": run.owner, "fence": run.fence, "until": to_micros(until)}
        rows = await self._statements.fetch("hold_run", params)
        self._announce(RUNS.read_all(rows))
        return bool(rows)

    async def expired(
        self, owner: str, now: datetime, latest: datetime, most: int, skip: int = 0, *, of_everyone: bool = False
    ) -> list[Run]:
        """Return runs of other owners whose lease ran out or ends after `latest`, or all runs of other owners.

        Rows that another node has locked are left out.
        """
        params = {"owner": owner, "now": to_micros(now), "latest": to_micros(latest), "most": most, "skip": skip}
        rows = await self._statements.fetch("expired_runs", params | {"of_everyone": int(of_everyone)})
        return [RUNS.read(row) for row in rows]

    async def recover(self, run: Run) -> bool:
        """Save the recovery of a run whose owner is gone. False if the row has changed since it was read."""
        is_recovered = bool(await self._statements.fetch("recover_run", RUNS.write(run)))
        if is_recovered:
            self._announce([run])
            if run.status == "queued":
                self._statements.news.append(RunQueued())
            elif run.finished_at is not None:
                await self._webhooks.queue([run_ended(run, run.status, run.reason, run.note, run.finished_at)])
                await self._outgoing.add_pings([(run, "failed", run.reason)], run.finished_at)
        return is_recovered

    async def holds_lease(self, run: Run) -> bool:
        params = {"id": run.id, "owner": run.owner, "fence": run.fence}
        return bool(await self._statements.fetch("holds_lease", params))

    async def record_calls(self, runs: Sequence[Run]) -> set[str]:
        """Count the current starts of runs as attempts, and return the ids of those that are still their owner's."""
        return await self._statements.write_each("record_calls", [RECORDED_CALL(run) for run in runs])

    async def leave_probation(self, run_id: str) -> None:
        if await self._statements.fetch("leave_probation", {"id": run_id}):
            self._statements.news.append(RunQueued())

    async def mark(self, run_id: str, outside_sources: Sequence[str]) -> None:
        await self._statements.fetch(
            "mark_run", {"id": run_id, "outside_sources": orjson.dumps(outside_sources).decode()}
        )

    async def sources_of_session(self, session_id: str) -> tuple[str, ...]:
        """Return the outside sources of all runs of a session."""
        rows = await self._statements.fetch("sources_of_session", {"session_id": session_id})
        return add_sources((), (each for row in rows for each in orjson.loads(row["outside_sources"])))

    async def request_stop(self, run_id: str, now: datetime) -> bool:
        asked = await self._statements.fetch("request_stop", {"id": run_id, "now": to_micros(now)})
        self._statements.news.append(StopAsked())
        return bool(asked)

    async def save_stop_request(self, run_id: str, now: datetime) -> None:
        """Save a stop request without changing the run's row, which is locked, and notify the schedulers."""
        await self._statements.fetch("save_stop_request", {"run_id": run_id, "now": to_micros(now)})
        self._statements.news.append(WakeDueSooner())

    async def free_stop_requests(self, most: int) -> list[Run]:
        """Return runs with a stop request that no other transaction has locked."""
        await self._statements.fetch("delete_lost_stop_requests", {})
        return [RUNS.read(row) for row in await self._statements.fetch("free_stop_requests", {"most": most})]

    async def delete_stop_request(self, run_id: str) -> None:
        await self._statements.fetch("delete_stop_request", {"run_id": run_id})

    async def end_queued_of_wakes(self, wake_ids: Sequence[str], status: RunStatus, reason: str, now: datetime) -> None:
        end = {"status": status, "reason": reason, "finished_at": to_micros(now)}
        ended = await self._statements.fetch_many("end_queued_runs", [{"wake_id": each, **end} for each in wake_ids])
        self._statements.news.extend(RunChanged(row["id"], status, reason) for row in ended)

    async def end_queued(self, run_id: str, status: RunStatus, reason: str, now: datetime) -> bool:
        params = {"id": run_id, "status": status, "reason": reason, "now": to_micros(now)}
        is_ended = bool(await self._statements.fetch("end_queued_run", params))
        if is_ended:
            self._statements.news.append(RunChanged(run_id, status, reason))
        return is_ended

    async def shed_low(self, now: datetime, before: datetime) -> list[Run]:
        params = {"now": to_micros(now), "before": to_micros(before)}
        shed = [RUNS.read(row) for row in await self._statements.fetch("shed_low_runs", params)]
        self._announce(shed)
        return shed

    async def started_by_agent(self, agent_id: str, since: datetime) -> Started:
        until = since + 2 * timedelta(hours=1)
        params = {"agent_id": agent_id, "since": to_micros(since), "until": to_micros(until)}
        rows = await self._statements.fetch("started_by_agent", params)
        first: int | None = rows[0]["first_at"]
        return Started(rows[0]["started"], None if first is None else from_micros(first))

    async def next_runs_since(self, agent_id: str, since: datetime) -> int:
        until = since + 2 * timedelta(days=1)
        params = {"agent_id": agent_id, "since": to_micros(since), "until": to_micros(until)}
        rows = await self._statements.fetch("next_runs_today", params)
        return rows[0]["started"]

    async def is_another_under_way(self, run: Run, now: datetime) -> bool:
        """Return whether another next run that the agent booked has not ended."""
        params = {"agent_id": run.agent_id, "id": run.id, "long_ago": to_micros(now - _LONG_AGO)}
        return bool(await self._statements.fetch("own_next_run_under_way", params))

    async def last_ended(self, run: Run, since: datetime, wake_id: str | None = None) -> Run | None:
        """Return the latest run before this one of the same agent and kind; with a wake, of that wake."""
        params = {
            "agent_id": run.agent_id,
            "kind": run.kind,
            "since": to_micros(since),
            "but_run": run.id,
            "wake_id": wake_id,
        }
        rows = await self._statements.fetch("last_ended_run", params)
        return RUNS.read(rows[0]) if rows else None

    async def is_user_talking(self, agent_id: str, now: datetime, within: timedelta) -> bool:
        params = {
            "agent_id": agent_id,
            "since": to_micros(now - within),
            "until": to_micros(now + within),
            "long_ago": to_micros(now - _LONG_AGO),
        }
        return bool(await self._statements.fetch("user_is_talking", params))

    async def waiting_work(self) -> WaitingWork:
        """Return how much waits in the store, of all users."""
        return WAITING_WORK.read((await self._statements.fetch("waiting_work", {}))[0])

    async def stuck(self, owner: str, before: datetime, latest: datetime, most: int) -> list[str]:
        params = {"owner": owner, "before": to_micros(before), "latest": to_micros(latest), "most": most}
        rows = await self._statements.fetch("stuck_runs", params)
        return [row["id"] for row in rows]

    async def left_behind(self, owner: str, now: datetime, latest: datetime) -> tuple[bool, bool]:
        """Return whether there are lost runs of other owners, as in `expired`, and whether there are stop requests."""
        params = {"owner": owner, "now": to_micros(now), "latest": to_micros(latest)}
        [row] = await self._statements.fetch("left_behind", params)
        return row["run_id"] is not None, row["wish_run_id"] is not None

    async def roll_up_skipped(self, before: datetime, most: int) -> int:
        """Merge old skipped rows of each wake into its first one; the number of instants stays."""
        at = to_micros(before)
        wakes = await self._statements.fetch("old_skipped_runs", {"before": at, "most": most})
        for row in wakes:
            key = {"wake_id": row["wake_id"], "before": at, "first_at": row["first_at"]}
            await self._statements.fetch("delete_skipped_runs", key)
            await self._statements.fetch("cover_more", {**key, "covers": int(row["covers"])})
        return len(wakes)

    def _announce(self, runs: Iterable[Run]) -> None:
        self._statements.news.extend(RunChanged(run.id, run.status, run.reason) for run in runs)


def _is_first_start(run: Run) -> bool:
    """Return whether a claimed run fires its wake: not again after a crash, and an extra run fires only a recall."""
    return run.fence == 1 and (run.kind == "recall" or run.covers > 0)


def _claimed(row: Row) -> Claimed:
    return Claimed(CLAIMED_RUNS.read(row), timedelta(seconds=row["run_limit_seconds"]))


# Calls that people are asked about, in the store.


class ApprovalRows:
    """Statements about approvals, in one transaction. A caller that changes one has locked its run first."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(self, approval: Approval) -> None:
        await self._statements.fetch("save_approval", APPROVALS.write(approval))
        self._statements.news.append(ApprovalChanged(approval.run_id))

    async def of_run(self, run_id: str) -> list[Approval]:
        return APPROVALS.read_all(await self._statements.fetch("approvals_of_run", {"run_id": run_id}))

    async def waiting(self, user_id: str, most: int) -> list[Approval]:
        """Return the calls that wait for a user's answer, the oldest first."""
        params = {"user_id": user_id, "most": most}
        return APPROVALS.read_all(await self._statements.fetch("approvals_waiting", params))

    async def allow(self, allowance: Allowance) -> bool:
        """Save that a tool is allowed in a session; false if it was allowed before."""
        is_new = bool(await self._statements.fetch("add_allowance", ALLOWANCES.write(allowance)))
        self._statements.news.append(AgentChanged(allowance.agent_id, allowance.user_id))
        return is_new

    async def is_allowed(self, session_id: str, agent_id: str, tool: str) -> bool:
        params = {"session_id": session_id, "agent_id": agent_id, "tool": tool}
        return bool(await self._statements.fetch("allowance_in_session", params))

    async def allowances(self, agent_id: str, user_id: str) -> list[Allowance]:
        params = {"agent_id": agent_id, "user_id": user_id}
        return ALLOWANCES.read_all(await self._statements.fetch("allowances_of_agent", params))

    async def revoke(self, allowance_id: str, agent_id: str, user_id: str) -> Allowance:
        params = {"id": allowance_id, "agent_id": agent_id, "user_id": user_id}
        rows = await self._statements.fetch("delete_allowance", params)
        if not rows:
            raise NoSuchAllowance(allowance_id)
        self._statements.news.append(AgentChanged(agent_id, user_id))
        return ALLOWANCES.read(rows[0])


# Usage of models by runs, in the store.


_SPENT = tuple(field.name for field in fields(Spent))


class UsageRows:
    """Statements about usage, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(self, usage: RunUsage) -> None:
        await self._statements.fetch("save_usage", USAGE.write(usage))

    async def of_run(self, run_id: str) -> RunUsage | None:
        return USAGE.read_first(await self._statements.fetch("usage_of_run", {"run_id": run_id}))

    async def of_runs(self, run_ids: Sequence[str]) -> dict[str, RunUsage]:
        """Return the usage of each of these runs; a run without a model call has none."""
        rows = await self._statements.fetch_many("usage_of_runs", [{"run_id": run_id} for run_id in run_ids])
        return {row["run_id"]: USAGE.read(row) for row in rows}

    async def of_agent(self, agent_id: str, since: datetime, *, but_run: str = "") -> Spent:
        """Return the usage of an agent since an instant of today or yesterday, without one run."""
        until = to_micros(since + timedelta(days=2))
        params = {"agent_id": agent_id, "since": to_micros(since), "until": until, "but_run": but_run}
        [row] = await self._statements.fetch("usage_of_agent", params)
        return Spent(**{name: int(row[name]) for name in _SPENT})


# Recent bookings and runs of programs' tokens and of hooks, in the store.


_HOUR = timedelta(hours=1)


class TokenUses:
    """Statements about the uses of a token or a hook, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def lock(self, token_id: str) -> None:
        """Let no other transaction count this token's uses before this one has ended."""
        if self._statements.dialect == "postgres":  # SQLite has one writer at a time
            await self._statements.fetch("lock_token", {"token_id": token_id})

    async def find(self, token_id: str, now: datetime, most: int, *, is_side_request: bool = False) -> datetime | None:
        """Return the time of the use that fills the last hour; None if there is room for another one."""
        name = "side_request_of_token" if is_side_request else "use_of_token"
        rows = await self._statements.fetch(name, _last_hour(token_id, now) | {"later": most - 1})
        return from_micros(rows[0]["at"]) if rows else None

    async def started(self, token_id: str, now: datetime) -> Started:
        """Return how many runs a token started in the last hour, itself or by its bookings."""
        [row] = await self._statements.fetch("started_by_token", _last_hour(token_id, now))
        first: int | None = row["first_at"]
        return Started(row["started"], None if first is None else from_micros(first))


def _last_hour(token_id: str, now: datetime) -> dict[str, str | int]:
    return {"token_id": token_id, "since": to_micros(now - _HOUR), "until": to_micros(now + _HOUR)}


class NoSuchAllowance(NotFound):
    code = "no_such_allowance"

    def __init__(self, allowance_id: str) -> None:
        super().__init__(
            f"There is no allowed tool {allowance_id!r} of this agent. It may have been revoked, or its session was "
            "deleted. GET /agents/ID/allowances lists them."
        )
