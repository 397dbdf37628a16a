"""The budget of an agent: limits of a run and of a day, against what was spent."""

import pytest

from wakeful.core.budget import NOTHING, Budget, Spent
from wakeful.core.types import Budgets

RUN = Budgets(run_tokens=1_000, run_cost_micros=500)
DAY = Budgets(day_tokens=1_000, day_cost_micros=500)
NONE = Budgets()


@pytest.mark.parametrize(
    ("limits", "today", "run", "is_nearly_spent", "is_spent"),
    [
        pytest.param(NONE, Spent(10**9, 10**9), Spent(10**9, 10**9), False, False, id="no limit"),
        pytest.param(RUN, NOTHING, Spent(799, 0), False, False, id="a run below four fifths"),
        pytest.param(RUN, NOTHING, Spent(800, 0), True, False, id="a run at four fifths"),
        pytest.param(RUN, NOTHING, Spent(999, 0), True, False, id="a run just below its limit"),
        pytest.param(RUN, NOTHING, Spent(1_000, 0), True, True, id="a run at its limit"),
        pytest.param(RUN, NOTHING, Spent(0, 500), True, True, id="a run at its limit in money"),
        pytest.param(RUN, Spent(10**9, 10**9), NOTHING, False, False, id="other runs do not count for a run's limit"),
        pytest.param(DAY, Spent(900, 0), Spent(79, 0), False, False, id="below four fifths of what the day has left"),
        pytest.param(DAY, Spent(900, 0), Spent(80, 0), True, False, id="four fifths of what the day has left"),
        pytest.param(DAY, Spent(900, 0), Spent(100, 0), True, True, id="the day's limit with other runs"),
        pytest.param(DAY, Spent(0, 500), NOTHING, True, True, id="spent by other runs"),
    ],
)
def test_a_budget_is_spent_at_its_limit_and_nearly_at_four_fifths(limits, today, run, is_nearly_spent, is_spent):
    budget = Budget(limits, today, run)
    assert (budget.is_nearly_spent, budget.is_spent) == (is_nearly_spent, is_spent)


@pytest.mark.parametrize(("calls", "fits"), [(Spent(100, 0), True), (Spent(101, 0), False), (Spent(0, 401), False)])
def test_calls_fit_up_to_the_limit(calls, fits):
    assert Budget(DAY, Spent(500, 100), Spent(400, 0)).has_room_for(calls) == fits


@pytest.mark.parametrize(
    ("limits", "spent", "tokens_left", "cost_left"),
    [(DAY, Spent(300, 200), 700, 300), (DAY, Spent(2_000, 501), 0, 0), (RUN, Spent(300, 200), None, None)],
)
def test_what_is_left_of_the_day(limits, spent, tokens_left, cost_left):
    budget = Budget(limits, today=spent)
    assert (budget.tokens_left, budget.cost_left) == (tokens_left, cost_left)


@pytest.mark.parametrize(("limits", "counts"), [(RUN, True), (DAY, True), (Budgets(day_tokens=1), False)])
def test_a_limit_in_money_needs_prices(limits, counts):
    assert Budget(limits, NOTHING).counts_money == counts
