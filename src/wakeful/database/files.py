"""The file of each agent's database: opening with its key, one write at a time, key rotation, damage, erasure.

Operations run in worker processes; subscribers are notified of every write.
"""

import asyncio
import contextlib
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from secrets import token_bytes
from typing import Any, Literal, TypeVar

from wakeful.agentdb import engine as agentdb_engine
from wakeful.agentdb.connection import Request
from wakeful.agentdb.engine import DatabaseEngine, WorkerAnswer
from wakeful.agentdb.errors import (
    DatabaseLocked,
    DatabaseMalformed,
    DatabaseUnavailable,
    DatabaseUnreadable,
    DataNotFound,
)
from wakeful.agentdb.keys import AgentKeys, Vault, with_journal
from wakeful.agentdb.operation import Door
from wakeful.agentdb.operations import OPERATIONS
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable, WakefulError
from wakeful.core.events import DatabaseChanged, HomeErased
from wakeful.core.types import Agent, Notice
from wakeful.database.damage import ChangelogHeads, HomeDamage
from wakeful.homes.files import FileTroubles
from wakeful.homes.service import Homes
from wakeful.notices.texts import make_notice
from wakeful.store.base import Job
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

T = TypeVar("T")

SECONDS = 5.0  # for one statement
LONG_SECONDS = 30.0  # for operations that read a whole file

_NO_KEY = bytes(32)
_LOCK_AGAIN = 0.05  # seconds
_JOURNALS_SECONDS = 5.0  # at a graceful stop, to empty journals that a crash has left

