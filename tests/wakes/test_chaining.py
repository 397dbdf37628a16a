"""A run books, cancels and replaces wakes, also its own, and the engine keeps to it."""

import asyncio

import pytest

from harness import HOUR, MINUTE, NOON, SECOND, doing
from wakeful.timing.fire_rule import Facts, fire
from wakeful.timing.lifecycle import SlotTaken
from wakeful.wakes import firing

pytestmark = pytest.mark.both_stores


async def test_a_recall_books_the_next_one_in_its_own_slot(harness):
    session = await harness.session()
    first = await harness.book(session=session, scheduled_by="agent", at=NOON + MINUTE)
    booked = []

    async def book_again(run):
        booked.append(
            await harness.book(
                session=session, scheduled_by="agent", booked_by_run=run.id, at=harness.clock.now() + MINUTE
            )
        )

    harness.executor.by_wake[first.id] = doing(book_again)
    await harness.live_until(NOON + 3 * MINUTE)
    assert [run.status for run in await harness.runs_of(first)] == ["success"]
    assert [(run.status, run.nominal_at) for run in await harness.runs_of(booked[0])] == [
        ("success", NOON + 2 * MINUTE)
    ]


async def test_a_next_run_books_the_next_one_in_its_agents_slot(harness):
    first = await harness.book(kind="next_run", scheduled_by="agent", at=NOON + 5 * MINUTE)
    chain = [first]

    async def book_again(run):
        if len(chain) < 4:
            chain.append(
                await harness.book(
                    kind="next_run", scheduled_by="agent", booked_by_run=run.id, at=harness.clock.now() + 5 * MINUTE
                )
            )

    harness.executor.default = doing(book_again)
    await harness.live_until(NOON + HOUR)
    assert [(await harness.wake(wake)).status for wake in chain] == ["fired"] * 4
    assert [ran.at for ran in harness.executor.ran] == [NOON + number * 5 * MINUTE for number in (1, 2, 3, 4)]
    assert len({ran.run.session_id for ran in harness.executor.ran}) == 4


async def test_a_wake_booked_inside_a_run_outlives_that_runs_failure(harness):
    first = await harness.book(kind="next_run", at=NOON + MINUTE)
    booked = []

    async def book_and_fail(run):
        booked.append(await harness.book(kind="next_run", booked_by_run=run.id, at=NOON + HOUR))
        raise RuntimeError("no network")

    harness.executor.by_wake[first.id] = doing(book_and_fail)
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(first)).status == "failed"
    assert (await harness.wake(booked[0])).status == "pending"


@pytest.mark.parametrize("ends_with", [None, RuntimeError("no network")], ids=["success", "failure"])
async def test_a_recurring_wake_cancelled_inside_its_own_run_stays_cancelled(harness, ends_with):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE)

    async def cancel(run):
        await harness.node.wakes.cancel(wake.id, harness.user.id, "done")
        if ends_with is not None:
            raise ends_with

    harness.executor.by_wake[wake.id] = doing(cancel)
    await harness.live_until(NOON + 10 * MINUTE)
    ended = await harness.wake(wake)
    assert (ended.status, ended.reason, len(await harness.runs_of(wake))) == ("cancelled", "done", 1)


