"""A day of wakes in the log: a line for each that fired or was held, each run's end and each recovery."""

import logging

import pytest

from harness import HOUR, MINUTE, Harness, eventually
from wakeful.core.events import StepSaved
from wakeful.core.types import RunUsage
from wakeful.telemetry.logs import EACH, Lines

pytestmark = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)  # where the store plays no part


@pytest.fixture
async def harness(backend_settings, caplog):
    caplog.set_level(logging.INFO, logger="wakeful")
    async with Harness(backend_settings).opened() as harness:
        yield harness


def lines(caplog, message: str) -> list[dict]:
    found: list[dict] = []
    for each in caplog.records:
        if each.message == message:
            lines = vars(each).get(EACH, Lines((), [()]))
            found += [{**vars(each), **fields} for fields in lines.as_dicts()]
    return found


async def test_a_wake_that_fires_and_the_end_of_its_run(harness, caplog):
    async def work(run, _steps, _stop):
        usage = RunUsage(
            run_id=run.id,
            agent_id=run.agent_id,
            user_id=run.user_id,
            at=run.queued_at,
            model="fast",
            input_tokens=120,
            output_tokens=30,
            cost_micros=2_500,
        )
        yield StepSaved(role="assistant", content="Said in private.", usage=usage, is_last=True)

    harness.executor.default = work
    wake = await harness.book(instructions="Asked in private.")
    await harness.turn_at(wake.nominal_at + MINUTE)

    async def is_logged() -> bool:
        return bool(lines(caplog, "run ended"))

    await eventually(is_logged)  # ends are logged together, a moment later
    [fired] = lines(caplog, "wake fired")
    [ended] = lines(caplog, "run ended")
    [run] = await harness.runs_of(wake)
    assert (fired["wake_id"], fired["run_id"], fired["late_seconds"]) == (wake.id, run.id, 60.0)
    assert (ended["status"], ended["wake_id"], ended["model"]) == ("success", wake.id, "fast")
    assert (ended["input_tokens"], ended["output_tokens"], ended["cost_dollars"]) == (120, 30, 0.0025)
    assert ended["seconds"] >= 0
    assert "private" not in caplog.text


async def test_a_hold_is_logged_once_with_its_reason_and_a_skipped_time_too(harness, caplog):
    wake = await harness.book(call_type="recurring", on_miss="skip")
    await harness.node.pauses.pause(harness.user.id, None, wake.nominal_at + 3 * HOUR)
    await harness.turn_at(wake.nominal_at)
    await harness.turn_at(wake.nominal_at + MINUTE)
    [held] = lines(caplog, "wake held")
    assert (held["wake_id"], held["reason"]) == (wake.id, "paused")
    other = await harness.book(call_type="recurring", on_miss="skip", agent=await harness.add_agent(name="Other"))
    await harness.node.pauses.resume(harness.user.id, None)
    await harness.turn_at(other.nominal_at + HOUR / 2)
    assert [(each["wake_id"], each["reason"]) for each in lines(caplog, "wake skipped")][-1] == (other.id, "missed")


async def test_a_recovery_is_logged(harness, caplog):
    wake = await harness.book()
    harness.executor.default = harness.gate()
    await harness.turn_at(wake.nominal_at)
    await harness.crash()
    await harness.node.engine.firing.recover(every_other_owner=True)
    [found] = lines(caplog, "run of a dead process recovered")
    assert (found["reason"], found["levelname"]) == ("resumed", "INFO")
