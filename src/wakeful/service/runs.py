"""What people may ask of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from wakeful.clock import Clock
from wakeful.domain import ids, wakes
from wakeful.domain.events import StreamStopped
from wakeful.domain.rules import Rules
from wakeful.domain.runs import NotFromAWake, NothingToContinue, SessionBusy
from wakeful.domain.types import Message, Run, RunUsage, Upload
from wakeful.hub import Sent
from wakeful.service.directories import Directories
from wakeful.service.endings import end_once_wake
from wakeful.service.presence import hold_wakes, note_writing
from wakeful.service.stream import Stream
from wakeful.store.store import Store, Tx


@dataclass(frozen=True, slots=True)
class Image:
    """A picture a person sends along."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Attached:
    """What comes with a message: pictures, and files uploaded before."""

    images: tuple[Image, ...] = ()
    files: tuple[Upload, ...] = ()


NOTHING = Attached()


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run that was asked to stop, and what it was doing."""

    run_id: str
    was: Literal["queued", "running"]


class RunService:
    """Ask and stop."""

    def __init__(self, store: Store, stream: Stream, clock: Clock, rules: Rules, directories: Directories) -> None:
        self._store = store
        self._directories = directories
        self._stream = stream
        self._clock = clock
        self._rules = rules

    async def ask(self, session_id: str, user_id: str, content: str, attached: Attached = NOTHING) -> Run:
        """Put a user's message into a session and queue its run; refused while the agent is at work there.

        Headless runs that only wait do not count: the user goes first. After a run's end they are held for a second.
        """
        now = self._clock.now()
        images = {ids.new_id(now): image for image in attached.images}

        async def work(tx: Tx) -> Run:
            session = await tx.sessions.get(session_id, user_id)
            await self._directories.check_reachable(tx, session.agent_id)
            run = Run(
                id=ids.new_id(now),
                agent_id=session.agent_id,
                user_id=user_id,
                session_id=session_id,
                wake_id=None,
                kind=None,
                trigger="message",
                scheduled_by="user",
                nominal_at=now,
                queued_at=now,
            )
            message = Message(
                id=ids.new_id(now),
                session_id=session_id,
                position=0,
                role="user",
                content=content,
                created_at=now,
                data=_attachments(images, attached),
            )
            # The transcript first: its row in sessions makes two messages at once wait for each other.
            await tx.sessions.append(message)
            busy = await tx.runs.unfinished_in(session_id)
            if busy is not None:
                raise SessionBusy(busy)
            for image_id, image in images.items():
                await tx.sessions.add_image(image_id, session_id, image.media_type, image.content)
            await tx.runs.add([run])
            await note_writing(tx, session_id, now, self._rules)
            tx.runs.tell_changed([run.id])
            tx.tell(f"session {session_id}")
            return run

        try:
            return await self._store.write(work)
        except SessionBusy:  # whoever tries again when that run has ended goes before queued wakes
            await self._store.write(lambda tx: note_writing(tx, session_id, now, self._rules), is_synced=False)
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
        """Continue a run that was cut off, from its last saved step."""

        async def work(tx: Tx) -> Run:
            run = await tx.runs.get(run_id, user_id)
            if run.session_id is None:
                raise NothingToContinue(run)
            await tx.sessions.get(run.session_id, user_id)
            await self._directories.check_reachable(tx, run.agent_id)
            busy = await tx.runs.unfinished_in(run.session_id)
            if busy is not None:
                raise SessionBusy(busy)
            continued = await tx.runs.go_on(run_id)
            if continued is None:
                raise NothingToContinue(run)
            tx.runs.tell_changed([run_id])
            return continued

        return await self._store.write(work)

    async def again(self, run_id: str, user_id: str) -> Run:
        """Do what a wake's run did once more, as an extra run that its times know nothing of."""
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            run = await tx.runs.get(run_id, user_id)
            if run.wake_id is None:
                raise NotFromAWake(run)
            await self._directories.check_reachable(tx, run.agent_id)
            verdict = wakes.run_again(await tx.wakes.read(run.wake_id, user_id), now)
            await tx.sessions.add(verdict.sessions)
            await tx.runs.add(verdict.runs)
            tx.runs.tell_changed(each.id for each in verdict.runs)
            return verdict.runs[0]

        return await self._store.write(work)

    async def usage(self, run_ids: Sequence[str]) -> dict[str, RunUsage]:
        """Return what each of these runs has used; one that never asked a model is not there."""
        return await self._store.read(lambda tx: tx.usage.of_runs(run_ids))

    async def save_usage(self, usage: RunUsage) -> None:
        """Note what was used for a run after its end."""
        await self._store.write(lambda tx: tx.usage.save(usage), is_synced=False)

    async def stop(self, run_id: str, user_id: str) -> Stopped | None:
        """Ask a run to stop: one that waits ends at once, one at work within two seconds. None if it was over."""
        now = self._clock.now()

        async def work(tx: Tx) -> tuple[Run, list[Sent]]:
            run = await tx.runs.get(run_id, user_id)
            said: list[Sent] = []
            if run.status == "queued":
                await tx.runs.end_queued(run_id, "stopped", "stopped", now)
                await end_once_wake(tx, run, "fired", "stopped", now)
                tx.runs.tell_changed([run.id])
                # Who waits for its answer learns that there will be none. A headless one that never began says nothing:
                # another run may be speaking, and this would sound like its end.
                if run.session_id is not None and (not run.is_headless or run.fence > 0):
                    said = await self._stream.add(
                        tx, run.session_id, run.id, [StreamStopped()], f"{run.id}:end:{run.fence}", now
                    )
                    await hold_wakes(tx, [run], now, self._rules)
            if run.status == "running":
                await tx.runs.request_stop(run_id, now)  # the first wish counts; a second changes nothing
            return run, said

        run, said = await self._store.write(work)
        if run.session_id is not None:
            self._stream.publish(run.session_id, said)
        return Stopped(run.id, run.status) if run.status in ("queued", "running") else None

    async def stop_session(self, session_id: str, user_id: str) -> Stopped | None:
        """Stop the run at work in a session or, if there is none, the next in its queue. None if there is neither."""

        async def work(tx: Tx) -> Run | None:
            await tx.sessions.get(session_id, user_id)
            return await tx.runs.running_or_next_in(session_id)

        while (run := await self._store.read(work)) is not None:
            stopped = await self.stop(run.id, user_id)
            if stopped is not None:  # else it ended between the look and the wish, and another one may be next
                return stopped
        return None


def _attachments(images: Mapping[str, Image], attached: Attached) -> dict[str, Any] | None:
    if not attached.images and not attached.files:
        return None
    return {
        "images": [{"id": image_id, "media_type": image.media_type} for image_id, image in images.items()],
        "files": [{"name": file.name, "path": file.path} for file in attached.files],
    }
