"""Homes of agents: on a shared store, their databases and files are in PostgreSQL, and this node has caches of them.

A write counts when PostgreSQL has it. It takes four steps: take the home (which ends the writes of its last holder),
bring the cache up to date, run the operation, and save what it has changed, if no other node has taken the home
meanwhile. If one has, the cache of the database is deleted, and the operation runs again on the new state. Whenever it
is not certain that a cache is equal to what PostgreSQL has, it is deleted; a process that starts has none.

The caller holds the lock of the agent.
"""

import asyncio
import fcntl
import itertools
import logging
import os
import random
import shutil
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from secrets import token_bytes
from typing import Any, TypeVar

from wakeful.agentdb import file
from wakeful.agentdb.engine import DatabaseEngine
from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnavailable, DatabaseUnreadable, DataTimeout
from wakeful.agentdb.file import CacheBroken, Changes, Piece, Place
from wakeful.agentdb.keys import Vault
from wakeful.core import device_key as core_device_key
from wakeful.core.clock import Clock
from wakeful.core.errors import StoreUnavailable, WakefulError
from wakeful.core.events import DatabaseChanged, HomeChanged
from wakeful.core.records import Home, HomeTaken, follows, new_save_id
from wakeful.homes import files as home_files
from wakeful.homes.files import FileChanges, FileChanging, FileSync, FileTroubles, KnownFiles, on_disk
from wakeful.notices.texts import make_notice
from wakeful.store.errors import insist
from wakeful.store.store import Store, Tx

log = logging.getLogger(__name__)

T = TypeVar("T")

DATABASE_FOLDERS = ("snapshots", "quarantine")  # with the database
FILE_FOLDERS = ("workspace", "skills")

_TRIES = 6
_BUSY = timedelta(seconds=40)  # longer than any operation may take
_WAIT = timedelta(seconds=45)  # for a node that is busy with a home
_PAUSE = 0.05  # seconds between two attempts
_MAX_FRAMES = 1000  # of a journal; then it is moved into the file
_MAX_READS = 3  # of a file that changes while it is read
_FIND_OUT_SECONDS = 30.0  # for a person; a run waits until PostgreSQL is back

_NO_PAGES: Piece = ([], [])

