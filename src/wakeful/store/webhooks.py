"""Outgoing webhooks in the store, and the events that they get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from wakeful.core import ids
from wakeful.core.errors import NotFound
from wakeful.core.labels import LOOP_ENDED
from wakeful.core.records import Outgoing, Webhook, WebhookEvent
from wakeful.core.types import Notice, Run, Wake
from wakeful.store.drivers.database import Row, Statements
from wakeful.store.outgoing import KEEP, OutgoingRows
from wakeful.store.rows import WEBHOOKS, to_micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """An event, and the kinds under which a webhook may ask for it; the first that it asks for counts."""

    user_id: str
    agent_id: str | None
    kinds: tuple[WebhookEvent, ...]
    about: str
    data: Mapping[str, Any]
    at: datetime


class NoSuchWebhook(NotFound):
    code = "no_such_webhook"

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"There is no webhook {webhook_id!r}. `wakeful webhook ls` and GET /webhooks list yours.")


class NoSuchMessage(NotFound):
    code = "no_such_delivery"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"There is no delivery {message_id!r} of this webhook. `wakeful webhook deliveries` lists those of the "
            f"last {KEEP.days} days."
        )


def kind_for(events: tuple[str, ...], happened: Happened) -> WebhookEvent | None:
    """Return the kind under which a webhook with these events gets it; None: it does not."""
    return next((kind for kind in happened.kinds if kind in events), None)


# ── Events ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_ended(run: Run, status: str, reason: str | None, note: str | None, at: datetime) -> Happened:
    """A run has ended."""
    is_failed = status in ("failed", "interrupted")
    return Happened(
        user_id=run.user_id,
        agent_id=run.agent_id,
        kinds=("run.failed",) if is_failed else ("run.finished",),
        about=f"run:{run.id}:{run.fence}",  # a run that is continued ends again
        data={
            "run_id": run.id,
            "session_id": run.session_id,
            "wake_id": run.wake_id,
            "trigger": run.trigger,
            "status": status,
            "reason": reason,
            "note": note,
            "started_at": None if run.started_at is None else run.started_at.isoformat(),
            "finished_at": at.isoformat(),
        },
        at=at,
    )


def wake_missed(wake: Wake, nominal_at: datetime, detail: Mapping[str, Any], at: datetime) -> Happened:
    """A wake was late by more than its grace."""
    return Happened(
        user_id=wake.user_id,
        agent_id=wake.agent_id,
        kinds=("wake.missed",),
        about=f"missed:{wake.id}:{nominal_at.isoformat()}",
        data={
            "wake_id": wake.id,
            "session_id": wake.session_id,
            "kind": wake.kind,
            "label": wake.comment or None,
            "nominal_at": nominal_at.isoformat(),
            **detail,
        },
        at=at,
    )


def notice_added(notice: Notice) -> Happened:
    """Something is in the inbox; the end of an agent's loop can also be asked for by itself."""
    return Happened(
        user_id=notice.user_id,
        agent_id=notice.agent_id,
        kinds=("loop.ended", "notification") if notice.code == LOOP_ENDED else ("notification",),
        about=f"notice:{notice.id}",
        data={
            "notification_id": notice.id,
            "code": notice.code,
            "title": notice.title,
            "body": notice.body,
            "times": notice.times,
            "run_id": notice.run_id,
            "session_id": notice.session_id,
            "wake_id": notice.wake_id,
        },
        at=notice.created_at,
    )


class WebhookRows:
    """Statements about outgoing webhooks, in one transaction."""

    def __init__(self, statements: Statements, outgoing: OutgoingRows) -> None:
        self._statements = statements
        self._outgoing = outgoing

    async def queue(self, happened: Sequence[Happened]) -> None:
        """Add a message for every webhook that asks for one of these events; with what it is about, once."""
        users = [{"user_id": each} for each in {each.user_id for each in happened}]
        rows = await self._statements.fetch_many("webhooks_to_tell", users)
        if not rows:  # the usual case
            return
        names = await self._names(happened)
        found = [_message(row, each, names) for row in rows for each in happened if each.user_id == row["user_id"]]
        await self._outgoing.add([message for message in found if message is not None])

    async def _names(self, happened: Sequence[Happened]) -> dict[str, str]:
        """Return the names of agents, by their ids."""
        names: dict[str, str] = {}
        for agent_id in {each.agent_id for each in happened} - {None}:
            for row in await self._statements.fetch("agent_by_id", {"id": agent_id}):
                names[row["id"]] = row["name"]
        return names

    async def add(self, webhook: Webhook) -> bool:
        """Add a webhook. False if the user has one of that name."""
        return bool(await self._statements.fetch("add_webhook", WEBHOOKS.write(webhook)))

    async def of_user(self, user_id: str) -> list[Webhook]:
        return WEBHOOKS.read_all(await self._statements.fetch("webhooks_of_user", {"user_id": user_id}))

    async def get(self, webhook_id: str, user_id: str) -> Webhook:
        """Read a webhook in order to change it."""
        rows = await self._statements.fetch("webhook_of_user", {"id": webhook_id, "user_id": user_id})
        if not rows:
            raise NoSuchWebhook(webhook_id)
        return WEBHOOKS.read(rows[0])

    async def read(self, webhook_id: str, user_id: str) -> Webhook:
        found = next((each for each in await self.of_user(user_id) if each.id == webhook_id), None)
        if found is None:
            raise NoSuchWebhook(webhook_id)
        return found

    async def find(self, webhook_id: str) -> Webhook | None:
        return WEBHOOKS.read_first(await self._statements.fetch("webhook_by_id", {"id": webhook_id}))

    async def lock(self, webhook_id: str) -> Webhook | None:
        """Read a webhook in order to save a result; None if it was deleted."""
        return WEBHOOKS.read_first(await self._statements.fetch("lock_webhook", {"id": webhook_id}))

    async def save(self, webhook: Webhook) -> None:
        await self._statements.fetch("save_webhook", WEBHOOKS.write(webhook))

    async def delete(self, webhook_id: str, user_id: str) -> None:
        if not await self._statements.fetch("delete_webhook", {"id": webhook_id, "user_id": user_id}):
            raise NoSuchWebhook(webhook_id)
        await self._outgoing.delete_of_target(webhook_id)

    async def delete_old_secrets(self, now: datetime) -> None:
        """Delete secrets whose time is over."""
        await self._statements.fetch("delete_old_webhook_secrets", {"now": to_micros(now)})


def _message(row: Row, happened: Happened, names: dict[str, str]) -> Outgoing | None:
    kind = kind_for(tuple(orjson.loads(row["events"])), happened)
    if kind is None or row["agent_id"] not in (None, happened.agent_id):
        return None
    about: dict[str, Any] = {"agent_id": happened.agent_id, "agent": names.get(happened.agent_id or "")}
    return Outgoing(
        id=ids.new_id(happened.at),
        kind="webhook",
        target=row["id"],
        event=kind,
        about=happened.about,
        body=orjson.dumps(about | dict(happened.data)).decode(),
        next_at=happened.at,
        created_at=happened.at,
    )
