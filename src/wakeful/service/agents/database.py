"""Agents' own databases: everything a tool, a route or a command may ask of one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import orjson

from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnreadable, DataNotFound, is_retryable
from wakeful.agentdb.errors import kind_of as error_kind
from wakeful.domain.agents.directories import MemoryElsewhere
from wakeful.domain.people.accounts import Identity, check_owner
from wakeful.domain.types import Agent
from wakeful.service.agents.database_files import AgentFiles, By, Values
from wakeful.store.store import Store

__all__ = ["AgentData", "By", "error_kind", "is_retryable"]


class AgentData:
    """Read and write agents' databases."""

    def __init__(self, store: Store, files: AgentFiles) -> None:
        self._store = store
        self.files = files

    async def person(self, agent_id: str, user_id: str) -> By:
        """Let a person at the database of an agent of theirs."""
        return By(agent=await self._store.read(lambda tx: tx.agents.get(agent_id, user_id)))

    async def show_key(self, by: By, caller: Identity) -> tuple[str, bytes]:
        """Give an owner of this server the key of a database of their own agent, and where its file is."""
        check_owner(caller)
        return await self.files.show_key(by)

    # What there is.

    async def schema(self, by: By, *, with_system: bool = False) -> dict[str, Any]:
        """Return tables, views and how much room is used."""
        return await self.files.read(by, "schema", with_system=with_system)

    async def names(self, agent: Agent) -> tuple[list[str], dict[str, list[str]]]:
        """Return the tables of an agent and its views, each with the parameters it cannot do without.

        An agent without the toolset has none, and one whose database is locked or elsewhere has none that anyone can
        name here.
        """
        try:
            return await self._names(agent)
        except MemoryElsewhere:
            return [], {}

    async def views_of(self, agent: Agent) -> dict[str, list[str]]:
        """Return the names of an agent's views, each with the parameters it cannot do without."""
        return (await self._names(agent))[1]

    async def _names(self, agent: Agent) -> tuple[list[str], dict[str, list[str]]]:
        if "database" not in agent.toolsets:
            return [], {}
        try:
            found = await self.files.read(By(agent=agent, actor="system"), "names")
        except (DatabaseLocked, DatabaseUnreadable):
            return [], {}
        return found["tables"], found["views"]

    # Tables.

    async def create_table(
        self, by: By, name: str, purpose: str, columns: Sequence[Values], indexes: Sequence[Sequence[str]] = ()
    ) -> dict[str, Any]:
        """Make a table with the host's three columns in it."""
        return await self.files.write(
            by, "create_table", name, name=name, purpose=purpose, columns=list(columns), indexes=list(indexes)
        )

    async def alter_table(self, by: By, name: str, columns: Sequence[Values]) -> dict[str, Any]:
        """Append columns."""
        return await self.files.write(by, "alter_table", name, name=name, columns=list(columns))

    async def migrate(self, by: By, purpose: str, up_sql: str, down_sql: str) -> dict[str, Any]:
        """Run a migration, after a snapshot."""
        mover = replace(by, actor="migration") if by.actor == "agent" else by
        return await self.files.write(mover, "migrate", None, purpose=purpose, up_sql=up_sql, down_sql=down_sql)

    async def take_back_migration(self, by: By, change_id: int) -> dict[str, Any]:
        """Run the down_sql of a migration, given by its number in the changelog. For people only."""
        return await self.files.write(by, "down", None, change_id=change_id)

    async def snapshots(self, by: By) -> list[dict[str, Any]]:
        """Return the copies of the file that were made before migrations, the latest first."""
        return (await self.files.read(by, "snapshots"))["snapshots"]

    async def recover(self, by: By, snapshot: str, table: str, new_name: str | None = None) -> dict[str, Any]:
        """Copy a table of a snapshot into the database, under its own name or another. For people only."""
        return await self.files.write(
            by, "recover", new_name or table, snapshot=snapshot, table=table, new_name=new_name
        )

    # Rows.

    async def insert(self, by: By, table: str, rows: Sequence[Values]) -> dict[str, Any]:
        return await self.files.write(by, "insert", table, table=table, rows=list(rows))

    async def upsert(
        self, by: By, table: str, rows: Sequence[Values], conflict_columns: Sequence[str]
    ) -> dict[str, Any]:
        """Insert rows, or update or revive those with the same values in the named columns."""
        return await self.files.write(
            by, "upsert", table, table=table, rows=list(rows), conflict_columns=list(conflict_columns)
        )

    async def update(
        self, by: By, table: str, changes: Values, where: Values | None = None, row_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Change live rows that meet a condition, or those with the given row ids."""
        return await self.files.write(by, "update", table, table=table, set=changes, where=where, row_ids=row_ids)

    async def delete(
        self, by: By, table: str, where: Values | None = None, row_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Soft-delete rows."""
        return await self.files.write(by, "delete", table, table=table, where=where, row_ids=row_ids)

    async def restore(
        self, by: By, table: str, where: Values | None = None, row_ids: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Bring soft-deleted rows back."""
        return await self.files.write(by, "restore", table, table=table, where=where, row_ids=row_ids)

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
        return await self.files.read(
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
        return await self.files.read_unparsed(
            by, "query", sql=sql, params=params, limit=limit, include_deleted=include_deleted
        )

    async def execute(self, by: By, sql: str, params: Values | Sequence[Any] | None = None) -> dict[str, Any]:
        """Run one statement that writes."""
        return await self.files.write(by, "execute", None, sql=sql, params=params)

    # Views.

    async def list_views(self, by: By) -> list[dict[str, Any]]:
        return (await self.files.read(by, "list_views"))["views"]

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
        return await self.files.write(
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
        return await self.files.read(by, "run_view", name=name, params=params, limit=limit)

    async def pin_view(self, by: By, name: str, *, is_pinned: bool) -> dict[str, Any]:
        return await self.files.write(by, "pin_view", None, name=name, is_pinned=is_pinned)

    async def drop_view(self, by: By, name: str) -> dict[str, Any]:
        return await self.files.write(by, "drop_view", None, name=name)

    # Files, the changelog, and what only people do.

    async def import_text(
        self, by: By, table: str, text: str, kind: str, *, create: bool = True, source: str = ""
    ) -> dict[str, Any]:
        """Insert the rows of a CSV, JSON or JSONL text."""
        return await self.files.write(
            by, "import", table, table=table, text=text, format=kind, create=create, source=source
        )

    async def export_file(
        self,
        by: By,
        kind: str,
        *,
        table: str | None = None,
        show: Literal["active", "deleted", "all"] = "active",
        sql: str | None = None,
        params: Values | Sequence[Any] | None = None,
    ) -> bytes:
        """Return a table, or what a statement reads, as CSV, JSON or JSONL, unread: it may have many megabytes."""
        return await self.files.read_unparsed(by, "export", format=kind, table=table, show=show, sql=sql, params=params)

    async def export_view(self, by: By, kind: str, name: str, params: Values | None = None) -> bytes:
        """Return what a saved view finds as CSV, JSON or JSONL."""
        given = dict(params or {})
        await self.run_view(by, name, given, limit=1)  # says what is wrong with the name or the values
        for view in await self.list_views(by):
            if view["name"] == name:
                usual = {each["name"]: each["default"] for each in view["parameters"] if "default" in each}
                return await self.export_file(by, kind, sql=view["sql"], params=usual | given or None)
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
        found = await self.files.read(
            by, "changelog", run_id=run_id, table=table, row_id=row_id, before=before, most=limit
        )
        return found["changes"], found["is_more"]

    async def verify(self, by: By) -> dict[str, Any]:
        """Say whether the changelog is as it was written, and from where on not."""
        return await self.files.read(by, "verify", known=await self.files.known_head(by.agent.id))

    async def undo_run(self, run_id: str, user_id: str) -> dict[str, Any]:
        """Put rows that a run wrote back to what they were, but for those that others have changed since."""
        run = await self._store.read(lambda tx: tx.runs.read(run_id, user_id))
        by = await self.person(run.agent_id, user_id)
        return await self.files.write(by, "undo", None, run_id=run_id)

    async def purge(self, by: By) -> dict[str, Any]:
        """Throw away tombstones and images past their time now, instead of when space is short."""
        return await self.files.write(By(agent=by.agent, actor="system"), "purge", None)
