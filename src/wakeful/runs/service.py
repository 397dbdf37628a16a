"""Send messages to agents; list, repeat, continue and stop runs. The brake on those of one token or hook."""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from wakeful.core import ids
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreBusy, Unavailable
from wakeful.core.events import LookAgain, RunChanged
from wakeful.core.labels import HOUR, TokenBraked, Via, describe_door, stamp
from wakeful.core.records import Attached, Image, Stopped
from wakeful.core.texts import first_words
from wakeful.core.types import Message, Rules, Run, RunUsage, Session
from wakeful.runs.rules import NotFromAWake, NothingToContinue, ReplacedByVersion, RunTexts, find_last_asked, texts_of
from wakeful.runs.stopping import Stopping
from wakeful.sessions.messages import all_messages
from wakeful.sessions.presence import mark_present
from wakeful.sessions.service import SessionBusy
from wakeful.store.store import Store, Tx
from wakeful.timing import lifecycle

log = logging.getLogger(__name__)

T = TypeVar("T")

# Seconds. A request to stop is answered within two, even if another node or the database hangs.
_ANSWER_WITHIN = 1.9
_LOCK_WITHIN = 1.1  # then another node that hangs holds the row


NOTHING = Attached()


class StopUncertain(Unavailable):
    code = "stop_uncertain"

    def __init__(self) -> None:
        super().__init__(
            "The database did not answer in time, so it is not known whether the run was asked to stop. Try again: a "
            "second request changes nothing."
        )


