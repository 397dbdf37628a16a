"""What people are told in their inbox, in our words."""

from datetime import datetime

from wakeful.domain import ids
from wakeful.domain.types import Notice, Run, SetAside, Wake


def braked(wake: Wake, until: datetime, now: datetime) -> Notice:
    """An agent's own bookings start more runs than it may."""
    return Notice(
        id=ids.new_id(now),
        user_id=wake.user_id,
        agent_id=wake.agent_id,
        code="brake",
        title="The runaway brake is on",
        body=(
            "This agent's own bookings started as many runs as they may in an hour. "
            f"The rest wait until {until:%H:%M} UTC."
        ),
        once_key=f"brake:{wake.agent_id}:{until:%Y-%m-%dT%H}",  # by its end, which all that wait have in common
        created_at=now,
        wake_id=wake.id,
    )


def backing_off(wake: Wake, now: datetime) -> Notice:
    """A recurring wake failed several times in a row."""
    return Notice(
        id=ids.new_id(now),
        user_id=wake.user_id,
        agent_id=wake.agent_id,
        code="backoff",
        title="A recurring wake keeps failing",
        body=(
            f"It failed {wake.failures} times in a row and comes back less often now: "
            f"next at {wake.attempt_at:%Y-%m-%d %H:%M} UTC."
        ),
        once_key=f"backoff:{wake.id}:{wake.created_at.isoformat()}:{now:%Y-%m-%d}",
        created_at=now,
        wake_id=wake.id,
        session_id=wake.session_id,
    )


def interrupted(run: Run, now: datetime) -> Notice:
    """A run was cut off and is not tried again by itself."""
    return Notice(
        id=ids.new_id(now),
        user_id=run.user_id,
        agent_id=run.agent_id,
        code="interrupted",
        title="A run was interrupted",
        body=f"{run.error or 'It was cut off.'} Continue takes it up from its last saved step.",
        once_key=f"interrupted:{run.id}:{run.fence}",
        created_at=now,
        wake_id=run.wake_id,
        run_id=run.id,
        session_id=run.session_id,
    )


def unfirable(wake: SetAside, error: str, now: datetime) -> Notice:
    """The scheduler could not decide about a wake at all, perhaps not even read it."""
    return Notice(
        id=ids.new_id(now),
        user_id=wake.user_id,
        agent_id=wake.agent_id,
        code="unfirable",
        title="A wake could not be fired",
        body=f"{error} It is tried again every five minutes; edit or cancel it.",
        once_key=f"unfirable:{wake.id}:{wake.nominal_at.isoformat()}",
        created_at=now,
        wake_id=wake.id,
        session_id=wake.session_id,
    )
