"""What a run may still use: model calls, tokens, money, and the same tool call again and again."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai.usage import RequestUsage

from wakeful.domain.types import Agent, Run, RunUsage
from wakeful.service.briefings import Briefing

_REPEATS = 3


class Budget:
    """Counts what a run uses. Checked before each model call, so the overshoot is one call at most."""

    def __init__(self, briefing: Briefing, run: Run, model: str) -> None:
        self._agent: Agent = briefing.agent
        self._spent_today = briefing.spent_today
        started = run.started_at or run.queued_at
        fresh = RunUsage(run_id=run.id, agent_id=run.agent_id, user_id=run.user_id, at=started, model=model)
        self.usage = replace(briefing.usage or fresh, model=model)

    def spent(self) -> str | None:
        """Return why there may be no further model call, if so."""
        usage, limits = self.usage, self._agent.budgets
        if usage.model_calls >= self._agent.max_iterations:
            return "iteration_limit"
        tokens, cost = usage.input_tokens + usage.output_tokens, usage.cost_micros or 0
        is_over = (
            _is_reached(limits.run_tokens, tokens)
            or _is_reached(limits.run_cost_micros, cost)
            or _is_reached(limits.day_tokens, self._spent_today.tokens + tokens)
            or _is_reached(limits.day_cost_micros, self._spent_today.cost_micros + cost)
        )
        return "budget" if is_over else None

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


class RepeatedCalls:
    """Notices a model that does the same thing and gets the same answer, over and over."""

    def __init__(self) -> None:
        self._last: tuple[str, Mapping[str, Any], str] | None = None
        self._times = 0

    def note(self, tool: str, args: Mapping[str, Any], result: str) -> bool:
        """Count a call. True: it is time to break off."""
        call = (tool, dict(args), result)
        self._times = self._times + 1 if call == self._last else 1
        self._last = call
        return self._times >= _REPEATS


def _is_reached(limit: int | None, used: int) -> bool:
    return limit is not None and used >= limit


NOTES: Mapping[str, str] = {
    "iteration_limit": "I stopped here because I reached my limit of model calls for one run.",
    "budget": "I stopped here because my budget is used up.",
    "repeated_calls": "I stopped here because I kept making the same call with the same result.",
}
