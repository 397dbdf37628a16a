"""The inbox of a user: list notices and mark them as read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from wakeful.core.clock import Clock
from wakeful.core.errors import NotFound
from wakeful.core.labels import Confinement
from wakeful.core.types import Agent, Notice, Run
from wakeful.core.zones import write_time
from wakeful.notices.texts import make_notice
from wakeful.store.store import Store


class NoSuchNotice(NotFound):
    code = "no_such_notification"

    def __init__(self, notice_id: str) -> None:
        super().__init__(
            f"There is no unread notification {notice_id!r}: it was read already, or never existed. GET /notifications "
            "lists yours."
        )


class NoticeService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of_user(self, user_id: str, most: int = 100) -> list[Notice]:
        """Return the latest notices of a user."""
        return await self._store.read(lambda tx: tx.notices.of_user(user_id, most))

    async def add_shell_refused(self, agent: Agent, confinement: Confinement) -> None:
        """Add a notice, once a day, that an agent's commands are refused and what to do about it."""
        problems = "; ".join(confinement.problems)
        notice = make_notice("shell_refused", agent, self._clock.now(), problems=problems)
        await self._store.write(lambda tx: tx.notices.add(notice))

    async def add_prompt_cut(self, run: Run, model: str, least: int, counted: int) -> None:
        """Add a notice, once a day for each agent and model, that a provider drops a part of what it is sent."""
        kind = "prompt_cut_in_settings" if ":" in model else "prompt_cut"  # PROVIDER:MODEL is known to settings alone
        notice = make_notice(kind, run, self._clock.now(), model=model, least=least, counted=counted)
        await self._store.write(lambda tx: tx.notices.add(notice))

    async def mark_read(self, user_id: str, notice_id: str | None = None) -> int:
        """Mark one notice as read, or all of them."""
        now = self._clock.now()
        marked = await self._store.write(lambda tx: tx.notices.mark_read(user_id, notice_id, now))
        if notice_id is not None and not marked:
            raise NoSuchNotice(notice_id)
        return marked


# ── Times: saved as instants, written in the zone of the reader ──────────────────────────────────────────────────────

_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeText:
    """The body of a notice for one person, and the times in it: as they are written there, and the instants."""

    body: str
    times: Mapping[str, datetime] = field(default_factory=dict[str, datetime])


def write_times(notice: Notice, zone: str | None) -> NoticeText:
    """Return the body of a notice with its times in a person's zone; in UTC if it is not known."""
    times = {place: datetime.fromisoformat(text) for place, text in (notice.times or {}).items()}
    written = {place: write_time(at, zone) for place, at in times.items()}
    return NoticeText(
        body=_PLACE.sub(lambda found: written.get(found[1], found[0]), notice.body),
        times={written[place]: at for place, at in times.items()},
    )
