"""Rows to values and back, in one place."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any, cast

import orjson

from wakeful.domain.types import Agent, Bounds, Decision, Message, Notice, Pause, Run, Session, User, Wake
from wakeful.store.database import Params, Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_micros(at: datetime) -> int:
    """Write an instant as whole microseconds since 1970."""
    return (at - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Read an instant back."""
    return _EPOCH + timedelta(microseconds=value)


def _micros(at: datetime | None) -> int | None:
    return None if at is None else (at - _EPOCH) // _MICROSECOND


def _instant(value: int | None) -> datetime | None:
    return None if value is None else _EPOCH + timedelta(microseconds=value)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def to_user(row: Row) -> User:
    return User(
        id=row["id"],
        name=row["name"],
        role=row["role"],
        created_at=from_micros(row["created_at"]),
        deleted_at=_instant(row["deleted_at"]),
    )


def user_params(user: User) -> Params:
    return {
        "id": user.id,
        "name": user.name,
        "role": user.role,
        "created_at": to_micros(user.created_at),
        "deleted_at": _micros(user.deleted_at),
    }


def to_bounds(text: str) -> Bounds:
    value = cast("dict[str, Any]", orjson.loads(text))
    return Bounds(
        mode=value["mode"],
        max_horizon=timedelta(seconds=value["max_horizon_seconds"]),
        min_interval=timedelta(seconds=value["min_interval_seconds"]),
        daily_cap=value["daily_cap"],
        quiet_from=None if value["quiet_from"] is None else time.fromisoformat(value["quiet_from"]),
        quiet_to=None if value["quiet_to"] is None else time.fromisoformat(value["quiet_to"]),
        days=frozenset(value["days"]),
    )


def bounds_text(bounds: Bounds) -> str:
    return _json(
        {
            "mode": bounds.mode,
            "max_horizon_seconds": int(bounds.max_horizon.total_seconds()),
            "min_interval_seconds": int(bounds.min_interval.total_seconds()),
            "daily_cap": bounds.daily_cap,
            "quiet_from": None if bounds.quiet_from is None else bounds.quiet_from.isoformat("minutes"),
            "quiet_to": None if bounds.quiet_to is None else bounds.quiet_to.isoformat("minutes"),
            "days": sorted(bounds.days),
        }
    )


def to_agent(row: Row) -> Agent:
    return Agent(
        id=row["id"],
        user_id=row["user_id"],
        name=row["name"],
        timezone=row["timezone"],
        self_scheduling=bool(row["self_scheduling"]),
        bounds=to_bounds(row["bounds"]),
        run_limit=timedelta(seconds=row["run_limit_seconds"]),
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
    )


def agent_params(agent: Agent) -> Params:
    return {
        "id": agent.id,
        "user_id": agent.user_id,
        "name": agent.name,
        "timezone": agent.timezone,
        "self_scheduling": int(agent.self_scheduling),
        "bounds": bounds_text(agent.bounds),
        "run_limit_seconds": int(agent.run_limit.total_seconds()),
        "created_at": to_micros(agent.created_at),
        "updated_at": to_micros(agent.updated_at),
    }


def to_session(row: Row) -> Session:
    return Session(
        id=row["id"],
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        title=row["title"],
        created_at=from_micros(row["created_at"]),
        origin_session_id=row["origin_session_id"],
        origin_wake_id=row["origin_wake_id"],
        origin_label=row["origin_label"],
    )


def session_params(session: Session) -> Params:
    return {
        "id": session.id,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "title": session.title,
        "created_at": to_micros(session.created_at),
        "origin_session_id": session.origin_session_id,
        "origin_wake_id": session.origin_wake_id,
        "origin_label": session.origin_label,
    }


def to_message(row: Row) -> Message:
    return Message(
        id=row["id"],
        session_id=row["session_id"],
        position=row["position"],
        role=row["role"],
        content=row["content"],
        created_at=from_micros(row["created_at"]),
        run_id=row["run_id"],
        is_recall=bool(row["is_recall"]),
        source=row["source"],
        wake_id=row["wake_id"],
        label=row["label"],
    )


def message_params(message: Message) -> Params:
    return {
        "id": message.id,
        "session_id": message.session_id,
        "position": message.position,
        "role": message.role,
        "content": message.content,
        "created_at": to_micros(message.created_at),
        "run_id": message.run_id,
        "is_recall": int(message.is_recall),
        "source": message.source,
        "wake_id": message.wake_id,
        "label": message.label,
    }


def to_wake(row: Row) -> Wake:
    every: int | None = row["interval_seconds"]
    views: str | None = row["context_views"]
    config: str | None = row["session_config"]
    return Wake(
        id=row["id"],
        kind=row["kind"],
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        slot=row["slot"],
        call_type=row["call_type"],
        every=None if every is None else timedelta(seconds=every),
        cron=row["cron"],
        timezone=row["timezone"],
        wall_clock=row["wall_clock"],
        until=_instant(row["until"]),
        max_runs=row["max_runs"],
        nominal_at=from_micros(row["nominal_at"]),
        attempt_at=from_micros(row["attempt_at"]),
        first_due_at=_instant(row["first_due_at"]),
        is_missed=bool(row["is_missed"]),
        held_by=row["held_by"],
        comment=row["comment"],
        instructions=row["instructions"],
        context_views=() if views is None else tuple(orjson.loads(views)),
        session_config=None if config is None else cast("Mapping[str, Any]", orjson.loads(config)),
        priority=row["priority"],
        on_miss=row["on_miss"],
        scheduled_by=row["scheduled_by"],
        booked_by_run=row["booked_by_run"],
        ephemeral=bool(row["ephemeral"]),
        status=row["status"],
        reason=row["reason"],
        error=row["error"],
        delivery_phase=row["delivery_phase"],
        created_session_id=row["created_session_id"],
        deferrals=row["deferrals"],
        failures=row["failures"],
        runs_started=row["runs_started"],
        version=row["version"],
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
    )


