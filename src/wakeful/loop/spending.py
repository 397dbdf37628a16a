"""What a run and its subagents spend: counted after each model call, compared with the agent's budget before it."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from pydantic_ai.usage import RequestUsage

from wakeful.core.budget import Budget, Spent
from wakeful.core.errors import Conflict
from wakeful.core.types import Budgets, RunUsage


class PriceUnknown(Conflict):
    code = "price_unknown"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The agent has a budget in money, and the price of the model {model!r} is unknown. "
            "Give it a budget in tokens instead, or another model.",
            field="budgets",
        )


class Spending:
    """The usage of a run. Checked before each model call, so it overshoots the budget by one call at most."""

    def __init__(self, limits: Budgets, spent_today: Spent, usage: RunUsage) -> None:
        self.limits = limits
        self.spent_today = spent_today
        self.usage = usage
        self.subagents = 0
        self._in_flight: list[Spent] = []  # estimates of the calls in progress
        self._one_ended = asyncio.Event()

    @property
    def budget(self) -> Budget:
        usage = self.usage
        return Budget(
            self.limits, self.spent_today, Spent(usage.input_tokens + usage.output_tokens, usage.cost_micros or 0)
        )

    @contextmanager
    def in_flight(self, size: Spent) -> Generator[None]:
        """Count a call as in progress, with an estimate of its size."""
        self._in_flight.append(size)
        try:
            yield
        finally:
            self._in_flight.remove(size)
            self._one_ended.set()

    async def wait_for_room(self, size: Spent) -> None:
        """Wait until a call fits in with those of other subagents, so that together they overshoot by one at most.

        A single call may always start.
        """
        while self._in_flight and not self.budget.has_room_for(_sum(*self._in_flight, size)):
            self._one_ended.clear()
            await self._one_ended.wait()

    def count_model_call(self, used: RequestUsage, cost_micros: int | None) -> None:
        usage = self.usage
        known = [cost for cost in (usage.cost_micros, cost_micros) if cost is not None]
        self.usage = replace(
            usage,
            input_tokens=usage.input_tokens + used.input_tokens,
            output_tokens=usage.output_tokens + used.output_tokens,
            cost_micros=sum(known) if known else None,
            model_calls=usage.model_calls + 1,
        )

    def count_tool_call(self) -> None:
        self.usage = replace(self.usage, tool_calls=self.usage.tool_calls + 1)


def _sum(*calls: Spent) -> Spent:
    return Spent(sum(each.tokens for each in calls), sum(each.cost_micros for each in calls))


FINISH = (
    "[From the server, not from your user] Most of the budget of this run is used up. Finish now: save what must not "
    "be lost, book a follow-up if work is left and you have a tool for that, and say what you did. The run is stopped "
    "before the call that would exceed its budget."
)
