"""What people may ask of runs."""

from wakeful.clock import Clock
from wakeful.domain import ids
from wakeful.domain.runs import SessionBusy
from wakeful.domain.types import Message, Run
from wakeful.service.endings import end_once_wake
from wakeful.store.store import Store, Tx


class RunService:
    """Ask and stop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def ask(self, session_id: str, user_id: str, content: str) -> Run:
        """Put a user's message into a session and queue its run; refused while the agent is at work there.

        Headless runs that only wait do not count: the user goes first.
        """
        now = self._clock.now()

        async def work(tx: Tx) -> Run:
            session = await tx.sessions.get(session_id, user_id)
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
            )
            # The transcript first: its row in sessions makes two messages at once wait for each other.
            await tx.sessions.append(message)
            busy = await tx.runs.unfinished_in(session_id)
            if busy is not None:
                raise SessionBusy(busy)
            await tx.runs.add([run])
            return run

        return await self._store.write(work)

    async def get(self, run_id: str, user_id: str) -> Run:
        return await self._store.read(lambda tx: tx.runs.read(run_id, user_id))

    async def stop(self, run_id: str, user_id: str) -> bool:
        """Ask a run to stop: one that waits ends at once, one at work within two seconds. False if it was over."""
        now = self._clock.now()

        async def work(tx: Tx) -> bool:
            run = await tx.runs.get(run_id, user_id)
            if run.status == "queued":
                await tx.runs.end_queued(run_id, "stopped", "stopped", now)
                await end_once_wake(tx, run, "fired", "stopped", now)
                return True
            if run.status == "running":
                await tx.runs.request_stop(run_id, now)  # the first wish counts; a second changes nothing
            return run.status == "running"

        return await self._store.write(work)
