"""The inbox of a user: list notices and mark them as read."""

from wakeful.clock import Clock
from wakeful.domain.agents.confinement import Confinement
from wakeful.domain.errors import NotFound
from wakeful.domain.inbox.notices import prompt_cut, shell_refused
from wakeful.domain.types import Agent, Notice, Run
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
        notice = shell_refused(agent, confinement, self._clock.now())
        await self._store.write(lambda tx: tx.notices.add(notice))

    async def add_prompt_cut(self, run: Run, model: str, least: int, counted: int) -> None:
        """Add a notice, once a day for each agent and model, that a provider drops a part of what it is sent."""
        notice = prompt_cut(run, model, least, counted, self._clock.now())
        await self._store.write(lambda tx: tx.notices.add(notice))

    async def mark_read(self, user_id: str, notice_id: str | None = None) -> int:
        """Mark one notice as read, or all of them."""
        now = self._clock.now()
        marked = await self._store.write(lambda tx: tx.notices.mark_read(user_id, notice_id, now))
        if notice_id is not None and not marked:
            raise NoSuchNotice(notice_id)
        return marked