async def test_cancelling_inside_a_run_also_ends_the_occurrence_that_waits_behind_it(harness):
    wake = await harness.book(call_type="recurring", every=10 * SECOND, at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    await harness.turn_at(NOON + 10 * SECOND)
    await harness.node.wakes.cancel(wake.id, harness.user.id)
    await harness.let_through(gate)
    await harness.turn_at(NOON + 20 * SECOND)
    assert [(run.status, run.reason) for run in await harness.runs_of(wake)] == [
        ("success", None),
        ("skipped", "cancelled"),
    ]


async def test_a_recurring_wake_edited_inside_its_own_run_keeps_the_edit(harness):
    wake = await harness.book(call_type="recurring", every=MINUTE, at=NOON + MINUTE)
    harness.executor.by_wake[wake.id] = doing(
        lambda run: harness.change_wake(wake.id, {"every": HOUR, "nominal_at": NOON + HOUR})
    )
    await harness.turn_at(NOON + MINUTE)
    edited = await harness.wake(wake)
    assert (edited.status, edited.nominal_at, edited.every) == ("pending", NOON + HOUR, HOUR)


# ── A slot is taken, freed, replaced ────────────────────────────────────────────────────────────────────────────────


async def test_a_second_recall_is_refused_and_told_of_the_first(harness):
    session = await harness.session()
    first = await harness.book(session=session)
    with pytest.raises(SlotTaken) as refusal:
        await harness.book(session=session)
    assert refusal.value.pending.id == first.id
    assert first.id in refusal.value.message


async def test_a_recall_that_waits_in_the_queue_still_holds_its_slot(harness):
    session = await harness.session()
    first = await harness.book(session=session, at=NOON)
    await harness.node.engine.scheduler.turn()
    assert (await harness.wake(first)).status == "queued"
    with pytest.raises(SlotTaken):
        await harness.book(session=session)


async def test_a_next_run_takes_the_slot_from_the_one_before(harness):
    first = await harness.book(kind="next_run", at=NOON + MINUTE)
    second = await harness.book(kind="next_run", at=NOON + 2 * MINUTE)
    await harness.live_until(NOON + 3 * MINUTE)
    assert ((await harness.wake(first)).status, await harness.runs_of(first)) == ("superseded", [])
    assert (await harness.wake(second)).status == "fired"


async def test_a_next_run_booked_while_the_old_one_is_queued_supersedes_it_and_its_run(harness):
    first = await harness.book(kind="next_run", at=NOON)
    await harness.node.engine.scheduler.turn()
    second = await harness.book(kind="next_run", at=NOON + MINUTE)
    await harness.work()
    await harness.turn_at(NOON + MINUTE)
    assert (await harness.wake(first)).status == "superseded"
    assert [(run.status, run.reason) for run in await harness.runs_of(first)] == [("skipped", "superseded")]
    assert [ran.run.wake_id for ran in harness.executor.ran] == [second.id]


async def test_two_agents_have_two_slots(harness):
    other = await harness.add_agent()
    first = await harness.book(kind="next_run")
    second = await harness.book(kind="next_run", agent=other)
    assert {(await harness.wake(wake)).status for wake in (first, second)} == {"pending"}


# ── Changed between being read and being moved ──────────────────────────────────────────────────────────────────────


async def change(harness, wake, how):
    service, user, later = harness.node.wakes, harness.user.id, harness.clock.now() + HOUR
    if how == "edited":
        await service.edit(wake.id, user, {"nominal_at": later})
    elif how == "cancelled":
        await service.cancel(wake.id, user)
    else:
        await harness.book(kind="next_run", at=later)


@pytest.mark.parametrize(
    ("how", "status"), [("edited", "pending"), ("cancelled", "cancelled"), ("replaced", "superseded")]
)
async def test_a_verdict_about_a_wake_that_was_changed_meanwhile_changes_nothing(harness, how, status):
    wake = await harness.book(kind="next_run", at=NOON)
    [due] = await harness.node.store.write(lambda tx: tx.wakes.due(NOON, 10))
    verdict = fire(due.wake, Facts(agent_timezone="UTC"), NOON, harness.node.rules)
    await change(harness, wake, how)
    changed = await harness.wake(wake)
    await harness.node.store.write(lambda tx: firing.write_verdicts(tx, [verdict]))
    assert (await harness.wake(wake), changed.status) == (changed, status)
    assert await harness.runs_of(wake) == []


async def test_a_recall_replaced_between_read_and_claim_survives(harness):
    """The old one is cancelled and another booked in its slot; the old verdict must touch neither."""
    session = await harness.session()
    old = await harness.book(session=session, at=NOON)
    [due] = await harness.node.store.write(lambda tx: tx.wakes.due(NOON, 10))
    verdict = fire(due.wake, Facts(agent_timezone="UTC"), NOON, harness.node.rules)
    await harness.node.wakes.cancel(old.id, harness.user.id)
    new = await harness.book(session=session, at=NOON + MINUTE)
    await harness.node.store.write(lambda tx: firing.write_verdicts(tx, [verdict]))
    assert ((await harness.wake(old)).status, (await harness.wake(new)).status) == ("cancelled", "pending")
    await harness.turn_at(NOON + MINUTE)
    assert [ran.run.wake_id for ran in harness.executor.ran] == [new.id]


@pytest.mark.parametrize("how", ["edited", "cancelled", "replaced"])
async def test_changing_and_firing_at_the_same_moment_ends_as_one_or_the_other(harness, how):
    """A race: the instant of noon is either run, or was changed before; never both, never neither."""
    for _ in range(5):
        wake = await harness.book(kind="next_run", at=harness.clock.now())
        changing = asyncio.gather(change(harness, wake, how), return_exceptions=True)
        await harness.node.engine.scheduler.turn()
        [refusal] = await changing
        queued = [run for run in await harness.runs_of(wake) if run.status == "queued"]
        is_changed = (await harness.wake(wake)).status in ("pending", "cancelled", "superseded")
        assert bool(queued) is not is_changed
        assert (refusal is not None) is (bool(queued) and how == "edited")
        await harness.work()
        assert len([ran for ran in harness.executor.ran if ran.run.wake_id == wake.id]) == len(queued)
        harness.clock.advance(2 * HOUR)
        await harness.turn()