_BROKEN = "The copy of the database on this node was damaged or deleted. Nothing was saved. Try again."
_IN_DOUBT = (
    "PostgreSQL did not respond while this was saved, so it may or may not have been done. Check before you try again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cache:
    """A cache of a database that is equal to the one of a home."""

    home: Home
    place: Place | None  # None: the home has no database
    lacks_pages: bool = False  # PostgreSQL has lost some


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unsaved:
    """Differences between a cache and its home."""

    changes: Changes | None  # pages
    page_count: int
    key: str | None  # the key file of the database
    has_pages: bool
    files: FileChanges | None
    of_database: bool  # the files are snapshots
    news: HomeChanged | None


class Homes:
    """Brings homes to this node, and saves what is written to them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        engine: DatabaseEngine,
        vault: Vault,
        folder_of: Callable[[str], Path],
        device_key: bytes,
        owner: str,
    ) -> None:
        self._store = store
        self._clock = clock
        self._engine = engine
        self._vault = vault
        self._folder_of = folder_of
        self._device_key = device_key
        self._owner = owner
        self._caches: dict[str, _Cache] = {}
        self._known: dict[tuple[str, bool], KnownFiles] = {}  # by agent, and whether of the database
        self._new_keys: dict[str, bytes] = {}  # of the files of homes that have none yet
        self.programs: Counter[str] = Counter()  # by agent: tools that write files whenever they like
        store.on(HomeChanged, self._pass_on)

    async def bring_database(self, agent_id: str) -> None:
        """Bring the cache of a database up to date, in order to read it."""
        home = await self._read(agent_id)
        await self._match(agent_id, home, of_database=True)

    async def bring_files(self, agent_id: str) -> None:
        """Bring the files of an agent up to date, in order to read them."""
        home = await self._read(agent_id)
        await self._match(agent_id, home, of_database=False)

    async def change_files(
        self, agent_id: str, run_id: str | None, act: Callable[[], Awaitable[T]], path: str | None = None
    ) -> T:
        """Run a short operation that writes files, and return its result when PostgreSQL has them.

        Other nodes wait meanwhile, so it is done on what they have saved last. If it cannot be saved, it is as if it
        had not been done; it runs again if only the connection was lost. `path`: the only file that it writes.
        """
        known = self._known_files(agent_id, of_database=False)
        for _ in range(_TRIES):
            home = await self._take_anew(agent_id, run_id, is_busy=True)
            is_saved = is_freed = False
            try:
                await self._match(agent_id, home, of_database=False)
                seq = known.seq
                try:
                    result = await act()
                    is_saved = await self._save(home, run_id, None, of_database=False)
                finally:
                    if not is_saved:
                        await self._void_files(agent_id, path, programs=0)
                is_freed = known.seq != seq  # by saving it
            finally:
                if not is_freed:
                    await self._free(home)
            if is_saved:
                return result
        raise HomeTaken(agent_id)

    async def _void_files(self, agent_id: str, path: str | None, *, programs: int) -> None:
        """Have the next use replace what was changed here, but not saved, by what PostgreSQL has.

        While other programs run than our own, it is unknown who has written a file, so it stays.
        """
        changed = await self._changed_files(agent_id)
        known = self._known_files(agent_id, of_database=False)
        if path in changed:
            known.void.add(path)
        elif self.programs[agent_id] <= programs:  # looked at last: a program is counted before it writes
            known.void |= changed

    async def _changed_files(self, agent_id: str) -> set[str]:
        found = await on_disk(home_files.scan_files, self._folder_of(agent_id), FILE_FOLDERS)
        return self._known_files(agent_id, of_database=False).changed_in(found)

    def take_troubles(self, agent_id: str) -> FileTroubles:
        """Return files that a person should know of, once."""
        return self._known_files(agent_id, of_database=False).take_troubles()

    async def follow_erasing(self, agent_id: str) -> None:
        """Delete copies here of what was erased, perhaps on another node; what is not copied here is not brought."""
        if agent_id in self._caches:
            await self.bring_database(agent_id)
        if self._known_files(agent_id, of_database=False).seq:
            await self.bring_files(agent_id)

    async def save_files(self, agent_id: str, run_id: str | None) -> None:
        """Save the files that have changed here. Those of a run that another node has taken over are put back."""

        async def nothing() -> None:
            pass

        try:
            await self.change(agent_id, run_id, nothing, of_database=False)
        except HomeTaken:
            if run_id is not None:
                await self._void_files(agent_id, None, programs=1)
            raise

    async def change(
        self,
        agent_id: str,
        run_id: str | None,
        act: Callable[[], Awaitable[T]],
        to_news: Callable[[T], HomeChanged | None] = lambda _: None,
        *,
        of_database: bool = True,
        is_all_or_nothing: bool = False,
        is_long: bool = False,
        may_lack_pages: bool = False,
    ) -> T:
        """Run an operation that writes, and return its result when PostgreSQL has what it wrote.

        It may run more than once, each time on the state that others have left. One that is refused may have written
        something before, such as making room, which is saved unless it is all or nothing. Other nodes wait for a long
        one, and for one that has lost a race. A database of which PostgreSQL has not all pages is refused, unless it
        may lack some.
        """
        for attempt in range(_TRIES):
            home = await self._take(agent_id, run_id, is_busy=is_long or attempt > 0)
            try:
                await self._match(agent_id, home, of_database=of_database, may_lack_pages=may_lack_pages)
                result, refusal = await self._attempt(agent_id, act, is_all_or_nothing=is_all_or_nothing)
                news = None if result is None else to_news(result)
                is_saved = await self._save(home, run_id, news, of_database=of_database)
            finally:
                if home.busy_until is not None:
                    await self._free(home)
            if is_saved:
                if refusal is not None:
                    raise refusal
                return result  # pyright: ignore[reportReturnType]  (None is a result, too)
            await self.drop(agent_id)
        raise HomeTaken(agent_id)

    async def _free(self, home: Home) -> None:
        with suppress(StoreUnavailable):  # then others wait until its time is over
            await self._store.write(lambda tx: tx.homes.free(home), is_single=True, is_repeatable=True)

    async def _attempt(
        self, agent_id: str, act: Callable[[], Awaitable[T]], *, is_all_or_nothing: bool
    ) -> tuple[T | None, WakefulError | None]:
        try:
            return await act(), None
        except BaseException as error:
            is_uncertain = isinstance(error, DatabaseUnavailable | DataTimeout | DatabaseUnreadable)
            if isinstance(error, WakefulError) and not is_uncertain and not is_all_or_nothing:
                return None, error
            await self.drop(agent_id)  # its worker may have been killed in the middle of a commit
            raise

    async def close(self, agent_id: str) -> None:
        """Have no worker use the cache of an agent's database."""
        await self._engine.close_file(str(self._path(agent_id)))

    async def drop(self, agent_id: str) -> None:
        """Delete the cache of an agent's database."""
        self._caches.pop(agent_id, None)
        self._known.pop((agent_id, True), None)
        await self.close(agent_id)
        await asyncio.to_thread(self._vault.erase, agent_id)

    async def erase(self, agent_id: str, *, files_too: bool) -> bool:
        """Erase the database of an agent in PostgreSQL and here, and return whether there was one.

        Other nodes delete their caches when they get the news.
        """
        home = await self._read(agent_id)
        await self._store.write(lambda tx: _erase(tx, agent_id, files_too=files_too), is_repeatable=True)
        await self.drop(agent_id)
        await self.follow_erasing(agent_id)
        return home is not None and home.page_count > 0

    def copied(self) -> set[str]:
        """Return the agents of which something may be copied here."""
        return {*self._caches, *(agent_id for agent_id, _ in self._known)}

    async def finish_erasing(self) -> None:
        """Erase homes of deleted agents that a crash has left."""
        for agent_id in await self._store.read(lambda tx: tx.homes.of_ended_agents()):
            await self._store.write(lambda tx, agent_id=agent_id: _erase(tx, agent_id, files_too=True))

    async def is_as_saved(self, agent_id: str) -> bool:
        """Return whether the cache of a database has byte for byte what PostgreSQL has."""
        path = self._path(agent_id)

        async def work(tx: Tx) -> bool:
            async for numbers, contents in tx.homes.pages_since(agent_id, 0):
                if await on_disk(file.read, path, numbers) != contents:
                    return False
            return True

        return await self._store.read(work)

    def pages_seq(self, agent_id: str) -> int | None:
        """Return the last change of the database in the cache; None: there is none."""
        cache = self._caches.get(agent_id)
        return None if cache is None else cache.home.pages_seq

    def cached(self, agent_id: str) -> Home | None:
        """Return the home that the cache of a database is equal to."""
        cache = self._caches.get(agent_id)
        return None if cache is None else cache.home

    def lacks_pages(self, agent_id: str) -> bool:
        cache = self._caches.get(agent_id)
        return cache is not None and cache.lacks_pages

    def news(self, agent_id: str, user_id: str, table: str | None, last_change: int | None) -> HomeChanged:
        return HomeChanged(agent_id, user_id, table, last_change, self._owner)

    def _pass_on(self, news: HomeChanged) -> None:
        """Announce a write on another node to the subscribers on this one."""
        if news.node != self._owner:
            self._store.deliver(DatabaseChanged(news.agent_id, news.user_id, news.table, 0, news.last_change))

    def _path(self, agent_id: str) -> Path:
        return Path(self._vault.database_of(agent_id))

    async def _read(self, agent_id: str) -> Home | None:
        return await self._store.read(lambda tx: tx.homes.of_agent(agent_id), is_single=True)

    async def _take(self, agent_id: str, run_id: str | None, *, is_busy: bool) -> Home:
        """Return a home that this node holds, and that the run, if it is for one, may write to."""
        if is_busy:
            return await self._take_anew(agent_id, run_id, is_busy=True)
        if run_id is None:
            home = await self._read(agent_id)
        else:
            home = await self._store.read(
                lambda tx: tx.homes.held_for_run(agent_id, self._owner, run_id), is_single=True
            )
        if home is not None and home.holder == self._owner:
            return home
        return await self._take_anew(agent_id, run_id)

    async def _take_anew(self, agent_id: str, run_id: str | None, *, is_busy: bool = False) -> Home:
        give_up_at = self._clock.monotonic() + _WAIT.total_seconds()
        while True:
            now = self._clock.now()
            busy_until = now + _BUSY if is_busy else None
            home = await self._store.write(
                lambda tx, now=now, busy_until=busy_until: tx.homes.hold(
                    agent_id, self._owner, run_id, now, busy_until
                ),
                is_single=True,
                is_repeatable=True,
            )
            if home is not None:
                return home
            if not await self._may_hold(agent_id, run_id) or self._clock.monotonic() > give_up_at:
                raise HomeTaken(agent_id)
            await asyncio.sleep(random.uniform(_PAUSE / 2, _PAUSE))

    async def _may_hold(self, agent_id: str, run_id: str | None) -> bool:
        """Return whether only another node's work keeps this one from taking a home. Raises if the agent is deleted."""

        async def work(tx: Tx) -> bool:
            await tx.agents.of_anyone(agent_id)
            return await tx.homes.may_hold(agent_id, self._owner, run_id)

        return await self._store.read(work)

    # ── From PostgreSQL to the cache ────────────────────────────────────────────────────────────────────────────────

    async def _match(
        self, agent_id: str, home: Home | None, *, of_database: bool, may_lack_pages: bool = False
    ) -> None:
        """Make a part of the cache equal to a home."""
        if of_database:
            await self._match_pages(agent_id, home, may_lack_pages=may_lack_pages)
        known = self._known_files(agent_id, of_database=of_database)
        going_on = follows(home, known.home)
        if going_on == "no":
            await self._report_rewind(agent_id)
        elif home is None:
            return
        elif going_on == "yes" and not known.void and known.seq == _files_seq(home, of_database=of_database):
            known.home = home
            return
        if (last := home or known.home) is not None:
            await self._bring_files(last, known, of_database=of_database)

    async def _match_pages(self, agent_id: str, home: Home | None, *, may_lack_pages: bool) -> None:
        cache = self._caches.get(agent_id)
        if cache is not None and not self._is_whole(agent_id, cache):
            log.warning("cache of a database damaged or deleted", extra={"agent_id": agent_id})
            cache = None
        if cache is not None and (going_on := follows(home, cache.home)) != "yes":
            cache = None
            if going_on == "no":
                await self._report_rewind(agent_id)
        if home is not None and cache is not None and cache.home.pages_seq == home.pages_seq:
            self._caches[agent_id] = replace(cache, home=home)
            return
        if home is None or home.page_count == 0:
            if self._vault.has_anything(agent_id):
                await self.drop(agent_id)
            if home is not None:
                self._caches[agent_id] = _Cache(home=home, place=None)
            return
        try:
            await self._bring_pages(agent_id, cache, may_lack_pages=may_lack_pages)
        except BaseException:
            await self.drop(agent_id)
            raise

    def _is_whole(self, agent_id: str, cache: _Cache) -> bool:
        if cache.place is None:
            return True
        try:
            return self._path(agent_id).stat().st_ino == cache.place.inode
        except FileNotFoundError:
            return False

    async def _bring_pages(self, agent_id: str, cache: _Cache | None, *, may_lack_pages: bool) -> None:
        path = self._path(agent_id)
        if cache is None or cache.place is None:
            await self.drop(agent_id)
            since, target = 0, path.with_name(f"{path.name}.brought")
        else:
            await self._engine.close_file(str(path))
            await on_disk(file.fold_journal, path, cache.place, cache.home.page_count)
            since, target = cache.home.pages_seq, path
        await on_disk(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)

        async def work(tx: Tx) -> tuple[Home, int] | None:
            home = await tx.homes.of_agent(agent_id)
            if home is None or (cache is not None and follows(home, cache.home) != "yes"):
                return None
            async for piece in tx.homes.pages_since(agent_id, since):
                await on_disk(file.write, target, iter([piece]))
            # All of them, also if only some are brought: an older copy here must not stand in for a lost page.
            return home, await tx.homes.count_pages(agent_id)

        brought = await self._store.read(work)
        if brought is None:  # PostgreSQL was taken back just now
            await self._match_pages(agent_id, await self._read(agent_id), may_lack_pages=may_lack_pages)
            return
        home, count = brought
        if home.page_count == 0 or home.database_key is None:  # erased meanwhile
            await self.drop(agent_id)
            self._caches[agent_id] = _Cache(home=home, place=None)
            return
        if count != home.page_count and not may_lack_pages:
            raise DatabaseUnreadable(f"PostgreSQL has {count} of the {home.page_count} pages of this database.")
        place = await on_disk(file.finish, target, home.page_count)
        if target != path:
            await on_disk(target.replace, path)
        await on_disk(self._vault.write_file, agent_id, home.database_key)
        self._caches[agent_id] = _Cache(home=home, place=place, lacks_pages=count != home.page_count)

    async def _bring_files(self, home: Home, known: KnownFiles, *, of_database: bool) -> None:
        folder = self._folder_of(home.agent_id)
        await on_disk(folder.mkdir, mode=0o700, parents=True, exist_ok=True)

        async def work(tx: Tx) -> None:
            now = await tx.homes.of_agent(home.agent_id)  # None: PostgreSQL was taken back to before it
            await self._sync(now or home).bring(tx, known, _folders(of_database=of_database))
            known.seq, known.home = 0 if now is None else _files_seq(now, of_database=of_database), now

        await self._store.read(work)

    async def _report_rewind(self, agent_id: str) -> None:
        """Log that PostgreSQL lacks what it had, and notify the owners once an hour."""
        log.error("PostgreSQL was taken back, so the copy here is dropped", extra={"agent_id": agent_id})
        now = self._clock.now()

        async def work(tx: Tx) -> None:
            for owner in await tx.accounts.hold_owners():
                await tx.notices.add(make_notice("store_rewound", owner, now))

        await self._store.write(work)

    def _known_files(self, agent_id: str, *, of_database: bool) -> KnownFiles:
        return self._known.setdefault((agent_id, of_database), KnownFiles())

    def _sync(self, home: Home) -> FileSync:
        return FileSync(home.agent_id, self._folder_of(home.agent_id), self._files_key(home))

    def _files_key(self, home: Home) -> bytes:
        if home.files_key is None:
            return self._new_keys.setdefault(home.agent_id, token_bytes(32))
        key = decrypt_key(self._device_key, home.files_key, home.agent_id)
        if key is None:
            raise DatabaseLocked(f"The files of agent {home.agent_id!r} are locked: this node has another device key.")
        return key

    # ── From the cache to PostgreSQL ────────────────────────────────────────────────────────────────────────────────

    async def _save(self, home: Home, run_id: str | None, news: HomeChanged | None, *, of_database: bool) -> bool:
        """Save what was changed in a part of the cache. False: another node has taken the home; nothing was saved."""
        skipped: set[str] = set()
        for attempt in range(_MAX_READS * 10):
            try:
                unsaved = await self._find_unsaved(home, skipped, news, of_database=of_database)
                if unsaved is None:
                    return True
                saved = await self._save_once(home, run_id, unsaved)
            except FileChanging as changing:
                if attempt >= _MAX_READS:
                    skipped.add(changing.path)  # the next save has it
                continue
            except CacheBroken:
                await self.drop(home.agent_id)
                raise DatabaseUnavailable(_BROKEN) from None
            except BaseException:  # the commit is in the cache, and perhaps nowhere else
                await self.drop(home.agent_id)
                raise
            if saved is not None:
                await self._note_saved(saved, unsaved)
            return saved is not None
        return True

    async def _find_unsaved(
        self, home: Home, skipped: set[str], news: HomeChanged | None, *, of_database: bool
    ) -> _Unsaved | None:
        known, folders = self._known_files(home.agent_id, of_database=of_database), _folders(of_database=of_database)
        files = await asyncio.to_thread(self._sync(home).find_changes, known, folders, skipped)
        known.files |= files.same
        changes, page_count, key = None, home.page_count, home.database_key
        if of_database:
            path, cache = self._path(home.agent_id), self._caches[home.agent_id]
            has_file = path.exists()
            if has_file:
                changes = await asyncio.to_thread(file.changes_since, path, cache.place)
            key = self._vault.read_file(home.agent_id) if has_file else None
            page_count = 0 if key is None else home.page_count if changes is None else changes.page_count
        has_pages = changes is not None or key != home.database_key
        if not has_pages and not files:
            return None
        return _Unsaved(
            changes=changes,
            page_count=page_count,
            key=key,
            has_pages=has_pages,
            files=files or None,
            of_database=of_database,
            news=news,
        )

    async def _save_once(self, home: Home, run_id: str | None, unsaved: _Unsaved) -> Home | None:
        save_id, changes = new_save_id(), unsaved.changes
        is_small = changes is None or len(changes.sources) <= file.PIECE
        is_single = is_small and unsaved.files is None and unsaved.page_count >= home.page_count

        async def work(tx: Tx) -> Home | None:
            pieces: Iterator[Piece] = iter(()) if changes is None else changes.pieces()
            first = await asyncio.to_thread(next, pieces, _NO_PAGES)
            saved = await tx.homes.save(
                home, save_id, unsaved.page_count, unsaved.key, *first, has_pages=unsaved.has_pages
            )
            if saved is not None and not is_single:
                while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                    await tx.homes.add_pages(saved, *piece)
                await tx.homes.cut_pages(saved)
                if unsaved.files is not None:
                    key = self._files_key(home)
                    files_key = home.files_key or encrypt_key(self._device_key, key, home.agent_id)
                    saved = await self._sync(home).save(tx, files_key, unsaved.files, of_database=unsaved.of_database)
            if saved is not None and unsaved.news is not None:
                tx.homes.announce(unsaved.news)
            return saved

        try:
            return await self._store.write(work, is_single=is_single, is_long=not is_single)
        except StoreUnavailable as error:
            if not error.is_in_doubt:
                raise
        return await self._find_out(home, run_id, save_id)

    async def _find_out(self, home: Home, run_id: str | None, save_id: str) -> Home | None:
        """Find out whether a save was done whose answer was lost; None: it was not, and never will be.

        Taking the home waits for that transaction, should the server still be at it, and ends it by the new fence.
        """
        try:
            async with asyncio.timeout(_FIND_OUT_SECONDS if run_id is None else None):
                now = await insist(lambda: self._take_anew(home.agent_id, run_id))
        except TimeoutError:
            await self.drop(home.agent_id)
            raise DatabaseUnavailable(_IN_DOUBT) from None
        if now.last_save == save_id:
            return now
        if now.seq > home.seq:  # another node has written since, perhaps on top of it
            await self.drop(home.agent_id)
            raise DatabaseUnavailable(_IN_DOUBT)
        return None

    async def _note_saved(self, saved: Home, unsaved: _Unsaved) -> None:
        """Remember that the cache is equal to the home again, and keep its journal short."""
        agent_id, changes = saved.agent_id, unsaved.changes
        self._new_keys.pop(agent_id, None)
        known = self._known_files(agent_id, of_database=unsaved.of_database)
        if unsaved.files is not None:
            known.files |= unsaved.files.changed
            for path in unsaved.files.deleted:
                del known.files[path]
        known.seq, known.home = _files_seq(saved, of_database=unsaved.of_database), saved
        if not unsaved.of_database:
            return
        cache, path = self._caches[agent_id], self._path(agent_id)
        place = None if unsaved.key is None else cache.place if changes is None else changes.place
        if changes is not None and place is not None:
            await asyncio.to_thread(file.forget_kept, path)
            if place.frame > _MAX_FRAMES:
                await self._engine.close_file(str(path))
                place = await asyncio.to_thread(file.fold_journal, path, place, saved.page_count)
        self._caches[agent_id] = replace(cache, home=saved, place=place)


def _folders(*, of_database: bool) -> tuple[str, ...]:
    return DATABASE_FOLDERS if of_database else FILE_FOLDERS


def _files_seq(home: Home, *, of_database: bool) -> int:
    return home.snapshots_seq if of_database else home.files_seq


async def _erase(tx: Tx, agent_id: str, *, files_too: bool) -> None:
    folders: list[Any] = [*DATABASE_FOLDERS[:1], *((*DATABASE_FOLDERS[1:], *FILE_FOLDERS) if files_too else ())]
    await tx.homes.erase(agent_id, folders, files_too=files_too)


# The folder in which this process caches agents' homes. Nodes that share a data directory have one each.


FOLDER = "caches"


class CacheFolder:
    """The first folder of this host that no other process has locked."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER
        self._host = socket.gethostname()
        self._handle: int | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path:
        assert self._path is not None, "enter it first"
        return self._path

    async def enter(self) -> None:
        """Lock a folder, and empty it: what an earlier process has left may be older than the homes."""
        await asyncio.to_thread(self._enter)

    async def leave(self) -> None:
        """Delete everything in it, and let another process have it."""
        if self._handle is not None:
            await asyncio.to_thread(shutil.rmtree, self.path, ignore_errors=True)
            os.close(self._handle)
            self._handle = None

    def _enter(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = self._folder / f"{self._host}-{number}"
            handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            self._handle, self._path = handle, path
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(mode=0o700)
            return


# Encrypt the key of the files of a home with the device key, bound to the agent.


_PURPOSE = "wakeful home files 1"


def encrypt_key(device_key: bytes, key: bytes, agent_id: str) -> str:
    return core_device_key.encrypt(device_key, key.hex(), (_PURPOSE, agent_id))


def decrypt_key(device_key: bytes, encrypted: str, agent_id: str) -> bytes | None:
    """Return the key; None if it was encrypted with another device key."""
    key = core_device_key.decrypt(device_key, encrypted, (_PURPOSE, agent_id))
    return None if key is None else bytes.fromhex(key)


def rewrap_key(old: bytes, new: bytes, agent_id: str, encrypted: str) -> str | None:
    """Return a key encrypted with a new device key; None if it has that one already, or neither decrypts it."""
    return core_device_key.rewrap(old, new, encrypted, (_PURPOSE, agent_id))
