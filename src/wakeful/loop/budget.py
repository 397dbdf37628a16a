"""The budget of a run and its subagents: tokens, money, and how many subagents there may be."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from pydantic_ai.usage import RequestUsage

from wakeful.core.errors import Conflict
from wakeful.core.types import Budgets, RunUsage
from wakeful.store.runs import Spent

NEARLY = 0.8  # of the budget: the model is asked to finish


class PriceUnknown(Conflict):
    code = "price_unknown"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The agent has a budget in money, and the price of the model {model!r} is unknown. "
            "Give it a budget in tokens instead, or another model.",
            field="budgets",
        )


class Budget:
    """The usage of a run. Checked before each model call, so it overshoots by one call at most."""

    def __init__(self, limits: Budgets, spent_today: Spent, usage: RunUsage) -> None:
        self._limits = limits
        self.spent_today = spent_today
        self.usage = usage
        self.subagents = 0
        self._in_flight: list[Spent] = []  # estimates of the calls in progress
        self._one_ended = asyncio.Event()

    @property
    def has_day_limits(self) -> bool:
        return self._limits.day_tokens is not None or self._limits.day_cost_micros is not None

    @property
    def counts_money(self) -> bool:
        return self._limits.run_cost_micros is not None or self._limits.day_cost_micros is not None

    def is_spent(self) -> bool:
        """Return whether no further model call is allowed."""
        return any(used >= most for used, most in self._limits_of(self._used()))

    def is_nearly_spent(self) -> bool:
        """Return whether the run has used most of its budget, or of what is left of the day's."""
        return any(used >= NEARLY * most for used, most in self._limits_of(self._used()))

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
        while self._in_flight and any(
            used > most for used, most in self._limits_of(self._used(*self._in_flight, size))
        ):
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

    def _used(self, *more: Spent) -> Spent:
        usage = self.usage
        return Spent(
            usage.input_tokens + usage.output_tokens + sum(each.tokens for each in more),
            (usage.cost_micros or 0) + sum(each.cost_micros for each in more),
        )

    def _limits_of(self, size: Spent) -> list[tuple[int, int]]:
        """Return, for each limit, what of a size counts, and what is left of the limit for this run."""
        limits, today = self._limits, self.spent_today
        return [
            (counts, most - before)
            for counts, most, before in (
                (size.tokens, limits.run_tokens, 0),
                (size.tokens, limits.day_tokens, today.tokens),
                (size.cost_micros, limits.run_cost_micros, 0),
                (size.cost_micros, limits.day_cost_micros, today.cost_micros),
            )
            if most is not None
        ]


FINISH = (
    "[From the server, not from your user] Most of the budget of this run is used up. Finish now: save what must not "
    "be lost, book a follow-up if work is left and you have a tool for that, and say what you did. The run is stopped "
    "before the call that would exceed its budget."
)
