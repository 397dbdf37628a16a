"""Agents' own databases: everything a tool, a route or a command may ask of one.

The statements run in worker processes; this decides who asks, keeps writes to one file in order, tells those who
watch, and deals with keys that do not fit.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from secrets import token_bytes
from typing import Any, Literal

import orjson

from wakeful.agentdb.engine import Answered, Engine
from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnreadable, DataNotFound, for_people, is_retryable
from wakeful.agentdb.errors import kind_of as error_kind
from wakeful.agentdb.opened import Request
from wakeful.agentdb.operations import MAKES
from wakeful.agentdb.vault import AgentKeys, Vault
from wakeful.clock import Clock
from wakeful.domain import notices
from wakeful.domain.duration import format_duration
from wakeful.domain.errors import WakefulError
from wakeful.domain.events import DbUpdate
from wakeful.domain.types import Agent, Notice
from wakeful.service.changelog_heads import ChangelogHeads
from wakeful.service.feed import Feed
from wakeful.store.store import Store, Tx

__all__ = ["AgentData", "By", "ShownView", "error_kind", "is_retryable"]

log = logging.getLogger(__name__)

SECONDS = 5.0  # for one statement
LONG_SECONDS = 30.0  # for what goes through a whole file
CONTEXT_ROWS = 50
CONTEXT_BYTES = 8_000
PROMPT_CHARACTERS = 4_000  # of the tables and views in a prompt
_LONGEST_LINE = 600

_LONG = frozenset({"migrate", "down", "import", "export", "undo", "verify", "purge", "rekey"})
_NO_KEY = bytes(32)

Actor = Literal["agent", "user", "migration", "system"]
Values = Mapping[str, Any]
State = Literal["none", "open", "locked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Whose database it is about, and who asks."""

    agent: Agent
    actor: Actor = "user"
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """What a saved view shows, as a model may read it."""

    name: str
    text: str
    is_error: bool = False


