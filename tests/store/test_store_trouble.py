"""A store that is unavailable: errors, readiness, log, and no run loses an attempt or its lease."""

import asyncio
import logging
import math

import pytest

from harness import MINUTE, NOON, Harness, doing, eventually
from wakeful.core.errors import StoreBusy, StoreUnavailable
from wakeful.core.events import StepSaved
from wakeful.store.drivers.postgres import PostgresDatabase
from wakeful.store.errors import StoreFull, StoreReadOnly

pytestmark = pytest.mark.both_stores

# ── What PostgreSQL has, in words ───────────────────────────────────────────────────────────────────────────────────

REFUSALS = {
    "53100": (StoreFull, "disk that holds PostgreSQL's data is full.*Free some space"),
    "25006": (StoreReadOnly, "PostgreSQL is read-only.*standby.*default_transaction_read_only"),
    "53200": (StoreUnavailable, "PostgreSQL is out of memory.*Give its machine more memory"),
    "53300": (StoreUnavailable, "no connection left for this server.*Raise max_connections"),
    "53400": (StoreUnavailable, "run out of a resource.*Its log says which"),
    "57014": (StoreUnavailable, "cut off a statement.*statement_timeout"),
    "55P03": (StoreBusy, "has not released it in time.*Try again then"),
    "58030": (StoreUnavailable, "cannot use its files.*Look at its disk"),
    "42501": (StoreUnavailable, "does not let the user of this server do this.*owner of its tables"),
}


def refuse_writes(table: str, sqlstate: str, *, on: str = "INSERT") -> str:
    """Have PostgreSQL refuse to write a table, with an error of its own."""
    return f"""
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not do it' USING ERRCODE = '{sqlstate}'; END $$;
    CREATE TRIGGER refuse BEFORE {on} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse();
    """


def accept_writes(table: str) -> str:
    return f"DROP TRIGGER refuse ON {table}; DROP FUNCTION refuse();"


@pytest.fixture
async def on_postgres(swept_postgres_url, tmp_path):
    async with Harness(
        {"data_dir": tmp_path, "config_dir": tmp_path, "database_url": swept_postgres_url}
    ).opened() as harness:
        yield harness


async def test_a_start_that_postgresql_does_not_answer_says_so(swept_postgres_url):
    database = PostgresDatabase(swept_postgres_url)
    await database.open()
    try:
        with pytest.raises(StoreUnavailable):
            async with database.only_one_node():
                raise StoreUnavailable from TimeoutError()
    finally:
        await database.close()


@pytest.mark.parametrize("sqlstate", REFUSALS)
async def test_what_postgresql_refuses_is_named_with_what_to_do(on_postgres, sqlstate):
    kind, words = REFUSALS[sqlstate]
    harness = on_postgres
    await harness.sql(refuse_writes("sessions", sqlstate))
    try:
        with pytest.raises(kind, match=words) as refused:
            await harness.session()
    finally:
        await harness.sql(accept_writes("sessions"))
    assert not refused.value.is_in_doubt
    assert (await harness.session()).id


async def test_a_problem_of_the_store_makes_the_node_unready_and_is_logged_once(on_postgres, caplog):
    harness = on_postgres
    await harness.sql(refuse_writes("sessions", "53200"))
    try:
        for _ in range(20):
            with pytest.raises(StoreUnavailable):
                await harness.session()
    finally:
        await harness.sql(accept_writes("sessions"))
    [problem] = harness.node.engine.readiness().problems
    assert "out of memory" in problem
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.message for record in said] == ["store unavailable"]
    assert "out of memory" in said[0].problem
    assert said[0].exc_info is None


# ── No run pays for it ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_that_meets_an_absent_store_is_released_untried(harness):
    wake = await harness.book(at=NOON)

    async def look(run):
        if len(harness.executor.ran) == 1:
            raise StoreUnavailable("The database does not answer.")

    harness.executor.by_wake[wake.id] = doing(look)
    await harness.turn()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.attempt, len(harness.executor.ran)) == ("success", None, 1, 2)


async def test_what_it_had_saved_is_not_done_again(harness):
    wake = await harness.book(at=NOON)

    async def save_and_look(run, steps, stop):
        if not steps:
            yield StepSaved(role="assistant", content="one")
            raise StoreUnavailable("The database does not answer.")

    harness.executor.by_wake[wake.id] = save_and_look
    await harness.turn()
    assert [ran.steps for ran in harness.executor.ran] == [[], ["one"]]


