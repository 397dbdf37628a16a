"""Rows of agents' homes in PostgreSQL (pages and files, under a fence), and of data directories and their nodes."""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime

from wakeful.core.events import HomeChanged, HomeErased
from wakeful.core.records import Home, HomeFile, new_save_id
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import Table, to_micros

_HOMES = Table(Home)
_FILES = Table(HomeFile)
_MAX_PAGES = 1024  # of one statement: 4 MiB


class HomeRows:
    """Statements about homes, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def of_agent(self, agent_id: str) -> Home | None:
        return _HOMES.read_first(await self._statements.fetch("home_of_agent", {"agent_id": agent_id}))

    async def held_for_run(self, agent_id: str, owner: str, run_id: str) -> Home | None:
        """Return a home if a node holds it, and also a run that is to write to it."""
        params = {"agent_id": agent_id, "owner": owner, "run_id": run_id}
        return _HOMES.read_first(await self._statements.fetch("home_for_run", params))

    async def hold(
        self, agent_id: str, owner: str, run_id: str | None, now: datetime, busy_until: datetime | None = None
    ) -> Home | None:
        """Make a node the holder, with a new fence.

        None: another one is busy with it, the agent is deleted, or the run is no longer the node's.
        """
        params = {
            "agent_id": agent_id,
            "owner": owner,
            "run_id": run_id,
            "now": to_micros(now),
            "busy_until": None if busy_until is None else to_micros(busy_until),
        }
        return _HOMES.read_first(await self._statements.fetch("hold_home", params))

    async def may_hold(self, agent_id: str, owner: str, run_id: str | None) -> bool:
        """Return whether a node may become the holder of a home as soon as its holder is not busy."""
        params = {"agent_id": agent_id, "owner": owner, "run_id": run_id}
        return bool(await self._statements.fetch("may_hold_home", params))

    async def free(self, home: Home) -> None:
        """Let other nodes take a home that its holder was busy with."""
        params = {"agent_id": home.agent_id, "holder": home.holder, "fence": home.fence}
        await self._statements.fetch("free_home", params)

    async def save(
        self,
        home: Home,
        save_id: str,
        page_count: int,
        database_key: str | None,
        page_nos: Sequence[int],
        pages: Sequence[bytes],
        *,
        has_pages: bool,
    ) -> Home | None:
        """Save a change with a few pages. None: the home was taken, or has changed since."""
        params = {
            "agent_id": home.agent_id,
            "holder": home.holder,
            "fence": home.fence,
            "seq": home.seq,
            "last_save": home.last_save,
            "save_id": save_id,
            "page_count": page_count,
            "database_key": database_key,
            "has_pages": int(has_pages),
            "page_nos": list(page_nos),
            "pages": list(pages),
        }
        return _HOMES.read_first(await self._statements.fetch("save_home", params))

    async def add_pages(self, home: Home, page_nos: Sequence[int], pages: Sequence[bytes]) -> None:
        """Save more pages of a change."""
        params = {"agent_id": home.agent_id, "seq": home.seq, "page_nos": list(page_nos), "pages": list(pages)}
        await self._statements.fetch("add_home_pages", params)

    async def cut_pages(self, home: Home) -> None:
        """Delete the pages behind the end of a database that was cut."""
        params = {"agent_id": home.agent_id, "page_count": home.page_count}
        await self._statements.fetch("cut_home_pages", params)

    async def pages_since(self, agent_id: str, seq: int) -> AsyncIterator[tuple[list[int], list[bytes]]]:
        """Read the pages that were changed after a number, in pieces."""
        after = 0
        while True:
            params = {"agent_id": agent_id, "seq": seq, "after": after, "most": _MAX_PAGES}
            rows = await self._statements.fetch("home_pages_since", params)
            if rows:
                yield [row["page_no"] for row in rows], [row["bytes"] for row in rows]
                after = rows[-1]["page_no"]
            if len(rows) < _MAX_PAGES:
                return

    async def count_pages(self, agent_id: str) -> int:
        return (await self._statements.fetch("count_home_pages", {"agent_id": agent_id}))[0]["pages"]

    async def files(self, agent_id: str, folders: Sequence[str]) -> dict[str, HomeFile]:
        """Return the files of a home in some folders by their paths."""
        rows = await self._statements.fetch("home_files_of", {"agent_id": agent_id, "folders": list(folders)})
        return {row["path"]: _FILES.read(row) for row in rows}

    async def save_files(
        self, agent_id: str, files_key: str, files: Iterable[HomeFile], deleted: Sequence[str], *, of_database: bool
    ) -> Home:
        """Save which files there are, as part of a change. Their contents are saved before."""
        params = {"agent_id": agent_id, "files_key": files_key, "of_database": int(of_database)}
        home = _HOMES.read((await self._statements.fetch("note_home_files", params))[0])
        rows = [{"agent_id": agent_id, **_FILES.write(file)} for file in files]
        await self._statements.fetch_many("save_home_files", rows)
        await self._statements.fetch("delete_home_files", {"agent_id": agent_id, "paths": list(deleted)})
        await self._statements.fetch("forget_home_blobs", {"agent_id": agent_id})
        return home

    async def contents_present(self, agent_id: str, digests: Sequence[str]) -> set[str]:
        """Return those of the digests whose contents are saved already."""
        params = {"agent_id": agent_id, "digests": list(digests)}
        return {row["digest"] for row in await self._statements.fetch("home_blobs_present", params)}

    async def add_contents(self, agent_id: str, pieces: Sequence[tuple[str, int, bytes]]) -> None:
        """Save pieces of contents: digest, number of the piece, and encrypted bytes."""
        digests, numbers, contents = (list(each) for each in zip(*pieces, strict=True))
        params = {"agent_id": agent_id, "digests": digests, "numbers": numbers, "pieces": contents}
        await self._statements.fetch("add_home_blobs", params)

    async def first_pieces(self, agent_id: str, digests: Sequence[str]) -> dict[str, bytes]:
        """Return the first piece of each of these contents."""
        params = {"agent_id": agent_id, "digests": list(digests)}
        return {row["digest"]: row["bytes"] for row in await self._statements.fetch("first_home_blobs", params)}

    async def piece(self, agent_id: str, digest: str, number: int) -> bytes | None:
        params = {"agent_id": agent_id, "digest": digest, "piece": number}
        rows = await self._statements.fetch("home_blob_piece", params)
        return rows[0]["bytes"] if rows else None

    def announce(self, news: HomeChanged) -> None:
        """Have the other nodes tell their subscribers of a write."""
        self._statements.news.append(news)

    async def erase(self, agent_id: str, folders: Sequence[str], *, files_too: bool) -> None:
        """Delete the key and the pages of a database, and the files in some folders, on every node.

        With `files_too` the key of the files is deleted as well.
        """
        params = {"agent_id": agent_id, "files_too": int(files_too), "save_id": new_save_id()}
        if await self._statements.fetch("erase_home", params):
            await self._statements.fetch("cut_home_pages", {"agent_id": agent_id, "page_count": 0})
            paths = list(await self.files(agent_id, folders))
            await self._statements.fetch("delete_home_files", {"agent_id": agent_id, "paths": paths})
            await self._statements.fetch("forget_home_blobs", {"agent_id": agent_id})
            self._statements.news.append(HomeErased(agent_id))

    async def delete_uploads(self, session_id: str) -> list[str]:
        """Delete the uploads of a session from every home, and have every node delete its copies.

        Returns the agents that had some.
        """
        rows = await self._statements.fetch("delete_home_uploads", {"session_id": session_id})
        agent_ids = sorted({row["agent_id"] for row in rows})
        for agent_id in agent_ids:
            await self._statements.fetch("touch_home", {"agent_id": agent_id, "save_id": new_save_id()})
            self._statements.news.append(HomeErased(agent_id))
            await self._statements.fetch("forget_home_blobs", {"agent_id": agent_id})
        return agent_ids

    async def delete_orphaned_uploads(self) -> None:
        """Delete the uploads of sessions that were deleted."""
        for row in await self._statements.fetch("home_upload_sessions", {}):
            await self.delete_uploads(row["session_id"])

    async def of_ended_agents(self) -> list[str]:
        """Return the deleted agents whose home was not erased."""
        return [row["agent_id"] for row in await self._statements.fetch("homes_of_ended_agents", {})]


class DirectoryRows:
    """Statements about data directories and the nodes on them, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(
        self, directory_id: str, place: str, key_fingerprint: str | None, now: datetime, *, overwrite: bool
    ) -> str | None:
        """Keep a directory, and return the fingerprint of its device key; a known one stays unless overwritten."""
        params = {
            "id": directory_id,
            "place": place,
            "key_fingerprint": key_fingerprint,
            "seen_at": to_micros(now),
            "overwrite": int(overwrite),
        }
        return (await self._statements.fetch("save_directory", params))[0]["key_fingerprint"]

    async def see_node(self, owner: str, directory_id: str, key_fingerprint: str, now: datetime) -> None:
        """Note that a node is alive."""
        at = to_micros(now)
        params = {"owner": owner, "directory_id": directory_id, "key_fingerprint": key_fingerprint, "now": at}
        await self._statements.fetch("see_node", params)
        await self._statements.fetch("see_directory", {"id": directory_id, "now": at})

    async def delete_node(self, owner: str) -> None:
        await self._statements.fetch("delete_node", {"owner": owner})

    async def delete_dead_nodes(self, before: datetime) -> None:
        await self._statements.fetch("delete_dead_nodes", {"before": to_micros(before)})

    async def has_other_key(self, directory_id: str, key_fingerprint: str, since: datetime) -> bool:
        """Return whether a running node has the same directory and another device key."""
        params = {"directory_id": directory_id, "key_fingerprint": key_fingerprint, "since": to_micros(since)}
        return bool(await self._statements.fetch("live_node_with_other_key", params))
