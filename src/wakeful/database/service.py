"""Runs operations on agents' databases, for tools, routes and prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.agentdb.errors import DatabaseLocked, DatabaseUnreadable
from wakeful.agentdb.operation import Door
from wakeful.agentdb.operations import OPERATIONS
from wakeful.core.clock import Clock
from wakeful.core.errors import WakefulError
from wakeful.core.identity import Identity, check_owner, check_scope
from wakeful.core.resources import OutOfResources
from wakeful.core.types import Agent
from wakeful.core.zones import format_duration
from wakeful.database.files import AgentFiles, By
from wakeful.store.store import Store


class AgentData:
    """Runs operations on agents' databases; `agentdb` declares them, with their arguments."""

    def __init__(self, store: Store, files: AgentFiles) -> None:
        self._store = store
        self.files = files
        self.run = files.run
        self.run_numbered = files.run_numbered
        self.run_unparsed = files.run_unparsed

    async def run_for(self, caller: Identity, door: Door, agent_id: str, op: str, /, **args: Any) -> Any:
        """Run an operation for a user, on the database of their agent, if the token's scope allows it."""
        check_scope(caller, OPERATIONS[op].scope)
        return await self.run(await self.person(agent_id, caller.user.id, door), op, **args)

    async def person(self, agent_id: str, user_id: str, door: Door = "command") -> By:
        """Return a user as the caller of operations, after checking that the agent is theirs."""
        return By(agent=await self._store.read(lambda tx: tx.agents.get(agent_id, user_id)), door=door)

    async def show_key(self, by: By, caller: Identity) -> tuple[str, bytes]:
        """Return the path and key of a database, to an owner of this server for an agent of theirs."""
        check_owner(caller)
        return await self.files.show_key(by)

    async def names(self, agent: Agent) -> tuple[list[str], dict[str, list[str]]]:
        """Return the tables of an agent, and its views with their required parameters.

        Both are empty without the toolset, and if the database is locked.
        """
        if "database" not in agent.toolsets:
            return [], {}
        try:
            found = await self.run(By(agent=agent, actor="system"), "names")
        except (DatabaseLocked, DatabaseUnreadable):
            return [], {}
        return found["tables"], found["views"]

    async def views_of(self, agent: Agent) -> dict[str, list[str]]:
        """Return the names of an agent's views, with their required parameters."""
        return (await self.names(agent))[1]

    async def undo_run(self, run_id: str, user_id: str, door: Door = "command") -> dict[str, Any]:
        """Restore the rows that a run wrote, except those changed since."""
        run = await self._store.read(lambda tx: tx.runs.read(run_id, user_id))
        return await self.run(await self.person(run.agent_id, user_id, door), "undo", run_id=run_id)


# The part of a prompt about an agent's database: its tables and views, and the rows of chosen views.


MAX_ROWS = 50  # of a view
MAX_BYTES = 8_000  # of the rows of a view
MAX_CHARACTERS = 4_000  # of the lines about tables and views
NO_TABLES = "no tables yet; db_create_table creates one, which comes before the first row"
_MAX_LINE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """The rows of a saved view, as text for a model."""

    name: str
    text: str
    is_error: bool = False


class DatabasePrompt:
    def __init__(self, files: AgentFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock

    async def describe(self, agent: Agent) -> list[str]:
        """Return a line for each table and view of an agent; none without the toolset or if the database is locked.

        If they are too long for a prompt, the last line says how many more there are.
        """
        if "database" not in agent.toolsets or (state := await self._files.state(agent)) == "locked":
            return []
        if state == "none":
            return [NO_TABLES]
        try:
            found = await self._files.run(By(agent=agent, actor="system"), "schema", with_counts=False)
        except OutOfResources:
            raise  # the run is retried later
        except WakefulError as error:  # the run goes on; its tools will get the same error
            return [f"the schema could not be read: {error.message}"]
        tables = [_table_line(table) for table in found["tables"]] or [NO_TABLES]
        lines = tables + [_view_line(view) for view in found["views"]]
        shown: list[str] = []
        left = MAX_CHARACTERS
        for line in lines:
            left -= len(line) + 1
            if left < 0:
                return [*shown, f"and {len(lines) - len(shown)} more, which db_schema lists"]
            shown.append(line)
        return shown

    async def show_views(self, agent: Agent, names: Sequence[str]) -> list[ShownView]:
        """Run the views that a next run was scheduled with. An error becomes the text of its view."""
        return [await self._show_view(agent, name) for name in names]

    async def _show_view(self, agent: Agent, name: str) -> ShownView:
        by = By(agent=agent, actor="system")
        try:
            found = await self._files.run(by, "run_view", name=name, limit=MAX_ROWS, max_bytes=MAX_BYTES)
        except OutOfResources:
            raise
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


def _line(values: Sequence[Any]) -> str:
    return " | ".join("" if value is None else " ".join(str(value).split()) for value in values)


def _table_line(table: Mapping[str, Any]) -> str:
    named = [(each["name"], each["declared"] or each["type"]) for each in table["columns"] if not each["system"]]
    columns = ", ".join(f"{name} {kind.upper()}".strip() for name, kind in named)
    return _one_line(f"table {table['name']} ({columns})", table["purpose"])


def _view_line(view: Mapping[str, Any]) -> str:
    parameters = ", ".join(f":{each['name']}" for each in view["parameters"])
    return _one_line(f"view {view['name']}" + (f" ({parameters})" if parameters else ""), view["description"])


def _one_line(what: str, words: str) -> str:
    text = " ".join(f"{what}: {words}".split()) if words else what
    return text if len(text) <= _MAX_LINE else text[:_MAX_LINE] + "…"
