"""The part of a prompt about an agent's database: its tables and views, and the rows of chosen views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from wakeful.clock import Clock
from wakeful.domain.errors import WakefulError
from wakeful.domain.resources import OutOfResources
from wakeful.domain.types import Agent
from wakeful.domain.wakes.duration import format_duration
from wakeful.service.agents.database_files import AgentFiles, By

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
