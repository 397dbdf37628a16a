"""Texts of the notices about hooks."""

from datetime import datetime

from wakeful.domain import ids
from wakeful.domain.hooks.hooks import Hook, HookDelivery
from wakeful.domain.inbox.notices import MAX_BODY, MAX_TITLE
from wakeful.domain.types import Notice

ARRIVED = "hook"  # the code of what a hook without a model passes on
_SOURCE = "Another system wrote this:"


def arrived(hook: Hook, delivery: HookDelivery, summary: str, now: datetime) -> Notice:
    """A delivery of a hook that tells its owner without a model."""
    title = hook.name if delivery.event is None else f"{hook.name}: {delivery.event}"
    parts = [hook.instructions.strip(), f"{_SOURCE}\n{summary}" if summary else "It has no text to show here."]
    body = "\n\n".join(part for part in parts if part)
    key = f"{ARRIVED}:{hook.id}:{delivery.id}"
    return _about(hook, now, code=ARRIVED, title=title, body=body[:MAX_BODY], once_key=key)


def refused(hook: Hook, why: str, now: datetime) -> Notice:
    """A hook was sent something that proves nothing; once a day."""
    return _about(
        hook,
        now,
        code="hook_refused",
        title=f"The hook {hook.name} refused a delivery",
        body=(
            f"Someone who knows its address sent something, and {why}. Nothing was started, and the hook stays on. If "
            "that is a system of yours, compare the secret there, or rotate it; if not, there is nothing to do. "
            "Further refusals of today are not reported."
        ),
        once_key=f"hook_refused:{hook.id}:{now:%Y-%m-%d}",
    )


def reused(hook: Hook, now: datetime) -> Notice:
    """A sender has used the id of a delivery twice, for different bodies; once a day."""
    return _about(
        hook,
        now,
        code="hook_reused",
        title=f"The hook {hook.name} got two deliveries with one id",
        body=(
            "The second has another body, so it was refused. The signature was right: either the system that sends it "
            "reuses its ids, or someone who has the secret plays with it. In doubt, rotate the secret."
        ),
        once_key=f"hook_reused:{hook.id}:{now:%Y-%m-%d}",
    )


def busy(hook: Hook, now: datetime) -> Notice:
    """A hook got more deliveries than it takes in a minute; once a day."""
    return _about(
        hook,
        now,
        code="hook_busy",
        title=f"The hook {hook.name} gets too many deliveries",
        body=(
            f"It takes {hook.per_minute} a minute; the sender was asked to send the rest again later. Let it fold "
            "bursts into one run (coalesce_seconds), name the events it is for, or raise per_minute."
        ),
        once_key=f"hook_busy:{hook.id}:{now:%Y-%m-%d}",
    )


def _about(hook: Hook, now: datetime, *, code: str, title: str, body: str, once_key: str) -> Notice:
    return Notice(
        id=ids.new_id(now),
        user_id=hook.user_id,
        agent_id=hook.agent_id,
        code=code,
        title=title[:MAX_TITLE],
        body=body,
        once_key=once_key,
        created_at=now,
    )
