"""The file of each agent's database: opened with its key, written in order, put aside when damaged, erased for good.

What is asked of it is carried out in worker processes; those who watch are told of every write.
"""

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from secrets import token_bytes
from typing import Any, Literal

from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnreadable, DataNotFound
from wakeful.agentdb.files.open_database import Request
from wakeful.agentdb.keys.agent_keys import AgentKeys, Vault, with_journal
from wakeful.agentdb.operation import Door
from wakeful.agentdb.operations import OPERATIONS
from wakeful.agentdb.process import arguments
from wakeful.agentdb.process.engine import DatabaseEngine, WorkerAnswer
from wakeful.clock import Clock
from wakeful.domain.errors import WakefulError
from wakeful.domain.inbox import notices
from wakeful.domain.news import DatabaseChanged
from wakeful.domain.types import Agent, Notice
from wakeful.service.agents.changelog_heads import ChangelogHeads, Head
from wakeful.service.agents.directories import Directories
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

SECONDS = 5.0  # for one statement
LONG_SECONDS = 30.0  # for what goes through a whole file

_NO_KEY = bytes(32)
_LOCK_AGAIN = 0.05  # seconds
_JOURNALS_SECONDS = 5.0  # at a graceful stop, for journals that a crash has left

Actor = Literal["agent", "user", "migration", "system"]
Values = Mapping[str, Any]
State = Literal["none", "open", "locked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Whose database it is about, and who asks."""

    agent: Agent
    actor: Actor = "user"
    run_id: str | None = None
    door: Door = "command"  # a person came through; error texts name its operations


class AgentFiles:
    """Asks things of agents' databases."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        engine: DatabaseEngine,
        vault: Vault,
        quota: int,
        directories: Directories,
        folder: Path,
    ) -> None:
        self._store = store
        self._clock = clock
        self._engine = engine
        self._vault = vault
        self._quota = quota
        self._directories = directories
        self._folder = folder  # with one of each agent in it
        self._heads = ChangelogHeads(store)
        self._locks: dict[str, asyncio.Lock] = {}
        self._in_flight: Counter[str] = Counter()
        self._upgraded: set[str] = set()  # agents whose files are known to be whole and as this version writes them
        self._without: set[str] = set()  # agents that are known to have had no database

    async def state(self, agent: Agent) -> State:
        """Tell whether an agent has a database, and whether it can be opened."""
        await self._directories.check(agent.id)
        if not self._vault.has_database(agent.id):
            return "open" if await self._is_lost(agent.id) else "none"  # to open it says that it is lost
        try:
            self._vault.open(agent.id)
        except DatabaseLocked:
            return "locked"
        return "open"

    def in_flight(self, agent_id: str) -> int:
        """Return how many writes are under way."""
        return self._in_flight[agent_id]

    async def read(self, by: By, op: str, /, **args: Any) -> Any:
        """Have something read."""
        return (await self._ask(by, op, args)).result

    async def read_unparsed(self, by: By, op: str, /, **args: Any) -> bytes:
        """Have something read, and return it as it came."""
        return (await self._ask(by, op, args)).text

    async def write(self, by: By, op: str, table: str | None, /, **args: Any) -> Any:
        """Have something written, and announce it for that table, or for all of them."""
        async with self._writing(by, table):
            answered = await self._ask(by, op, args, is_writing=True)
            if answered.is_crossing:
                await self._warn(by.agent, answered)
        if answered.last_change and answered.last_hash:
            self._heads.note(by.agent.id, (answered.last_change, answered.last_hash))
        self._announce(by.agent, table, last_change=answered.last_change)
        return answered.result

    async def known_head(self, agent_id: str) -> Head | None:
        """Return the last change of an agent's changelog that the store knows of."""
        return await self._heads.of(agent_id)

    async def rotate_key(self, by: By) -> None:
        """Encrypt an agent's file, and its snapshots, with a new key."""
        agent = by.agent
        await self._directories.check(agent.id)
        if not self._vault.has_database(agent.id):
            return
        async with self._writing(by, None), self._folder_locked(agent.id):
            await self._finish_rotation(agent)  # one that was cut off: its new key does not open the file yet
            old = await self._fitting_key(agent, self._vault.database_of(agent.id))
            # Both are kept until every file surely has the new one: a crash in between leaves nothing locked.
            self._vault.save(agent.id, AgentKeys(current=token_bytes(32), previous=old))
            await self._finish_rotation(agent)
        self._announce(agent, None)

    async def show_key(self, by: By) -> tuple[str, bytes]:
        """Return where an agent's file is and its key. That it was shown is recorded before it is."""
        agent = by.agent
        await self._directories.check(agent.id)
        if not self._vault.has_database(agent.id):
            raise DataNotFound(
                f"Agent {agent.name!r} has no database yet, and so no key. It gets one with its first table."
            )
        await self.write(by, "note_key_shown", None)  # after a rotation that was cut off is finished
        await self._notice(notices.database_key_shown(agent, self._clock.now()))
        log.warning("database key shown", extra={"agent_id": agent.id, "user_id": agent.user_id})
        return self._vault.database_of(agent.id), self._vault.open(agent.id).current

    async def erase(self, agent: Agent) -> None:
        """Destroy an agent's database for good, by destroying its key first."""
        await self._directories.check(agent.id)
        await self.erase_deleted(agent)

    async def erase_deleted(self, agent: Agent) -> None:
        """Destroy the database of a deleted agent. One in another data directory is left to the nodes that have it."""
        async with self._lock(agent.id):
            had_one = self._vault.has_database(agent.id)
            await self._engine.close_file(self._vault.database_of(agent.id))
            self._vault.erase(agent.id)
            self._upgraded.discard(agent.id)
            await self._heads.forget(agent.id)
        if had_one:
            self._announce(agent, None)

    async def finish_erasing(self) -> None:
        """Erase what is left of agents that were deleted, in case a crash came before their databases were gone."""
        for agent_id in await self._store.read(lambda tx: tx.agents.ended()):
            if self._vault.has_anything(agent_id):
                log.info("database of a deleted agent erased", extra={"agent_id": agent_id})
                self._vault.erase(agent_id)
                await self._heads.forget(agent_id)

    def problems(self) -> list[str]:
        """Return what keeps every database from being used."""
        return [] if self._engine.problem is None else [f"no database worker can be started: {self._engine.problem}"]

    async def aclose(self) -> None:
        await self._heads.aclose()
        try:
            async with asyncio.timeout(_JOURNALS_SECONDS):
                await self._empty_journals()
        except TimeoutError:
            log.warning("some journals of agents' databases are left as they are")
        await self._engine.aclose()

    async def _empty_journals(self) -> None:
        """Open what a crash has left with a journal, so that closing it moves the journal into the file."""
        for agent_id in await asyncio.to_thread(with_journal, self._folder):
            path = self._vault.database_of(agent_id)
            if self._engine.has_open(path):
                continue
            try:
                keys = self._vault.open(agent_id)
                if keys.previous is None:  # else it is not known which one fits
                    await self._engine.ask(_check(path, keys.current, self._clock.now()), agent_id)
            except WakefulError as error:  # it stays as it is, and whoever uses it next is told
                log.warning("journal left as it is", extra={"agent_id": agent_id, "problem": error.message})

    @asynccontextmanager
    async def _writing(self, by: By, table: str | None) -> AsyncGenerator[None]:
        """Let one write at a time at a file, and announce that one is under way."""
        agent_id = by.agent.id
        self._in_flight[agent_id] += 1
        self._announce(by.agent, table)
        try:
            async with self._lock(agent_id):
                yield
        except BaseException:
            self._landed(agent_id)
            self._announce(by.agent, table)
            raise
        else:
            self._landed(agent_id)

    @asynccontextmanager
    async def _judging(self, agent_id: str, *, is_writing: bool) -> AsyncGenerator[None]:
        """Let nobody else, here or in another process, change a key while it is found out which one fits."""
        async with (
            contextlib.nullcontext() if is_writing else self._lock(agent_id),  # who writes holds it
            self._folder_locked(agent_id),
        ):
            yield

    @asynccontextmanager
    async def _folder_locked(self, agent_id: str) -> AsyncGenerator[None]:
        if not self._vault.has_folder(agent_id):
            yield
            return
        while (handle := self._vault.lock(agent_id)) is None:  # noqa: ASYNC110  (another process tells nobody)
            await asyncio.sleep(_LOCK_AGAIN)
        try:
            yield
        finally:
            os.close(handle)

    def _landed(self, agent_id: str) -> None:
        self._in_flight[agent_id] -= 1
        if not self._in_flight[agent_id]:
            del self._in_flight[agent_id]

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())

    def _announce(self, agent: Agent, table: str | None, last_change: int | None = None) -> None:
        in_flight = self._in_flight[agent.id]
        self._store.deliver(DatabaseChanged(agent.id, agent.user_id, table, in_flight, last_change))

    async def _ask(self, by: By, op: str, args: Values, *, is_writing: bool = False) -> WorkerAnswer:
        arguments.check(args)
        agent_id = by.agent.id
        path = self._vault.database_of(agent_id)
        if not self._vault.has_database(agent_id):
            await self._directories.check(agent_id)
            if await self._is_lost(agent_id):
                async with self._judging(agent_id, is_writing=is_writing):
                    raise await self._put_aside(by.agent)
            if not OPERATIONS[op].creates_file:
                # Nothing is made for the sake of a look: it is asked of an empty database in memory. Snapshots are
                # beside the file, and may be all that is left of it.
                place = path if op == "snapshots" else ""
                return await self._engine.ask(self._request(by, op, place, _NO_KEY, args), agent_id)
            await self._directories.bind(agent_id)
            key = self._vault.make(agent_id).current
            self._upgraded.add(agent_id)  # there is no file yet, and a new one needs no upgrade
            self._without.discard(agent_id)
        else:
            await self._directories.check(agent_id)
            keys = self._vault.open(agent_id)
            if keys.previous is not None:
                async with self._judging(agent_id, is_writing=is_writing):
                    await self._finish_rotation(by.agent)
                keys = self._vault.open(agent_id)
            key = keys.current
        try:
            if agent_id not in self._upgraded:
                async with contextlib.nullcontext() if is_writing else self._lock(agent_id):
                    await self._upgrade(by.agent, path, key)
            return await self._engine.ask(self._request(by, op, path, key, args), agent_id)
        except DatabaseUnreadable:
            # With the lock: during a rotation the key file is ahead of the file, which would be taken for damaged.
            async with self._judging(agent_id, is_writing=is_writing):
                await self._finish_rotation(by.agent)
                key = await self._fitting_key(by.agent, path)
                return await self._engine.ask(self._request(by, op, path, key, args), agent_id)

    def _request(self, by: By, op: str, path: str, key: bytes, args: Values) -> Request:
        return Request(
            op=op,
            path=path,
            key=key.hex(),
            seconds=LONG_SECONDS if OPERATIONS[op].is_long else SECONDS,
            quota=self._quota if by.agent.database_mb is None else by.agent.database_mb * 1024 * 1024,
            at=self._clock.now().isoformat(),
            actor=by.actor,
            run_id=by.run_id,
            door=by.door if by.actor == "user" else "tool",
            args=args,
        )

    async def _upgrade(self, agent: Agent, path: str, key: bytes) -> None:
        """Look whether a file is whole before it is first used, and bring one of an earlier version up to date.

        Its owner is told what is missing and what changed.
        """
        if agent.id in self._upgraded:  # while this one waited for the lock
            return
        if await self._is_lost(agent.id):
            raise DatabaseUnreadable(f"The file {path!r} has no content.")
        request = self._request(By(agent=agent, actor="system"), "upgrade", path, key, {})
        done = (await self._engine.ask(request, agent.id)).result
        if done["renamed"]:
            log.info("columns of a database renamed", extra={"agent_id": agent.id, "tables": len(done["renamed"])})
            now = self._clock.now()
            await self._notice(notices.columns_renamed(agent, done["renamed"], done["views"], done["snapshot"], now))
        await self._tell_missing(agent, path, key)
        self._upgraded.add(agent.id)

    async def _tell_missing(self, agent: Agent, path: str, key: bytes) -> None:
        """Tell the owner of a file if changes are missing that were written to it, as after a cut journal."""
        known = await self._heads.of(agent.id)
        if known is None:
            return
        request = self._request(By(agent=agent, actor="system"), "reaches", path, key, {"known": known})
        found = (await self._engine.ask(request, agent.id)).result
        if not found["reaches"]:
            fields = {"agent_id": agent.id, "written": known[0], "found": found["last"]}
            log.error("changes of a database are missing", extra=fields)
            notice = notices.database_behind(agent, known, found["last"], found["at"], self._clock.now())
            await self._notice(notice)

    async def _is_lost(self, agent_id: str) -> bool:
        """Tell whether a file is missing or has no content, and once had some."""
        if agent_id in self._without or not self._vault.is_empty(agent_id):
            return False
        if self._vault.has_cut_file(agent_id) or await self._heads.of(agent_id) is not None:
            return True
        self._without.add(agent_id)
        return False

    async def _finish_rotation(self, agent: Agent) -> None:
        """See a rotation through, be it one that was cut off: the file and its snapshots get the new key."""
        keys = self._vault.open(agent.id)
        if keys.previous is None:
            return
        path = self._vault.database_of(agent.id)
        await self._engine.close_file(path)
        args = {"new_key": keys.current.hex()}
        try:
            request = self._request(By(agent=agent, actor="system"), "rekey", path, keys.previous, args)
            await self._engine.ask(request, agent.id)
        except DatabaseUnreadable:
            raise await self._put_aside(agent) from None
        self._vault.save(agent.id, AgentKeys(current=keys.current))

    async def _fitting_key(self, agent: Agent, path: str) -> bytes:
        """Return the key of a file after a look whether it really opens it.

        A file that it does not open is damaged: it is put aside, so that the agent can begin anew.
        """
        key = self._vault.open(agent.id).current
        if await self._is_lost(agent.id):  # before it is opened, which would make a new one of it
            raise await self._put_aside(agent)
        try:
            await self._engine.ask(self._request(By(agent=agent, actor="system"), "check", path, key, {}), agent.id)
        except DatabaseUnreadable:
            raise await self._put_aside(agent) from None
        return key

    async def _put_aside(self, agent: Agent) -> DatabaseUnreadable:
        now = self._clock.now()
        self._upgraded.discard(agent.id)
        what = (
            "is missing"
            if not self._vault.has_database(agent.id)
            else "is empty (0 bytes)"
            if self._vault.is_empty(agent.id)
            else "is damaged"
        )
        await self._engine.close_file(self._vault.database_of(agent.id))
        aside = self._vault.set_aside(agent.id, now.isoformat())
        log.error("database unreadable, set aside", extra={"agent_id": agent.id, "problem": what, "path": str(aside)})
        # Where the data directory is stays in the log.
        place = None if aside is None else str(aside.relative_to(self._folder.parent))
        await self._notice(notices.database_unreadable(agent, what, place, now))
        await self._heads.forget(agent.id)  # last: after a crash in between it is told again rather than never
        left = "Nothing is left of it here"
        if place is not None:
            left = f"What is left of it was put aside at {place!r} in the data directory"
        return DatabaseUnreadable(
            f"The database of agent {agent.name!r} {what}. {left}, and nothing was deleted. The next write begins "
            "a new one."
        )

    async def _warn(self, agent: Agent, answered: WorkerAnswer) -> None:
        assert answered.used is not None
        assert answered.quota is not None
        await self._notice(notices.storage_low(agent, answered.used, answered.quota, self._clock.now()))

    async def _notice(self, notice: Notice) -> None:
        async def work(tx: Tx) -> None:
            await tx.notices.add(notice)

        await self._store.write(work)


def _check(path: str, key: bytes, now: datetime) -> Request:
    return Request(op="check", path=path, key=key.hex(), seconds=SECONDS, quota=0, at=now.isoformat())