async def test_time_spent_waiting_for_the_store_is_not_the_runs_time_limit(on_postgres):
    harness = on_postgres
    hasty = await harness.add_agent(run_limit=MINUTE / 60)
    wake = await harness.book(agent=hasty, at=NOON)

    async def save(run, steps, stop):
        if not steps:
            yield StepSaved(role="assistant", content="one")

    harness.executor.by_wake[wake.id] = save
    await harness.sql(refuse_writes("messages", "53100"))
    try:
        await harness.node.engine.scheduler.turn()
        await harness.node.engine.runner.turn()

        async def is_over_limit() -> bool:
            return harness.node.engine.runner.active == 0

        await eventually(is_over_limit, 10)
    finally:
        await harness.sql(accept_writes("messages"))
    await harness.work()
    [run] = await harness.runs_of(wake)
    assert (run.status, run.reason, run.attempt) == ("success", None, 1)


async def test_leases_that_nobody_could_renew_are_as_good_as_new(on_postgres):
    """The store was read-only for longer than a lease, and the run has been executing all the time."""
    harness = on_postgres
    wake = await harness.book(at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    claims = harness.node.engine.runner.claims
    connection = await claims.open_heartbeat()
    await claims.renew(connection)
    await harness.sql(refuse_writes("runs", "25006", on="UPDATE"))
    harness.clock.set(NOON + claims.lease / 3)
    with pytest.raises(StoreReadOnly):
        await claims.renew(connection)
    await harness.sql(accept_writes("runs"))
    harness.clock.set(NOON + 2 * claims.lease)
    await harness.node.engine.scheduler.turn()  # it does not take the run for one whose owner is dead
    [run] = await harness.runs_of(wake)
    assert run.status == "running"
    assert await claims.renew(connection) == {(run.id, run.fence)}
    await connection.close()
    await harness.let_through(gate)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.attempt, run.fence) == ("success", 1, 1)


async def test_a_run_may_end_before_the_first_heartbeat_after_the_outage(on_postgres):
    harness = on_postgres
    wake = await harness.book(at=NOON)
    gate = harness.executor.by_wake[wake.id] = harness.gate()
    await harness.turn()
    claims = harness.node.engine.runner.claims
    connection = await claims.open_heartbeat()
    await claims.renew(connection)
    await harness.sql(refuse_writes("runs", "25006", on="UPDATE"))
    with pytest.raises(StoreReadOnly):
        await claims.renew(connection)
    await connection.close()
    await harness.sql(accept_writes("runs"))
    harness.clock.set(NOON + 2 * claims.lease)
    await harness.let_through(gate)
    [run] = await harness.runs_of(wake)
    assert (run.status, run.attempt, run.fence) == ("success", 1, 1)


async def test_after_an_outage_others_get_the_time_to_renew_before_they_count_as_dead(on_postgres):
    harness = on_postgres
    wake = await harness.book(at=NOON)
    await harness.node.engine.scheduler.turn()
    claims = harness.node.engine.runner.claims
    async with (other := harness.another_node()).opened():
        gate = harness.executor.by_wake[wake.id] = harness.gate()
        await other.engine.runner.turn()
        while not gate.is_holding:  # noqa: ASYNC110  (it moves by itself)
            await asyncio.sleep(0.001)
        other.engine.runner.compare(math.inf, set())  # it dies
        await other.engine.runner.idle()
        del harness.executor.by_wake[wake.id]
    connection = await claims.open_heartbeat()
    await harness.sql(refuse_writes("runs", "25006", on="UPDATE"))
    with pytest.raises(StoreReadOnly):
        await claims.renew(connection)
    await harness.sql(accept_writes("runs"))
    harness.clock.set(NOON + 2 * claims.lease)
    await claims.renew(connection)
    await connection.close()
    await harness.turn()
    assert [run.status for run in await harness.runs_of(wake)] == ["running"]
    await harness.turn_at(NOON + 2 * claims.lease + claims.lease / 3)
    assert [(run.status, run.attempt) for run in await harness.runs_of(wake)] == [("success", 2)]