class RunService:
    def __init__(self, store: Store, stopping: Stopping, clock: Clock, rules: Rules) -> None:
        self._store = store
        self._stopping = stopping
        self._clock = clock
        self._rules = rules

    async def ask(
        self, session_id: str, user_id: str, content: str, attached: Attached = NOTHING, via: Via | None = None
    ) -> Run:
        """Add a user's message to a session and queue its run; refused while a run is running there.

        Queued headless runs do not count: the user goes first. After a run's end they are held for a second.
        """
        now = self._clock.now()
        images = name_images(attached, now)

        async def work(tx: Tx) -> Run:
            session = await tx.sessions.get(session_id, user_id)
            return await self.add(tx, session, content, images, attached, now, via)

        return await self.write_or_mark_present(work, now)

    async def add(
        self,
        tx: Tx,
        session: Session,
        content: str,
        images: Mapping[str, Image],
        attached: Attached,
        now: datetime,
        via: Via | None,
        *,
        system: str = "",
        replaces: str | None = None,
    ) -> Run:
        """Add a user's message with its attachments and queue its run, as a part of a larger change.

        `system` is text of the program that sent the message, for the system prompt of this run. `replaces` is the id
        of the last message, if this one is another version of it.
        """
        data = _attachments(images, attached)
        if system:
            data = {**(data or {}), "system": system}
        run, new = await self._add(tx, session, content, data, now, via)
        if replaces is not None:
            await _supersede(tx, replaces, new, run)
        for image_id, image in images.items():
            await tx.sessions.add_image(image_id, session.id, image.media_type, image.content)
        return run

    async def ask_in_new_session(self, agent_id: str, user_id: str, content: str, via: Via | None = None) -> Run:
        """Open a session with an agent, and queue the run of its first message, in one transaction."""
        now = self._clock.now()
        session = Session(
            id=ids.new_id(now),
            agent_id=agent_id,
            user_id=user_id,
            title=first_words(content),
            created_at=now,
            updated_at=now,
        )

        async def work(tx: Tx) -> Run:
            await check_brake(tx, via, now, self._rules)
            await tx.agents.get(agent_id, user_id)
            await tx.sessions.add([session])
            run, _ = await self._add(tx, session, content, None, now, via)
            return run

        return await self._store.write(work)

    async def ask_again(
        self, session_id: str, user_id: str, message_id: str, content: str | None = None, via: Via | None = None
    ) -> Run:
        """Have a person's last message answered again, with other words if given; its attachments stay.

        The message and everything after it become an earlier version, which models no longer read. The effects of its
        tool calls stay.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            session = await tx.sessions.get(session_id, user_id)
            asked = find_last_asked(await all_messages(tx, session_id), message_id)
            text = asked.content if content is None else content
            run, new = await self._add(tx, session, text, asked.data, now, via)
            await _supersede(tx, message_id, new, run)
            return run

        return await self.write_or_mark_present(work, now)

    async def _add(
        self,
        tx: Tx,
        session: Session,
        content: str,
        data: Mapping[str, Any] | None,
        now: datetime,
        via: Via | None,
    ) -> tuple[Run, Message]:
        """Add a person's message and queue its run; refused while a run is running there."""
        await check_brake(tx, via, now, self._rules)
        asked = Run(
            id=ids.new_id(now),
            agent_id=session.agent_id,
            user_id=session.user_id,
            session_id=session.id,
            wake_id=None,
            kind=None,
            trigger="message",
            scheduled_by="user",
            nominal_at=now,
            queued_at=now,
        )
        run = stamp(asked, via)
        message = Message(
            id=ids.new_id(now),
            session_id=session.id,
            run_id=run.id,
            position=0,
            role="user",
            content=content,
            created_at=now,
            data=_with_door(data, via),
        )
        # The transcript first: it locks the session's row, so that two messages at once wait for each other.
        placed = await tx.sessions.append(message)
        busy = await tx.runs.unfinished_in(session.id)
        if busy is not None:
            raise SessionBusy(busy)
        await tx.runs.add([run])
        await mark_present(tx, session.id, now, self._rules)
        return run, placed

    async def write_or_mark_present(self, work: Callable[[Tx], Coroutine[Any, Any, T]], now: datetime) -> T:
        """Do work that adds a message; if a run is in its way, note that someone is there who wants to write."""
        try:
            return await self._store.write(work)
        except SessionBusy as busy:  # a retry after that run's end goes before queued wakes
            session_id = busy.run.session_id
            assert session_id is not None
            await self._store.write(lambda tx: mark_present(tx, session_id, now, self._rules), is_synced=False)
            raise

    async def get(self, run_id: str, user_id: str) -> Run:
        return await self._store.read(lambda tx: tx.runs.read(run_id, user_id))

    async def find(
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
        return await self._store.read(
            lambda tx: tx.runs.of_user(
                user_id,
                agent_id=agent_id,
                session_id=session_id,
                wake_id=wake_id,
                status=status,
                before=before,
                most=most,
            )
        )

    async def go_on(self, run_id: str, user_id: str) -> Run:
        """Continue an interrupted run from its last saved step."""

        async def work(tx: Tx) -> Run:
            run = await tx.runs.get(run_id, user_id)
            if run.session_id is None:
                raise NothingToContinue(run)
            await tx.sessions.get(run.session_id, user_id)
            if any(step.superseded_by is not None for step in await tx.sessions.steps_of(run_id)):
                raise ReplacedByVersion(run_id)
            busy = await tx.runs.unfinished_in(run.session_id)
            if busy is not None:
                raise SessionBusy(busy)
            continued = await tx.runs.go_on(run_id)
            if continued is None:
                raise NothingToContinue(run)
            return continued

        return await self._store.write(work)

    async def again(self, run_id: str, user_id: str, via: Via | None = None) -> Run:
        """Run a wake again, outside of its schedule."""
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            await check_brake(tx, via, now, self._rules)
            run = await tx.runs.get(run_id, user_id)
            return await run_again(tx, run, now, via)

        return await self._store.write(work)

    async def subjects(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Return what each of these runs is about, in a few words."""
        return await self._store.read(lambda tx: tx.runs.subjects(run_ids))

    async def texts(self, run: Run) -> RunTexts:
        """Return the text that a run was given, and its answer."""

        async def work(tx: Tx) -> RunTexts:
            wake = None if run.wake_id is None else await tx.wakes.find(run.wake_id)
            return texts_of(await tx.sessions.steps_of(run.id), wake)

        return await self._store.read(work)

    async def usage(self, run_ids: Sequence[str]) -> dict[str, RunUsage]:
        """Return the usage of each of these runs that has called a model."""
        return await self._store.read(lambda tx: tx.usage.of_runs(run_ids))

    async def save_usage(self, usage: RunUsage) -> None:
        """Save the usage of a run after its end."""
        await self._store.write(lambda tx: tx.usage.save(usage), is_synced=False)

    async def stop(self, run_id: str, user_id: str) -> Stopped | None:
        """Stop a run: a queued one ends at once, a running one within two seconds. None if it was over.

        While a node that does not answer holds the run, the request is saved, and carried out when the run is free.
        """
        async with self._answering_in_time():
            return await self._stop(run_id, user_id)

    async def stop_session(self, session_id: str, user_id: str) -> Stopped | None:
        """Stop the running run of a session or, if there is none, the next in its queue. None if there is neither."""

        async def work(tx: Tx) -> Run | None:
            await tx.sessions.get(session_id, user_id)
            return await tx.runs.running_or_next_in(session_id)

        async with self._answering_in_time():
            while (run := await self._store.read(work)) is not None:
                stopped = await self._stop(run.id, user_id)
                if stopped is not None:  # else it ended in between, and another one may be next
                    return stopped
            return None

    async def _stop(self, run_id: str, user_id: str) -> Stopped | None:
        try:
            async with asyncio.timeout(_LOCK_WITHIN if self._store.is_shared else None):
                return _stopped(await self._stopping.stop(run_id, user_id))
        except (StoreBusy, TimeoutError):
            log.warning("stop request saved for later: another node holds the run", extra={"run_id": run_id})
        return _stopped(await self._stopping.request_later(run_id, user_id), is_delayed=True)

    @contextlib.asynccontextmanager
    async def _answering_in_time(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN if self._store.is_shared else None):
                yield
        except TimeoutError as error:
            raise StopUncertain from error


async def run_again(tx: Tx, run: Run, now: datetime, via: Via | None) -> Run:
    """Queue another run of a run's wake, outside of its schedule."""
    if run.wake_id is None:
        raise NotFromAWake(run)
    verdict = lifecycle.run_again(await tx.wakes.read(run.wake_id, run.user_id), now)
    await tx.sessions.add(verdict.sessions)
    again = stamp(verdict.runs[0], via)
    await tx.runs.add([again])
    return again


async def _supersede(tx: Tx, message_id: str, new: Message, run: Run) -> None:
    """Make the last message and everything after it an earlier version of a new one."""
    # Found under the lock that adding has taken: a wake or another page may have been quicker.
    others = [each for each in await all_messages(tx, new.session_id) if each.id != new.id]
    asked = find_last_asked(others, message_id)
    await tx.sessions.supersede(new.session_id, asked.position, new.position, run.id)


def _with_door(data: Mapping[str, Any] | None, via: Via | None) -> Mapping[str, Any] | None:
    """Add to a message how it came in, if a program sent it."""
    kept = {name: value for name, value in (data or {}).items() if name != "through"}
    if via is not None and via.is_braked:
        kept["through"] = describe_door(via.door, via.token_name)
    return kept or None


def name_images(attached: Attached, now: datetime) -> dict[str, Image]:
    """Give each image an id: outside of the transaction, which may be run again."""
    return {ids.new_id(now): image for image in attached.images}


def _stopped(run: Run, *, is_delayed: bool = False) -> Stopped | None:
    return Stopped(run.id, run.status, is_delayed) if run.status in ("queued", "running") else None


def _attachments(images: Mapping[str, Image], attached: Attached) -> dict[str, Any] | None:
    if not attached.images and not attached.files:
        return None
    return {
        "images": [{"id": image_id, "media_type": image.media_type} for image_id, image in images.items()],
        "files": [{"name": file.name, "path": file.path} for file in attached.files],
    }


# ── Waiting for the end of a run ──────────────────────────────────────────────────────────────────────────────────────


class RunWaits:
    """Waits for the end of runs, on whichever node they are executed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)  # by run
        store.on(RunChanged, lambda news: self._look(news.run_id))
        store.on(LookAgain, lambda _: self._look_everywhere())

    def now(self) -> datetime:
        return self._clock.now()

    async def wait(self, run_id: str, user_id: str, until: datetime) -> Run:
        """Return a user's run when it has ended, or as it is at an instant. Giving up changes nothing about the run."""
        news = asyncio.Event()
        self._waiting[run_id].add(news)
        try:
            while True:
                news.clear()
                run = await self._store.read(lambda tx: tx.runs.read(run_id, user_id), is_single=True)
                if run.finished_at is not None or self._clock.now() >= until:
                    return run
                await self._clock.wait(until, news)
        finally:
            self._waiting[run_id].discard(news)
            if not self._waiting[run_id]:
                del self._waiting[run_id]

    def _look(self, run_id: str) -> None:
        for news in self._waiting.get(run_id, ()):
            news.set()

    def _look_everywhere(self) -> None:
        for run_id in self._waiting:
            self._look(run_id)


# The brake on the bookings and runs of one token or hook.


SIDE_REQUESTS = 4  # for each run that a token may start: a chat page asks for up to three after a message


async def check_brake(tx: Tx, via: Via | None, now: datetime, rules: Rules, *, is_side_request: bool = False) -> None:
    """Refuse a booking or a run of a token that has used up its hour. Until the transaction ends, no other one counts.

    Requests for titles, tags and follow-ups are counted apart, so that they leave no less room for messages. Call it
    before anything else that locks a row, so that all transactions take their locks in the same order.
    """
    if via is None or not via.is_braked or via.token_id is None:
        return
    await tx.token_uses.lock(via.token_id)
    most = rules.runs_per_token * (SIDE_REQUESTS if is_side_request else 1)
    used_at = await tx.token_uses.find(via.token_id, now, most, is_side_request=is_side_request)
    if used_at is not None:
        what = "asked for {} titles, tags and follow-ups" if is_side_request else "booked or started {} runs"
        raise TokenBraked(via, what.format(most), used_at + HOUR, now)