Actor = Literal["agent", "user", "migration", "system"]
Values = Mapping[str, Any]
State = Literal["none", "open", "locked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """The agent whose database it is, and the caller."""

    agent: Agent
    actor: Actor = "user"
    run_id: str | None = None
    door: Door = "command"  # how a user reached us; error texts name its operations


class AgentFiles:
    """Opens agents' databases, runs operations on them and manages their keys."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        engine: DatabaseEngine,
        vault: Vault,
        quota: int,
        folder: Path,
        homes: Homes | None = None,
    ) -> None:
        self._store = store
        self.clock = clock
        self.engine = engine
        self.vault = vault
        self.default_quota = quota  # bytes; of agents without their own
        self._folder = folder  # contains the agents' folders
        self._homes = homes  # None: an embedded store, whose files are not caches
        self._at_homes: set[asyncio.Task[Any]] = set()
        self.heads = ChangelogHeads(store)
        self._locks: dict[str, asyncio.Lock] = {}
        self._in_flight: Counter[str] = Counter()
        self.prepared: set[str] = set()  # agents whose files were checked before their first use
        self._without: set[str] = set()  # agents that never had a database
        if homes is not None:
            store.on(HomeErased, lambda news: self._drop_soon(homes, news.agent_id))

    async def state(self, agent: Agent) -> State:
        """Return whether an agent has a database, and whether it can be opened."""
        if self._homes is not None:
            async with self.lock(agent.id):
                await self._bring_database(self._homes, agent)
        if not self.vault.has_database(agent.id):
            is_lost = self._homes is None and await self._is_lost(agent.id)
            return "open" if is_lost else "none"  # opening a lost one raises
        try:
            await self._prepare_in_turn(agent)
        except DatabaseLocked:
            return "locked"
        except WakefulError:
            pass  # the next use reports it
        return "open"

    async def _prepare_in_turn(self, agent: Agent) -> None:
        keys = self.vault.open(agent.id)
        if self._homes is None and keys.previous is None and agent.id not in self.prepared:
            async with self.lock(agent.id):
                await self._prepare(agent, self.vault.database_of(agent.id), keys.current)

    def in_flight(self, agent_id: str) -> int:
        """Return the number of writes that wait or run."""
        return self._in_flight[agent_id]

    async def run(self, by: By, op: str, /, **args: Any) -> Any:
        """Run an operation with the arguments of its function, and return its result. Writes are announced."""
        return (await self._perform(by, op, args)).result

    async def run_numbered(self, by: By, op: str, /, **args: Any) -> tuple[Any, int | None]:
        """Do the same, and also return the number of the last changelog entry of a write."""
        answered = await self._perform(by, op, args)
        return answered.result, answered.last_change

    async def _perform(self, by: By, op: str, args: dict[str, Any]) -> WorkerAnswer:
        return await self._to_the_end(self._perform_now(by, op, args))

    async def _perform_now(self, by: By, op: str, args: dict[str, Any]) -> WorkerAnswer:
        if op == "verify":
            args["known"] = await self.heads.of(by.agent.id)
        if OPERATIONS[op].kind == "read":
            return await self._read(by, op, args)
        table = OPERATIONS[op].table_in(args)
        async with self._writing(by, table):
            answered = await self._write(by, op, args, table)
            if answered.is_crossing:
                await self._warn(by.agent, answered)
        if answered.last_change and answered.last_hash:
            home = None if self._homes is None else self._homes.cached(by.agent.id)
            self.heads.note(by.agent.id, (answered.last_change, answered.last_hash), home)
        self._announce(by.agent, table, last_change=answered.last_change)
        return answered

    async def run_unparsed(self, by: By, op: str, /, **args: Any) -> bytes:
        """Run an operation that reads, and return its result as JSON, or the file that it wrote."""
        return (await self._to_the_end(self._read(by, op, args))).text

    async def _read(self, by: By, op: str, args: Values) -> WorkerAnswer:
        if self._homes is None:
            return await self._ask(by, op, args)
        return await self._read_cache(self._homes, by, op, args)

    async def _write(self, by: By, op: str, args: Values, table: str | None) -> WorkerAnswer:
        if self._homes is None:
            return await self._ask(by, op, args, is_writing=True)
        return await self._write_cache(self._homes, by, op, args, table)

    async def rotate_key(self, by: By) -> None:
        """Encrypt an agent's file, and its snapshots, with a new key."""
        agent = by.agent
        if await self.state(agent) == "none":
            return
        await self._to_the_end(self._rotate_now(by))
        self._announce(agent, None)

    async def _rotate_now(self, by: By) -> None:
        async with self._writing(by, None):
            if self._homes is None:
                await self._rotate(by.agent)
            else:
                await self._homes.change(by.agent.id, by.run_id, lambda: self._rotate(by.agent), is_long=True)

    async def _rotate(self, agent: Agent) -> None:
        async with self._folder_locked(agent.id):
            await self._finish_rotation(agent)  # an interrupted one: its new key does not open the file yet
            path = self.vault.database_of(agent.id)
            old = await self._fitting_key(agent, path)
            if self._homes is None:
                await self._prepare(agent, path, old)
            # Both keys are kept until every file has the new one: a crash in between leaves nothing locked.
            self.vault.save(agent.id, AgentKeys(current=token_bytes(32), previous=old))
            await self._finish_rotation(agent)

    async def show_key(self, by: By) -> tuple[str, bytes]:
        """Return the path and key of an agent's file, after recording that it was shown."""
        agent = by.agent
        if await self.state(agent) == "none":
            raise DataNotFound(f"Agent {agent.name!r} has no database yet. Its first table creates it, with its key.")
        await self.run(by, "note_key_shown")  # also finishes an interrupted rotation
        now = self.clock.now()
        await self._notice(make_notice("database_key_shown", agent, now, at=now))
        log.warning("database key shown", extra={"agent_id": agent.id, "user_id": agent.user_id})
        return self.vault.database_of(agent.id), self.vault.open(agent.id).current

    async def erase(self, agent: Agent) -> None:
        """Destroy an agent's database, its key first."""
        await self._to_the_end(self._erase(agent))

    async def erase_deleted(self, agent: Agent) -> None:
        """Destroy the database of a deleted agent, and on a shared store its files."""
        await self._to_the_end(self._erase(agent, is_deleted=True))

    async def _erase(self, agent: Agent, *, is_deleted: bool = False) -> None:
        async with self.lock(agent.id):
            if self._homes is None:
                had_one = self.vault.has_database(agent.id)
                await self.engine.close_file(self.vault.database_of(agent.id))
                self.vault.erase(agent.id)
            else:
                had_one = await self._homes.erase(agent.id, files_too=is_deleted)
            self.prepared.discard(agent.id)
            await self.heads.forget(agent.id)
        if had_one:
            self._announce(agent, None)

    def jobs(self) -> Iterator[Job]:
        if self._store.is_shared:  # another node may have deleted agents that have files here
            yield Job(name="deleted-agents", every=timedelta(minutes=1), run=self.finish_erasing)

    async def finish_erasing(self) -> None:
        """Erase what a crash, or news that did not arrive here, has left of deleted agents."""
        if self._homes is not None:
            await self._homes.finish_erasing()
        ended = await self._store.read(lambda tx: tx.agents.ended())
        if self._homes is not None:
            for agent_id in self._homes.copied().intersection(ended):
                await self._follow_erasing(self._homes, agent_id)
        for agent_id in ended:
            if self.vault.has_anything(agent_id):
                log.info("database of a deleted agent erased", extra={"agent_id": agent_id})
                self.vault.erase(agent_id)
                await self.heads.forget(agent_id)

    def problems(self) -> list[str]:
        """Return problems that affect every database."""
        return [] if self.engine.problem is None else [f"no database worker can be started: {self.engine.problem}"]

    async def change_home(self, agent: Agent, act: Callable[[], Awaitable[T]]) -> T:
        """Change the database of a home in another way than by an operation."""
        assert self._homes is not None
        homes = self._homes

        async def change() -> T:
            async with self.lock(agent.id):
                return await homes.change(agent.id, None, act, is_all_or_nothing=True, is_long=True)

        return await self._to_the_end(change())

    async def check_moved(self, agent: Agent) -> None:
        """Check a database that was moved into a home; a damaged one is put into quarantine."""
        path = self.vault.database_of(agent.id)
        await self._finish_rotation(agent)
        await self._prepare(agent, path, await self._fitting_key(agent, path))

    async def bring_files(self, agent_id: str) -> None:
        """Bring an agent's workspace and skills to this node as PostgreSQL has them; nothing with an embedded store."""
        if self._homes is not None:
            await self._to_the_end(self._bring_files(self._homes, agent_id))

    async def save_files(self, agent_id: str, run_id: str | None = None) -> Mapping[str, str]:
        """Save what has changed in an agent's workspace and skills to PostgreSQL; nothing with an embedded store.

        Returns files that another node has changed at the same time, with the paths under which the ones from here are
        kept.
        """
        if self._homes is None:
            return {}
        return await self._to_the_end(self._save_files(self._homes, agent_id, run_id))

    async def change_files(
        self, agent_id: str, run_id: str | None, act: Callable[[], Awaitable[T]], path: str | None = None
    ) -> T:
        """Do something quick that writes into an agent's workspace or skills, and save it.

        No other node changes them meanwhile. `path`: the only file that it writes, below the agent's folder.
        """
        if self._homes is None:
            return await act()
        return await self._to_the_end(self._change_files(self._homes, agent_id, run_id, act, path))

    @contextlib.contextmanager
    def program(self, agent_id: str) -> Generator[None]:
        """Note that a program writes into an agent's workspace, until that is saved."""
        if self._homes is None:
            yield
            return
        self._homes.programs[agent_id] += 1
        try:
            yield
        finally:
            self._homes.programs -= Counter((agent_id,))  # removes a count of 0

    async def follow_erasing(self, agent_id: str) -> None:
        """Delete the copies here of files that were deleted from a home; nothing with an embedded store."""
        if self._homes is not None:
            await self._to_the_end(self._follow_erasing(self._homes, agent_id))

    async def _bring_files(self, homes: Homes, agent_id: str) -> None:
        async with self.lock(agent_id):
            await homes.bring_files(agent_id)
            await self._report(agent_id, homes.take_troubles(agent_id))

    async def _save_files(self, homes: Homes, agent_id: str, run_id: str | None) -> Mapping[str, str]:
        async with self.lock(agent_id):
            await homes.save_files(agent_id, run_id)
            troubles = homes.take_troubles(agent_id)
            await self._report(agent_id, troubles)
            return troubles.conflicts

    async def _change_files(
        self, homes: Homes, agent_id: str, run_id: str | None, act: Callable[[], Awaitable[T]], path: str | None
    ) -> T:
        async with self.lock(agent_id):
            result = await homes.change_files(agent_id, run_id, act, path)
            await self._report(agent_id, homes.take_troubles(agent_id))
            return result

    async def _report(self, agent_id: str, troubles: FileTroubles) -> None:
        """Add notices of files in two versions, and of damaged ones."""
        conflicts, damaged, now = troubles.conflicts, troubles.damaged, self.clock.now()
        if not conflicts and not damaged:
            return
        fields = {"agent_id": agent_id, "conflicts": len(conflicts), "damaged": len(damaged)}
        log.warning("files of an agent in two versions or damaged", extra=fields)

        async def work(tx: Tx) -> None:
            agent = await tx.agents.of_anyone(agent_id)
            if conflicts:
                what = "a file" if len(conflicts) == 1 else f"{len(conflicts)} files"
                names = [
                    f"{path.partition('/')[2]} (also as {other.rpartition('/')[2]})"
                    for path, other in conflicts.items()
                ]
                await tx.notices.add(make_notice("files_in_conflict", agent, now, what=what, names=names))
            if damaged:
                await tx.notices.add(make_notice("files_damaged", agent, now, paths=damaged))

        await self._add_notices(agent_id, work)

    async def aclose(self) -> None:
        if self._at_homes:
            await asyncio.wait(self._at_homes, timeout=_JOURNALS_SECONDS)
        await self.heads.aclose()
        if self._homes is None:
            await self._empty_all_journals()
        await self.engine.aclose()

    async def _empty_all_journals(self) -> None:
        try:
            async with asyncio.timeout(_JOURNALS_SECONDS):
                await self._empty_journals()
        except TimeoutError:
            log.warning("journals of some agents' databases not emptied in time")

    async def _empty_journals(self) -> None:
        """Open the files that a crash has left with a journal; closing them moves the journal into the file."""
        for agent_id in await asyncio.to_thread(with_journal, self._folder):
            path = self.vault.database_of(agent_id)
            if self.engine.has_open(path):
                continue
            try:
                keys = self.vault.open(agent_id)
                if keys.previous is None:  # else it is unknown which one fits
                    at, key = self.clock.now().isoformat(), keys.current.hex()
                    check = Request(op="check", path=path, key=key, seconds=SECONDS, quota=0, at=at)
                    await self.engine.ask(check, agent_id)
            except WakefulError as error:  # the next use of the file reports it
                log.warning("journal not emptied", extra={"agent_id": agent_id, "problem": error.message})

    @asynccontextmanager
    async def _writing(self, by: By, table: str | None) -> AsyncGenerator[None]:
        """Hold the lock for one write, and announce that it has begun and, if it fails, that it has ended."""
        agent_id, is_written = by.agent.id, False
        self._in_flight[agent_id] += 1
        self._announce(by.agent, table)
        try:
            async with self.lock(agent_id):
                yield
            is_written = True
        finally:
            self._in_flight -= Counter((agent_id,))  # removes a count of 0
            if not is_written:
                self._announce(by.agent, table)

    @asynccontextmanager
    async def _key_locked(self, agent_id: str, *, is_writing: bool) -> AsyncGenerator[None]:
        """Keep other tasks and processes from changing a key while we find out which one fits."""
        async with (
            contextlib.nullcontext() if is_writing else self.lock(agent_id),  # a write holds it already
            self._folder_locked(agent_id),
        ):
            yield

    @asynccontextmanager
    async def _folder_locked(self, agent_id: str) -> AsyncGenerator[None]:
        if not self.vault.has_folder(agent_id):
            yield
            return
        while (handle := self.vault.lock(agent_id)) is None:  # noqa: ASYNC110  (another process sends no event)
            await asyncio.sleep(_LOCK_AGAIN)
        try:
            yield
        finally:
            os.close(handle)

    def lock(self, agent_id: str) -> asyncio.Lock:
        """Return the lock that every write to a file of this agent holds."""
        return self._locks.setdefault(agent_id, asyncio.Lock())

    def _announce(self, agent: Agent, table: str | None, last_change: int | None = None) -> None:
        in_flight = self._in_flight[agent.id]
        self._store.deliver(DatabaseChanged(agent.id, agent.user_id, table, in_flight, last_change))

    async def _ask(self, by: By, op: str, args: Values, *, is_writing: bool = False) -> WorkerAnswer:
        agentdb_engine.check_arguments(args)
        agent_id = by.agent.id
        path = self.vault.database_of(agent_id)
        if not self.vault.has_database(agent_id):
            if await self._is_lost(agent_id):
                async with self._key_locked(agent_id, is_writing=is_writing):
                    raise await self._put_aside(by.agent)
            if not OPERATIONS[op].creates_file:
                # Reading creates no file: the worker reads an empty database in memory. Snapshots are separate files,
                # and may be all that is left.
                return await self.ask_file(by, op, path if op == "snapshots" else "", _NO_KEY, args)
            key = self.vault.make(agent_id).current
            self.prepared.add(agent_id)  # a new file needs no check
            self._without.discard(agent_id)
        else:
            keys = self.vault.open(agent_id)
            if keys.previous is not None:
                async with self._key_locked(agent_id, is_writing=is_writing):
                    await self._finish_rotation(by.agent)
                keys = self.vault.open(agent_id)
            key = keys.current
        try:
            if agent_id not in self.prepared:
                async with contextlib.nullcontext() if is_writing else self.lock(agent_id):
                    await self._prepare(by.agent, path, key)
            return await self.ask_file(by, op, path, key, args)
        except DatabaseUnreadable:
            # With the lock: during a rotation the new key is saved before the file has it, which looks like damage.
            async with self._key_locked(agent_id, is_writing=is_writing):
                await self._finish_rotation(by.agent)
                return await self.ask_file(by, op, path, await self._fitting_key(by.agent, path), args)

    async def _to_the_end(self, act: Coroutine[Any, Any, T]) -> T:
        """Do something that, with a cache, must not be cut off in the middle if the caller is cancelled."""
        if self._homes is None:
            return await act
        task = asyncio.create_task(act)
        self._at_homes.add(task)
        task.add_done_callback(self._at_homes.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_log_failure)  # nobody else reads it
            raise

    def _drop_soon(self, homes: Homes, agent_id: str) -> None:
        """Delete the copies of what was erased, perhaps on another node."""

        async def drop() -> None:
            with contextlib.suppress(WakefulError):  # the next use of the home finds it too
                await self._follow_erasing(homes, agent_id)

        task = asyncio.create_task(drop())
        self._at_homes.add(task)
        task.add_done_callback(self._at_homes.discard)

    async def _follow_erasing(self, homes: Homes, agent_id: str) -> None:
        async with self.lock(agent_id):
            await homes.follow_erasing(agent_id)
            if not self.vault.has_database(agent_id):
                self.heads.drop(agent_id)

    async def _read_cache(self, homes: Homes, by: By, op: str, args: Values) -> WorkerAnswer:
        agentdb_engine.check_arguments(args)
        async with self.lock(by.agent.id):
            await self._bring_database(homes, by.agent)
            try:
                return await self._ask_cache(by, op, args)
            except (DatabaseUnreadable, DatabaseUnavailable):  # perhaps it is only the cache that is damaged
                await homes.drop(by.agent.id)
                await self._bring_database(homes, by.agent)
            try:
                return await self._ask_cache(by, op, args)
            except (DatabaseUnreadable, DatabaseMalformed) as error:
                raise await self._put_home_aside(homes, by.agent, error) from None

    async def _bring_database(self, homes: Homes, agent: Agent) -> None:
        try:
            await homes.bring_database(agent.id)
        except DatabaseUnreadable as error:
            raise await self._put_home_aside(homes, agent, error) from None

    async def _write_cache(self, homes: Homes, by: By, op: str, args: Values, table: str | None) -> WorkerAnswer:
        agentdb_engine.check_arguments(args)
        agent = by.agent

        async def change() -> WorkerAnswer:
            return await homes.change(
                agent.id,
                by.run_id,
                lambda: self._ask_cache(by, op, args),
                lambda answered: homes.news(agent.id, agent.user_id, table, answered.last_change),
                is_long=OPERATIONS[op].is_long,
            )

        with contextlib.suppress(DatabaseUnreadable, DatabaseMalformed):  # perhaps only the cache, which is deleted now
            return await change()
        try:
            return await change()
        except (DatabaseUnreadable, DatabaseMalformed) as error:
            raise await self._put_home_aside(homes, agent, error) from None

    async def _put_home_aside(self, homes: Homes, agent: Agent, error: WakefulError) -> WakefulError:
        return await HomeDamage(self._store, self.clock, homes, self.vault, self.heads, self._ask_as_system).put_aside(
            agent, error
        )

    async def _ask_as_system(self, agent: Agent, op: str, args: Values) -> WorkerAnswer:
        path, key = self.vault.database_of(agent.id), self.vault.open(agent.id).current
        return await self.ask_file(By(agent=agent, actor="system"), op, path, key, args)

    async def _ask_cache(self, by: By, op: str, args: Values) -> WorkerAnswer:
        agent_id = by.agent.id
        path = self.vault.database_of(agent_id)
        if self.vault.has_database(agent_id):
            return await self.ask_file(by, op, path, self.vault.open(agent_id).current, args)
        if OPERATIONS[op].creates_file:
            return await self.ask_file(by, op, path, self.vault.make(agent_id).current, args)
        return await self.ask_file(by, op, path if op == "snapshots" else "", _NO_KEY, args)

    async def ask_file(self, by: By, op: str, path: str, key: bytes, args: Values) -> WorkerAnswer:
        """Run an operation on a file, in a worker."""
        request = Request(
            op=op,
            path=path,
            key=key.hex(),
            seconds=LONG_SECONDS if OPERATIONS[op].is_long else SECONDS,
            quota=self.default_quota if by.agent.database_mb is None else by.agent.database_mb * 1024 * 1024,
            at=self.clock.now().isoformat(),
            zone=by.agent.zone,
            actor=by.actor,
            run_id=by.run_id,
            door=by.door if by.actor == "user" else "tool",
            is_cache=self._homes is not None,
            args=args,
        )
        return await self.engine.ask(request, by.agent.id)

    async def _run_internal(self, agent: Agent, op: str, path: str, key: bytes, **args: Any) -> Any:
        return (await self.ask_file(By(agent=agent, actor="system"), op, path, key, args)).result

    async def _prepare(self, agent: Agent, path: str, key: bytes) -> None:
        """Check a file before its first use; its owner gets a notice of missing changes."""
        if agent.id in self.prepared:  # by a task that held the lock before
            return
        if await self._is_lost(agent.id):
            raise DatabaseUnreadable(f"The file {path!r} has no content.")
        hidden = (await self._run_internal(agent, "prepare", path, key))["hides_row_id"]
        if hidden:
            raise DatabaseLocked(
                f"The database of agent {agent.name!r} is as version 0.1 wrote it: columns hide SQLite's row id "
                f"({', '.join(hidden)}). Nothing was changed. Start 0.2 once, which renames them, then 0.3."
            )
        await self._report_missing(agent, path, key)
        self.prepared.add(agent.id)

    async def _report_missing(self, agent: Agent, path: str, key: bytes) -> None:
        """Add a notice if a file lacks changes that were written to it, as after a truncated journal."""
        known = await self.heads.of(agent.id)
        if known is None:
            return
        found = await self._run_internal(agent, "reaches", path, key, known=known)
        if not found["reaches"]:
            fields = {"agent_id": agent.id, "written": known[0], "found": found["last"]}
            log.error("changes of a database are missing", extra=fields)
            kind = "database_behind" if found["last"] else "database_emptied"
            at = None if found["at"] is None else datetime.fromisoformat(found["at"])
            written, digest, last = known[0], known[1][:16], found["last"]
            now = self.clock.now()
            await self._notice(make_notice(kind, agent, now, written=written, digest=digest, last=last, at=at))

    async def _is_lost(self, agent_id: str) -> bool:
        """Return whether a file that had content is missing or empty."""
        if agent_id in self._without or not self.vault.is_empty(agent_id):
            return False
        if self.vault.has_cut_file(agent_id) or await self.heads.of(agent_id) is not None:
            return True
        self._without.add(agent_id)
        return False

    async def _finish_rotation(self, agent: Agent) -> None:
        """Finish a rotation, also an interrupted one: encrypt the file and its snapshots with the new key."""
        keys = self.vault.open(agent.id)
        if keys.previous is None:
            return
        path = self.vault.database_of(agent.id)
        await self.engine.close_file(path)
        try:
            await self._run_internal(agent, "rekey", path, keys.previous, new_key=keys.current.hex())
        except DatabaseUnreadable:
            raise await self._put_aside(agent) from None
        self.vault.save(agent.id, AgentKeys(current=keys.current))

    async def _fitting_key(self, agent: Agent, path: str) -> bytes:
        """Return the key of a file after checking that it opens it.

        A file that it does not open is damaged, and is put aside, so that the agent can create a new one.
        """
        key = self.vault.open(agent.id).current
        if await self._is_lost(agent.id):  # checked first: opening a missing file would create it
            raise await self._put_aside(agent)
        try:
            await self._run_internal(agent, "check", path, key)
        except DatabaseUnreadable:
            raise await self._put_aside(agent) from None
        return key

    async def _put_aside(self, agent: Agent) -> DatabaseUnreadable:
        now = self.clock.now()
        self.prepared.discard(agent.id)
        what = (
            "is missing"
            if not self.vault.has_database(agent.id)
            else "is empty (0 bytes)"
            if self.vault.is_empty(agent.id)
            else "is damaged"
        )
        await self.engine.close_file(self.vault.database_of(agent.id))
        aside = self.vault.set_aside(agent.id, now.isoformat())
        log.error("database unreadable, set aside", extra={"agent_id": agent.id, "problem": what, "path": str(aside)})
        # Only the log names the data directory.
        place = None if aside is None else str(aside.relative_to(self._folder.parent))
        kind = "database_gone" if place is None else "database_unreadable"
        await self._notice(make_notice(kind, agent, now, problem=what, path=place))
        await self.heads.forget(agent.id)  # last: after a crash in between there are two notices rather than none
        left = "No file is left" if place is None else f"Its files were put aside at {place!r} in the data directory"
        return DatabaseUnreadable(
            f"The database of agent {agent.name!r} {what}. {left}; nothing was deleted. The next write creates one."
        )

    async def _warn(self, agent: Agent, answered: WorkerAnswer) -> None:
        assert answered.used is not None
        assert answered.quota is not None
        used, quota = answered.used, answered.quota
        share, used, quota = used / quota, used / 1024**2, quota / 1024**2
        notice = make_notice("storage_low", agent, self.clock.now(), share=share, used=used, quota=quota)
        await self._add_notices(agent.id, lambda tx: tx.notices.add(notice))

    async def _notice(self, notice: Notice) -> None:
        await self._store.write(lambda tx: tx.notices.add(notice))

    async def _add_notices(self, agent_id: str, work: Callable[[Tx], Coroutine[Any, Any, object]]) -> None:
        """Add notices about an operation that is done already, so it must not be reported as failed."""
        try:
            await self._store.write(work)
        except StoreUnavailable as error:
            log.warning("notice not saved", extra={"agent_id": agent_id, "problem": error.message})


def _log_failure(task: asyncio.Task[Any]) -> None:
    """Log how something ended whose caller was cancelled."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, WakefulError):
        log.warning("not done, and its caller is gone", extra={"problem": error.message})
    elif error is not None:
        log.error("failed, and its caller is gone", exc_info=error)
