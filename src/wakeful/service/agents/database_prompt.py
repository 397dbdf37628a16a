"""What a prompt says of an agent's database: its tables and views, and what those views show that a run asked for."""

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

CONTEXT_ROWS = 50
CONTEXT_BYTES = 8_000
PROMPT_CHARACTERS = 4_000  # of the tables and views in a prompt
NOTHING_YET = "no tables yet; db_create_table makes one, which comes before the first row"
_LONGEST_LINE = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownView:
    """What a saved view shows, as a model may read it."""

    name: str
    text: str
    is_error: bool = False


class DataInWords:
    """Says what is in agents' databases."""

    def __init__(self, files: AgentFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock

    async def describe(self, agent: Agent) -> list[str]:
        """Return a line for each table and view of an agent, for its prompt; none if it may not look into a database.

        Only so many that they fit, and the last line says how many more there are.
        """
        if "database" not in agent.toolsets or (state := await self._files.state(agent)) == "locked":
            return []
        if state == "none":
            return [NOTHING_YET]
        try:
            found = await self._files.read(By(agent=agent, actor="system"), "schema", with_counts=False)
        except OutOfResources:
            raise  # the run is put off
        except WakefulError as error:  # the run goes on, and its tools will meet the same
            return [f"what there is could not be read: {error.message}"]
        tables = [_table_line(table) for table in found["tables"]] or [NOTHING_YET]
        lines = tables + [_view_line(view) for view in found["views"]]
        shown: list[str] = []
        left = PROMPT_CHARACTERS
        for line in lines:
            left -= len(line) + 1
            if left < 0:
                return [*shown, f"and {len(lines) - len(shown)} more, which db_schema lists"]
            shown.append(line)
        return shown

    async def show_views(self, agent: Agent, names: Sequence[str]) -> list[ShownView]:
        """Run the views a next run was booked with. Never fails: what goes wrong is what it shows."""
        return [await self._show_view(agent, name) for name in names]

    async def _show_view(self, agent: Agent, name: str) -> ShownView:
        by = By(agent=agent, actor="system")
        try:
            found = await self._files.read(by, "run_view", name=name, limit=CONTEXT_ROWS, most_bytes=CONTEXT_BYTES)
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
    columns = ", ".join(f"{each['name']} {each['type']}".strip() for each in table["columns"] if not each["system"])
    return _one_line(f"table {table['name']} ({columns})", table["purpose"])


def _view_line(view: Mapping[str, Any]) -> str:
    parameters = ", ".join(f":{each['name']}" for each in view["parameters"])
    return _one_line(f"view {view['name']}" + (f" ({parameters})" if parameters else ""), view["description"])


def _one_line(what: str, words: str) -> str:
    text = " ".join(f"{what}: {words}".split()) if words else what
    return text if len(text) <= _LONGEST_LINE else text[:_LONGEST_LINE] + "…"