class AgentData:
    """Read and write agents' databases."""

    def __init__(self, store: Store, clock: Clock, engine: Engine, vault: Vault, feed: Feed, quota: int) -> None:
        self._store = store
        self._clock = clock
        self._engine = engine
        self._vault = vault
        self._feed = feed
        self._quota = quota
        self._heads = ChangelogHeads(store)
        self._locks: dict[str, asyncio.Lock] = {}
        self._in_flight: Counter[str] = Counter()

    async def person(self, agent_id: str, user_id: str) -> By:
        """Let a person at the database of an agent of theirs."""
        return By(agent=await self._store.read(lambda tx: tx.agents.get(agent_id, user_id)))

    # What there is.

    async def schema(self, by: By, *, with_system: bool = False) -> dict[str, Any]:
        """Return tables, views and how much room is used."""
        return await self._read(by, "schema", with_system=with_system)

    def state(self, agent: Agent) -> State:
        """Tell whether an agent has a database, and whether it can be opened."""
        if not self._vault.has_database(agent.id):
            return "none"
        try:
            self._vault.open(agent.id)
        except DatabaseLocked:
            return "locked"
        return "open"

    def in_flight(self, agent_id: str) -> int:
        """Return how many writes are under way."""
        return self._in_flight[agent_id]

    async def names(self, agent: Agent) -> tuple[list[str], dict[str, list[str]]]:
        """Return the tables of an agent and its views, each with the parameters it cannot do without.

        An agent without the toolset has none, and one whose database is locked has none that anyone can name.
        """
        if "database" not in agent.toolsets:
            return [], {}
        try:
            found = await self._read(By(agent=agent, actor="system"), "names")
        except (DatabaseLocked, DatabaseUnreadable):
            return [], {}
        return found["tables"], found["views"]

    async def describe(self, agent: Agent) -> list[str]:
        """Return a line for each table and view of an agent, for its prompt; none if it has no database to look into.

        Only so many that they fit, and the last line says how many more there are.
        """
        if "database" not in agent.toolsets or self.state(agent) != "open":
            return []
        try:
            found = await self._read(By(agent=agent, actor="system"), "schema", with_counts=False)
        except WakefulError as error:  # the run goes on, and its tools will meet the same
            return [f"what there is could not be read: {error.message}"]
        lines = [_table_line(table) for table in found["tables"]] + [_view_line(view) for view in found["views"]]
        shown: list[str] = []
        left = PROMPT_CHARACTERS
        for line in lines:
            left -= len(line) + 1
            if left < 0:
                return [*shown, f"and {len(lines) - len(shown)} more, which db_schema lists"]
            shown.append(line)
        return shown

    async def views_of(self, agent: Agent) -> dict[str, list[str]]:
        """Return the names of an agent's views, each with the parameters it cannot do without."""
        return (await self.names(agent))[1]

    # Tables.

    async def create_table(
        self, by: By, name: str, purpose: str, columns: Sequence[Values], indexes: Sequence[Sequence[str]] = ()
    ) -> dict[str, Any]:
        """Make a table with the host's three columns in it."""
        return await self._write(
            by, "create_table", name, name=name, purpose=purpose, columns=list(columns), indexes=list(indexes)
        )

    async def alter_table(self, by: By, name: str, columns: Sequence[Values]) -> dict[str, Any]:
        """Append columns."""
        return await self._write(by, "alter_table", name, name=name, columns=list(columns))

    async def migrate(self, by: By, purpose: str, up_sql: str, down_sql: str) -> dict[str, Any]:
        """Run a migration, after a snapshot."""
        mover = replace(by, actor="migration") if by.actor == "agent" else by
        return await self._write(mover, "migrate", None, purpose=purpose, up_sql=up_sql, down_sql=down_sql)

    async def take_back_migration(self, by: By, change_id: int) -> dict[str, Any]:
        """Run the down_sql of a migration, given by its number in the changelog. For people only."""
        return await self._write(by, "down", None, change_id=change_id)

    # Rows.

    async def insert(self, by: By, table: str, rows: Sequence[Values]) -> dict[str, Any]:
        return await self._write(by, "insert", table, table=table, rows=list(rows))

    async def upsert(
        self, by: By, table: str, rows: Sequence[Values], conflict_columns: Sequence[str]
    ) -> dict[str, Any]:
        """Insert rows, or update or revive those with the same values in the named columns."""
        return await self._write(
            by, "upsert", table, table=table, rows=list(rows), conflict_columns=list(conflict_columns)
        )

    async def update(
        self, by: By, table: str, changes: Values, where: Values | None = None, row_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Change live rows that meet a condition, or those with the given row ids."""
        return await self._write(by, "update", table, table=table, set=changes, where=where, row_ids=row_ids)

    async def delete(
        self, by: By, table: str, where: Values | None = None, row_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Soft-delete rows."""
        return await self._write(by, "delete", table, table=table, where=where, row_ids=row_ids)

    async def restore(
        self, by: By, table: str, where: Values | None = None, row_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Bring soft-deleted rows back."""
        return await self._write(by, "restore", table, table=table, where=where, row_ids=row_ids)

    async def rows(
        self,
        by: By,
        table: str,
        *,
        show: Literal["active", "deleted", "all"] = "active",
        where: Values | None = None,
        sort: str | None = None,
        descending: bool = False,
        limit: int = 100,
        offset: int = 0,
    ) -> dict[str, Any]:
        """Return a page of a table, for people; the first column is the row id."""
        return await self._read(
            by,
            "rows",
            table=table,
            show=show,
            condition=where,
            sort=sort,
            descending=descending,
            limit=limit,
            offset=offset,
        )

    # Statements.

    async def query(
        self,
        by: By,
        sql: str,
        params: Values | Sequence[Any] | None = None,
        *,
        limit: int | None = None,
        include_deleted: bool = False,
    ) -> dict[str, Any]:
        """Run one statement that only reads."""
        written = await self.query_as_json(by, sql, params, limit=limit, include_deleted=include_deleted)
        return orjson.loads(written)

    async def query_as_json(
        self,
        by: By,
        sql: str,
        params: Values | Sequence[Any] | None = None,
        *,
        limit: int | None = None,
        include_deleted: bool = False,
    ) -> bytes:
        """Run one statement that only reads, and return what `query` would as JSON, unread."""
        args = {"sql": sql, "params": params, "limit": limit, "include_deleted": include_deleted}
        return (await self._ask(by, "query", args)).text

    async def execute(self, by: By, sql: str, params: Values | Sequence[Any] | None = None) -> dict[str, Any]:
        """Run one statement that writes."""
        return await self._write(by, "execute", None, sql=sql, params=params)

    # Views.

    async def list_views(self, by: By) -> list[dict[str, Any]]:
        return (await self._read(by, "list_views"))["views"]

    async def define_view(
        self,
        by: By,
        name: str,
        sql: str,
        *,
        description: str = "",
        parameters: Sequence[Values] = (),
        render: str = "table",
        is_pinned: bool | None = None,
    ) -> dict[str, Any]:
        """Save a view. A parameter with a `default` may be left out when it is run."""
        return await self._write(
            by,
            "define_view",
            None,
            name=name,
            sql=sql,
            description=description,
            parameters=list(parameters),
            render=render,
            is_pinned=is_pinned,
        )

    async def run_view(
        self, by: By, name: str, params: Values | None = None, *, limit: int | None = None
    ) -> dict[str, Any]:
        return await self._read(by, "run_view", name=name, params=params, limit=limit)

    async def pin_view(self, by: By, name: str, *, is_pinned: bool) -> dict[str, Any]:
        return await self._write(by, "pin_view", None, name=name, is_pinned=is_pinned)

    async def drop_view(self, by: By, name: str) -> dict[str, Any]:
        return await self._write(by, "drop_view", None, name=name)

    async def show_views(self, agent: Agent, names: Sequence[str]) -> list[ShownView]:
        """Run the views a next run was booked with. Never fails: what goes wrong is what it shows."""
        return [await self._show_view(agent, name) for name in names]

    async def _show_view(self, agent: Agent, name: str) -> ShownView:
        by = By(agent=agent, actor="system")
        try:
            found = await self._read(by, "run_view", name=name, limit=CONTEXT_ROWS, most_bytes=CONTEXT_BYTES)
        except WakefulError as error:
            return ShownView(name=name, text=error.message, is_error=True)
        lines = [found["columns"], *found["rows"]]
        text = "\n".join(_line(line) for line in lines)
        more = " There are more rows." if found["truncated"] else ""
        changed = found["changed_at"]
        age = "" if changed is None else f" Last changed {self._ago(changed)} ago."
        return ShownView(name=name, text=f"{text}\n({found['row_count']} rows.{more}{age})")

    def _ago(self, at: str) -> str:
        return format_duration(max(self._clock.now() - datetime.fromisoformat(at), datetime.resolution))

    # Files, the changelog, and what only people do.

    async def import_text(
        self, by: By, table: str, text: str, kind: str, *, create: bool = True, source: str = ""
    ) -> dict[str, Any]:
        """Insert the rows of a CSV, JSON or JSONL text."""
        return await self._write(by, "import", table, table=table, text=text, format=kind, create=create, source=source)

    async def export_text(
        self,
        by: By,
        kind: str,
        *,
        table: str | None = None,
        show: Literal["active", "deleted", "all"] = "active",
        sql: str | None = None,
        params: Values | Sequence[Any] | None = None,
    ) -> str:
        """Return a table, or what a statement reads, as CSV, JSON or JSONL."""
        return (await self._read(by, "export", format=kind, table=table, show=show, sql=sql, params=params))["text"]

    async def export_view(self, by: By, kind: str, name: str, params: Values | None = None) -> str:
        """Return what a saved view finds as CSV, JSON or JSONL."""
        given = dict(params or {})
        await self.run_view(by, name, given, limit=1)  # says what is wrong with the name or the values
        for view in await self.list_views(by):
            if view["name"] == name:
                usual = {each["name"]: each["default"] for each in view["parameters"] if "default" in each}
                return await self.export_text(by, kind, sql=view["sql"], params=usual | given or None)
        raise DataNotFound(f"The view {name!r} was dropped a moment ago.", field="name")

    async def changelog(
        self,
        by: By,
        *,
        run_id: str | None = None,
        table: str | None = None,
        row_id: int | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[list[dict[str, Any]], bool]:
        """Return what changed, the newest first, and whether there is more; `before` is the number to go on from.

        A page of very large rows has fewer of them.
        """
        found = await self._read(by, "changelog", run_id=run_id, table=table, row_id=row_id, before=before, most=limit)
        return found["changes"], found["is_more"]

    async def verify(self, by: By) -> dict[str, Any]:
        """Say whether the changelog is as it was written, and from where on not."""
        return await self._read(by, "verify", known=await self._heads.of(by.agent.id))

    async def undo_run(self, run_id: str, user_id: str) -> dict[str, Any]:
        """Put rows that a run wrote back to what they were, but for those that others have changed since."""
        run = await self._store.read(lambda tx: tx.runs.read(run_id, user_id))
        by = await self.person(run.agent_id, user_id)
        return await self._write(by, "undo", None, run_id=run_id)

    async def purge(self, by: By) -> dict[str, Any]:
        """Throw away tombstones and images past their time now, instead of when space is short."""
        return await self._write(By(agent=by.agent, actor="system"), "purge", None)

    async def rotate_key(self, by: By) -> None:
        """Encrypt an agent's file, and its snapshots, with a new key."""
        agent = by.agent
        if not self._vault.has_database(agent.id):
            return
        async with self._writing(by, None):
            old = await self._fitting_key(agent, self._vault.database_of(agent.id))
            # Both are kept until every file surely has the new one: a crash in between leaves nothing locked.
            self._vault.save(agent.id, AgentKeys(current=token_bytes(32), previous=old))
            await self._finish_rotation(agent)
        self._tell(agent, None)

    async def _finish_rotation(self, agent: Agent) -> None:
        """See a rotation through, be it one that was cut off: the file and its snapshots get the new key."""
        keys = self._vault.open(agent.id)
        if keys.previous is None:
            return
        path = self._vault.database_of(agent.id)
        await self._engine.close_file(path)
        args = {"new_key": keys.current.hex()}
        try:
            await self._engine.ask(self._request(By(agent=agent, actor="system"), "rekey", path, keys.previous, args))
        except DatabaseUnreadable:
            raise await self._put_aside(agent) from None
        self._vault.save(agent.id, AgentKeys(current=keys.current))

    async def erase(self, agent: Agent) -> None:
        """Destroy an agent's database for good, by destroying its key first."""
        async with self._lock(agent.id):
            had_one = self._vault.has_database(agent.id)
            await self._engine.close_file(self._vault.database_of(agent.id))
            self._vault.erase(agent.id)
            await self._heads.forget(agent.id)
        if had_one:
            self._tell(agent, None)

    async def finish_erasing(self) -> None:
        """Erase what is left of agents that were deleted, in case a crash came before their databases were gone."""
        for agent_id in await self._store.read(lambda tx: tx.agents.ended()):
            if self._vault.has_anything(agent_id):
                log.info("database of a deleted agent erased", extra={"agent_id": agent_id})
                self._vault.erase(agent_id)
                await self._heads.forget(agent_id)

    async def aclose(self) -> None:
        await self._heads.aclose()
        await self._engine.aclose()

    # How it is done.

    async def _read(self, by: By, op: str, /, **args: Any) -> Any:
        return (await self._ask(by, op, args)).result

    async def _write(self, by: By, op: str, table: str | None, /, **args: Any) -> Any:
        async with self._writing(by, table):
            answered = await self._ask(by, op, args, is_writing=True)
            if answered.is_crossing:
                await self._warn(by.agent, answered)
        if answered.last_change and answered.last_hash:
            self._heads.note(by.agent.id, (answered.last_change, answered.last_hash))
        self._tell(by.agent, table, last_change=answered.last_change)
        return answered.result

    @asynccontextmanager
    async def _writing(self, by: By, table: str | None) -> AsyncGenerator[None]:
        """Let one write at a time at a file, and tell those who watch that one is under way."""
        agent_id = by.agent.id
        self._in_flight[agent_id] += 1
        self._tell(by.agent, table)
        try:
            async with self._lock(agent_id):
                yield
        except BaseException:
            self._landed(agent_id)
            self._tell(by.agent, table)
            raise
        else:
            self._landed(agent_id)

    def _landed(self, agent_id: str) -> None:
        self._in_flight[agent_id] -= 1
        if not self._in_flight[agent_id]:
            del self._in_flight[agent_id]

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())

    def _tell(self, agent: Agent, table: str | None, last_change: int | None = None) -> None:
        frame = DbUpdate(agent_id=agent.id, table=table, in_flight=self._in_flight[agent.id], last_change=last_change)
        self._feed.tell(agent.user_id, frame)

    async def _ask(self, by: By, op: str, args: Values, *, is_writing: bool = False) -> Answered:
        try:
            return await self._ask_as_it_is(by, op, args, is_writing=is_writing)
        except WakefulError as error:
            if by.actor == "user":
                error.message = for_people(error.message)
            raise

    async def _ask_as_it_is(self, by: By, op: str, args: Values, *, is_writing: bool) -> Answered:
        agent_id = by.agent.id
        path = self._vault.database_of(agent_id)
        if not self._vault.has_database(agent_id):
            if op not in MAKES:
                # Nothing is made for the sake of a look: it is asked of an empty database in memory.
                return await self._engine.ask(self._request(by, op, "", _NO_KEY, args))
            key = self._vault.make(agent_id).current
        else:
            keys = self._vault.open(agent_id)
            if keys.previous is not None:
                async with contextlib.nullcontext() if is_writing else self._lock(agent_id):  # who writes holds it
                    await self._finish_rotation(by.agent)
                keys = self._vault.open(agent_id)
            key = keys.current
        try:
            return await self._engine.ask(self._request(by, op, path, key, args))
        except DatabaseUnreadable:
            key = await self._fitting_key(by.agent, path)
            return await self._engine.ask(self._request(by, op, path, key, args))

    def _request(self, by: By, op: str, path: str, key: bytes, args: Values) -> Request:
        return Request(
            op=op,
            path=path,
            key=key.hex(),
            seconds=LONG_SECONDS if op in _LONG else SECONDS,
            quota=self._quota if by.agent.database_mb is None else by.agent.database_mb * 1024 * 1024,
            at=self._clock.now().isoformat(),
            actor=by.actor,
            run_id=by.run_id,
            args=args,
        )

    async def _fitting_key(self, agent: Agent, path: str) -> bytes:
        """Return the key of a file after a look whether it really opens it.

        A file that it does not open is damaged: it is put aside, so that the agent can begin anew.
        """
        key = self._vault.open(agent.id).current
        try:
            await self._engine.ask(self._request(By(agent=agent, actor="system"), "check", path, key, {}))
        except DatabaseUnreadable:
            raise await self._put_aside(agent) from None
        return key

    async def _put_aside(self, agent: Agent) -> DatabaseUnreadable:
        now = self._clock.now()
        aside = self._vault.set_aside(agent.id, now.isoformat())
        await self._heads.forget(agent.id)
        log.error("database unreadable, set aside", extra={"agent_id": agent.id, "path": str(aside)})
        await self._notice(notices.database_unreadable(agent, str(aside), now))
        return DatabaseUnreadable(
            f"The database of agent {agent.name!r} is damaged. Its file was put aside at {str(aside)!r}, and nothing "
            "of it was deleted. The next write begins a new one."
        )

    async def _warn(self, agent: Agent, answered: Answered) -> None:
        assert answered.used is not None
        assert answered.quota is not None
        await self._notice(notices.storage_low(agent, answered.used, answered.quota, self._clock.now()))

    async def _notice(self, notice: Notice) -> None:
        async def work(tx: Tx) -> None:
            await tx.notices.add(notice)

        await self._store.write(work)


def _line(values: Sequence[Any]) -> str:
    return " | ".join("" if value is None else " ".join(str(value).split()) for value in values)


def _table_line(table: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{each['name']} {each['type']}".strip() for each in table["columns"] if not each["system"])
    return _one_line(f"table {table['name']} ({columns})", table["purpose"])


def _view_line(view: Mapping[str, Any]) -> str:
    parameters = ", ".join(f":{each['name']}" for each in view["parameters"])
    return _one_line(f"view {view['name']}" + (f" ({parameters})" if parameters else ""), view["description"])


def _one_line(what: str, words: str) -> str:
    text = " ".join(f"{what}: {words}".split()) if words else what
    return text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + "…"
