"""Formats times for agents and users."""

from datetime import datetime

from wakeful.domain.types import Agent
from wakeful.domain.wakes.duration import format_duration
from wakeful.domain.zones import load_zone


def describe_time(at: datetime, agent: Agent, now: datetime) -> str:
    """Return a time as text: absolute with offset and zone, and relative."""
    local = at.astimezone(load_zone(agent.zone))
    relative = (
        "now" if at == now else f"in {format_duration(at - now)}" if at > now else f"{format_duration(now - at)} ago"
    )
    return f"{local.isoformat(sep=' ', timespec='seconds')} {agent.zone} ({relative})"
