"""The budget of an agent: what a run and a day may cost, in tokens and money, and what is left of that."""

from collections.abc import Iterator
from dataclasses import dataclass

from wakeful.core.types import Budgets

_NEARLY = 0.8  # of a limit: the model is asked to finish


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage over some time; money in millionths of a dollar."""

    tokens: int
    cost_micros: int
    model_calls: int = 0
    runs: int = 0
    unpriced_runs: int = 0  # whose model has no known price: their cost is missing above


NOTHING = Spent(0, 0)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of an agent, and what has been spent of them."""

    limits: Budgets
    today: Spent  # by the agent's other runs
    run: Spent = NOTHING

    @property
    def is_spent(self) -> bool:
        """Whether no further model call is allowed."""
        return any(used >= most for used, most in self._limits())

    @property
    def is_nearly_spent(self) -> bool:
        """Whether the run has used most of its budget, or of what was left of the day's."""
        return any(used >= _NEARLY * most for used, most in self._limits())

    def has_room_for(self, calls: Spent) -> bool:
        """Whether calls of that size stay within every limit."""
        return all(used <= most for used, most in self._limits(calls))

    @property
    def has_day_limits(self) -> bool:
        return self.limits.day_tokens is not None or self.limits.day_cost_micros is not None

    @property
    def counts_money(self) -> bool:
        """Whether a model without a known price cannot be used."""
        return self.limits.run_cost_micros is not None or self.limits.day_cost_micros is not None

    @property
    def tokens_left(self) -> int | None:
        """What is left of the day's tokens; None: there is no limit."""
        return _left(self.limits.day_tokens, self.today.tokens + self.run.tokens)

    @property
    def cost_left(self) -> int | None:
        """What is left of the day's money, in millionths of a dollar; None: there is no limit."""
        return _left(self.limits.day_cost_micros, self.today.cost_micros + self.run.cost_micros)

    def _limits(self, more: Spent = NOTHING) -> Iterator[tuple[int, int]]:
        """For each limit: what this run has used of it, with some calls more, and how much of it the run may use."""
        limits, today = self.limits, self.today
        tokens, cost = self.run.tokens + more.tokens, self.run.cost_micros + more.cost_micros
        for used, most, before in (
            (tokens, limits.run_tokens, 0),
            (tokens, limits.day_tokens, today.tokens),
            (cost, limits.run_cost_micros, 0),
            (cost, limits.day_cost_micros, today.cost_micros),
        ):
            if most is not None:
                yield used, most - before


def _left(limit: int | None, used: int) -> int | None:
    return None if limit is None else max(0, limit - used)
