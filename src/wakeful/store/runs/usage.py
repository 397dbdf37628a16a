"""Usage of models by runs, in the store."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from wakeful.domain.types import RunUsage
from wakeful.store.drivers.database import Statements
from wakeful.store.rows import USAGE, to_micros


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage over some time; money in millionths of a dollar."""

    tokens: int
    cost_micros: int
    model_calls: int = 0
    runs: int = 0
    unpriced_runs: int = 0  # whose model has no known price: their cost is missing above


_SPENT = tuple(field.name for field in fields(Spent))


class UsageRows:
    """Statements about usage, in one transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def save(self, usage: RunUsage) -> None:
        await self._statements.fetch("save_usage", USAGE.write(usage))

    async def of_run(self, run_id: str) -> RunUsage | None:
        return USAGE.read_first(await self._statements.fetch("usage_of_run", {"run_id": run_id}))

    async def of_runs(self, run_ids: Sequence[str]) -> dict[str, RunUsage]:
        """Return the usage of each of these runs; a run without a model call has none."""
        rows = await self._statements.fetch_many("usage_of_runs", [{"run_id": run_id} for run_id in run_ids])
        return {row["run_id"]: USAGE.read(row) for row in rows}

    async def of_agent(self, agent_id: str, since: datetime, *, but_run: str = "") -> Spent:
        """Return the usage of an agent since an instant of today or yesterday, without one run."""
        until = to_micros(since + timedelta(days=2))
        params = {"agent_id": agent_id, "since": to_micros(since), "until": until, "but_run": but_run}
        [row] = await self._statements.fetch("usage_of_agent", params)
        return Spent(**{name: int(row[name]) for name in _SPENT})