def wake_params(wake: Wake) -> Params:
    return {
        "id": wake.id,
        "kind": wake.kind,
        "agent_id": wake.agent_id,
        "user_id": wake.user_id,
        "session_id": wake.session_id,
        "slot": wake.slot,
        "call_type": wake.call_type,
        "interval_seconds": None if wake.every is None else int(wake.every.total_seconds()),
        "cron": wake.cron,
        "timezone": wake.timezone,
        "wall_clock": wake.wall_clock,
        "until": _micros(wake.until),
        "max_runs": wake.max_runs,
        "nominal_at": to_micros(wake.nominal_at),
        "attempt_at": to_micros(wake.attempt_at),
        "first_due_at": _micros(wake.first_due_at),
        "is_missed": int(wake.is_missed),
        "held_by": wake.held_by,
        "comment": wake.comment,
        "instructions": wake.instructions,
        "context_views": _json(wake.context_views) if wake.context_views else None,
        "session_config": None if wake.session_config is None else _json(wake.session_config),
        "priority": wake.priority,
        "on_miss": wake.on_miss,
        "scheduled_by": wake.scheduled_by,
        "booked_by_run": wake.booked_by_run,
        "ephemeral": int(wake.ephemeral),
        "status": wake.status,
        "reason": wake.reason,
        "error": wake.error,
        "delivery_phase": wake.delivery_phase,
        "created_session_id": wake.created_session_id,
        "deferrals": wake.deferrals,
        "failures": wake.failures,
        "runs_started": wake.runs_started,
        "version": wake.version,
        "created_at": to_micros(wake.created_at),
        "updated_at": to_micros(wake.updated_at),
    }


def to_run(row: Row) -> Run:
    return Run(
        id=row["id"],
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        wake_id=row["wake_id"],
        kind=row["kind"],
        trigger=row["trigger"],
        scheduled_by=row["scheduled_by"],
        nominal_at=from_micros(row["nominal_at"]),
        covers=row["covers"],
        priority=row["priority"],
        turn=row["turn"],
        status=row["status"],
        reason=row["reason"],
        error=row["error"],
        queued_at=from_micros(row["queued_at"]),
        started_at=_instant(row["started_at"]),
        finished_at=_instant(row["finished_at"]),
        owner=row["owner"],
        lease_until=_instant(row["lease_until"]),
        fence=row["fence"],
        attempt=row["attempt"],
        is_resuming=bool(row["is_resuming"]),
        stop_requested_at=_instant(row["stop_requested_at"]),
    )


def run_params(run: Run) -> Params:
    return {
        "id": run.id,
        "agent_id": run.agent_id,
        "user_id": run.user_id,
        "session_id": run.session_id,
        "wake_id": run.wake_id,
        "kind": run.kind,
        "trigger": run.trigger,
        "scheduled_by": run.scheduled_by,
        "nominal_at": to_micros(run.nominal_at),
        "covers": run.covers,
        "priority": run.priority,
        "turn": run.turn,
        "status": run.status,
        "reason": run.reason,
        "error": run.error,
        "queued_at": to_micros(run.queued_at),
        "started_at": _micros(run.started_at),
        "finished_at": _micros(run.finished_at),
        "owner": run.owner,
        "lease_until": _micros(run.lease_until),
        "fence": run.fence,
        "attempt": run.attempt,
        "is_resuming": int(run.is_resuming),
        "stop_requested_at": _micros(run.stop_requested_at),
    }


def to_pause(row: Row) -> Pause:
    return Pause(
        id=row["id"],
        user_id=row["user_id"],
        agent_id=row["agent_id"],
        started_at=from_micros(row["started_at"]),
        until=from_micros(row["until"]),
        reason=row["reason"],
    )


def pause_params(pause: Pause) -> Params:
    return {
        "id": pause.id,
        "user_id": pause.user_id,
        "agent_id": pause.agent_id,
        "started_at": to_micros(pause.started_at),
        "until": to_micros(pause.until),
        "reason": pause.reason,
    }


def to_decision(row: Row) -> Decision:
    return Decision(
        wake_id=row["wake_id"],
        nominal_at=from_micros(row["nominal_at"]),
        at=from_micros(row["at"]),
        code=row["code"],
        run_id=row["run_id"],
        detail=cast("Mapping[str, Any]", orjson.loads(row["detail"])),
    )


def decision_params(decision: Decision, position: int) -> Params:
    return {
        "wake_id": decision.wake_id,
        "nominal_at": to_micros(decision.nominal_at),
        "at": to_micros(decision.at),
        "position": position,
        "code": decision.code,
        "run_id": decision.run_id,
        "detail": _json(decision.detail),
    }


def to_notice(row: Row) -> Notice:
    return Notice(
        id=row["id"],
        user_id=row["user_id"],
        agent_id=row["agent_id"],
        code=row["code"],
        title=row["title"],
        body=row["body"],
        created_at=from_micros(row["created_at"]),
        wake_id=row["wake_id"],
        run_id=row["run_id"],
        session_id=row["session_id"],
        once_key=row["once_key"],
        read_at=_instant(row["read_at"]),
    )


def notice_params(notice: Notice) -> Params:
    return {
        "id": notice.id,
        "user_id": notice.user_id,
        "agent_id": notice.agent_id,
        "code": notice.code,
        "title": notice.title,
        "body": notice.body,
        "created_at": to_micros(notice.created_at),
        "wake_id": notice.wake_id,
        "run_id": notice.run_id,
        "session_id": notice.session_id,
        "once_key": notice.once_key,
        "read_at": _micros(notice.read_at),
    }
