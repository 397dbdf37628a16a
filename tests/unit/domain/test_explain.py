"""The chain of decisions about a wake."""

from harness import HOUR, NOON, SECOND
from wakeful.domain.bounds.limits import Rules
from wakeful.domain.wakes import edits, explain
from wakeful.domain.wakes.create import create


def test_a_booking_comes_first_even_if_another_node_ended_it_by_an_earlier_clock():
    wake = create(
        kind="next_run",
        agent_id="agent",
        user_id="user",
        session_id=None,
        call_type="once",
        instructions="Read notes.txt.",
        timezone="UTC",
        scheduled_by="user",
        at=NOON + HOUR,
        now=NOON,
        rules=Rules(),
    )
    replaced = edits.supersede(wake, NOON - SECOND)
    assert [said.code for said in explain.explain(replaced, [], [])] == ["booked", "wake_superseded"]
