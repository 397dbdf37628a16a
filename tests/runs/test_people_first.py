"""A person who is present gets a second after each run's end before the next queued wake starts."""

from contextlib import asynccontextmanager

import pytest

from harness import HOUR, MINUTE, NOON, SECOND, Harness
from wakeful.sessions.service import SessionBusy

pytestmark = pytest.mark.both_stores

HALF = SECOND / 2


@pytest.fixture
def backend_settings(backend_settings):
    """Leases are not renewed here, and some runs execute for a while."""
    return backend_settings | {"lease_seconds": 3600}


async def book_three(harness, session):
    """Book three messages for the same session and let the first of them run up to a gate."""
    wakes = [await harness.book(kind="message", session=session, at=NOON + number * SECOND) for number in range(3)]
    gate = harness.executor.by_wake[wakes[0].id] = harness.gate()
    await harness.turn_at(NOON + 5 * SECOND)
    assert await statuses(harness, wakes) == ["running", "queued", "queued"]
    return wakes, gate


async def statuses(harness, wakes):
    return [(await harness.wake(wake)).status for wake in wakes]


async def ask(harness, session, text="And me?"):
    return await harness.node.runs.ask(session.id, harness.user.id, text)


@asynccontextmanager
async def watching(harness, session):
    async with harness.node.presence.watching(session.id):
        yield


async def test_with_an_open_socket_the_next_wake_waits_a_second_and_a_message_in_it_goes_first(harness):
    session = await harness.session()
    async with watching(harness, session):
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        await harness.work()
        assert await statuses(harness, wakes) == ["fired", "queued", "queued"]
        harness.clock.advance(SECOND - SECOND / 1000)
        asked = await ask(harness, session)
        await harness.work()
        assert (await harness.run(asked.id)).status == "success"
        assert await statuses(harness, wakes) == ["fired", "queued", "queued"]


async def test_without_a_message_the_next_one_starts_after_that_second_by_itself(harness):
    session = await harness.session()
    async with watching(harness, session):
        wakes, gate = await book_three(harness, session)
        ended_at = harness.clock.now()
        await harness.let_through(gate)
        assert await harness.turn() == ended_at + SECOND  # when the scheduler looks next
        await harness.turn_at(ended_at + SECOND)
        assert await statuses(harness, wakes) == ["fired", "fired", "queued"]
        await harness.live_until(ended_at + MINUTE)
    assert [ran.at - ended_at for ran in harness.executor.ran] == [0 * SECOND, SECOND, 2 * SECOND]


async def test_nobody_there_means_no_delay(harness):
    session = await harness.session()
    wakes, gate = await book_three(harness, session)
    await harness.let_through(gate)
    await harness.work()
    assert await statuses(harness, wakes) == ["fired"] * 3


async def test_whoever_has_left_delays_nothing(harness):
    session = await harness.session()
    async with watching(harness, session), watching(harness, session):
        pass
    wakes, gate = await book_three(harness, session)
    await harness.let_through(gate)
    await harness.work()
    assert await statuses(harness, wakes) == ["fired"] * 3


async def test_the_first_of_two_sockets_to_close_does_not_end_the_other_ones_presence(harness):
    session = await harness.session()
    async with watching(harness, session):
        async with watching(harness, session):
            pass
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        await harness.work()
        assert await statuses(harness, wakes) == ["fired", "queued", "queued"]


async def test_someone_in_another_session_of_the_agent_delays_nothing_here(harness):
    session = await harness.session()
    async with watching(harness, await harness.session()):
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        await harness.work()
    assert await statuses(harness, wakes) == ["fired"] * 3


@pytest.mark.parametrize(("ago", "is_held"), [(2 * MINUTE - 7 * SECOND, True), (2 * MINUTE, False)])
async def test_who_wrote_in_the_last_two_minutes_is_there_without_a_socket(harness, ago, is_held):
    session = await harness.session()
    harness.clock.set(NOON - ago)
    await ask(harness, session)
    await harness.work()
    wakes, gate = await book_three(harness, session)
    await harness.let_through(gate)
    await harness.work()
    assert (await statuses(harness, wakes) == ["fired", "queued", "queued"]) is is_held


async def test_a_message_that_was_refused_counts_as_writing(harness):
    session = await harness.session()
    wakes, gate = await book_three(harness, session)
    with pytest.raises(SessionBusy):
        await ask(harness, session)
    await harness.let_through(gate)
    await harness.work()
    assert await statuses(harness, wakes) == ["fired", "queued", "queued"]
    harness.clock.advance(HALF)
    asked = await ask(harness, session)
    await harness.work()
    assert (await harness.run(asked.id)).status == "success"


async def test_a_wake_that_falls_due_within_the_second_waits_too(harness):
    session = await harness.session()
    async with watching(harness, session):
        async with harness.talking(session):
            pass
        late = await harness.book(kind="message", session=session, at=NOON + HALF)
        await harness.turn_at(NOON + HALF)
        assert await statuses(harness, [late]) == ["queued"]
        await harness.turn_at(NOON + SECOND)
        assert await statuses(harness, [late]) == ["fired"]


async def test_a_recall_that_queued_waits_too_and_is_never_lost(harness):
    session = await harness.session()
    async with watching(harness, session):
        wake = await harness.book(session=session, at=NOON)
        async with harness.talking(session):
            for minutes in range(11):
                await harness.turn_at(NOON + minutes * MINUTE)
            await harness.node.presence.renew()
        await harness.work()
        assert await statuses(harness, [wake]) == ["queued"]
        asked = await ask(harness, session)
        await harness.work()
        assert (await harness.run(asked.id)).status == "success"
        await harness.live_until(harness.clock.now() + MINUTE)
    assert await statuses(harness, [wake]) == ["fired"]


async def test_a_persons_run_now_is_not_held(harness):
    session = await harness.session()
    async with watching(harness, session):
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        await harness.node.wakes.run_now(wakes[2].id, harness.user.id)
        await harness.work()
        assert await statuses(harness, wakes) == ["fired", "queued", "fired"]


async def test_a_clock_that_was_set_back_holds_nothing_for_longer_than_a_second(harness):
    session = await harness.session()
    async with watching(harness, session):
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        await harness.work()
        harness.clock.set(NOON - HOUR)
        await harness.work()
        assert await statuses(harness, wakes) == ["fired", "fired", "queued"]


async def test_presence_is_renewed_as_long_as_a_socket_is_open_and_ends_with_its_process(harness):
    session = await harness.session()
    async with watching(harness, session):
        for minutes in range(1, 10):
            harness.clock.set(NOON - HOUR + minutes * MINUTE)
            await harness.node.presence.renew()
        harness.clock.set(NOON)  # as if the process had been killed: nobody renews, nobody leaves
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        await harness.work()
        assert await statuses(harness, wakes) == ["fired"] * 3
        await harness.node.presence.renew()
        later = await harness.book(kind="message", session=session, at=harness.clock.now())
        await harness.turn()
        assert await statuses(harness, [later]) == ["fired"]
        another = await harness.book(kind="message", session=session, at=harness.clock.now())
        await harness.turn()
        assert await statuses(harness, [another]) == ["queued"]


async def test_after_a_restart_the_run_is_taken_when_its_hold_ends(backend_settings):
    async with Harness(backend_settings).opened() as harness:
        session = await harness.session()
        async with watching(harness, session):
            wakes, gate = await book_three(harness, session)
            await harness.let_through(gate)
    harness.node = harness.another_node()
    async with harness.node.opened():
        assert await harness.turn() == harness.clock.now() + SECOND
        assert await statuses(harness, wakes) == ["fired", "queued", "queued"]
        harness.clock.advance(SECOND)
        await harness.turn()
        assert await statuses(harness, wakes) == ["fired", "fired", "fired"]  # nobody is there any more


async def test_who_writes_without_a_pause_is_overtaken_once_in_ten_minutes(harness):
    session = await harness.session()
    async with watching(harness, session):
        wakes, gate = await book_three(harness, session)
        await harness.let_through(gate)
        for seconds in range(10, 21 * 60, 30):
            harness.clock.set(NOON + seconds * SECOND)
            await harness.node.presence.renew()
            await ask(harness, session)
            await harness.work()
    began = {ran.run.wake_id: ran.at - NOON for ran in harness.executor.ran}
    assert [began[wake.id] for wake in wakes] == [5 * SECOND, 610 * SECOND, 1210 * SECOND]


async def test_a_run_that_was_cut_off_for_good_gives_the_person_their_second_too(harness):
    session = await harness.session()
    async with watching(harness, session):
        wakes, gate = await book_three(harness, session)
        run = (await harness.runs_of(wakes[0]))[0]
        await harness.node.runs.stop(run.id, harness.user.id)
        await harness.crash()
        harness.clock.advance(HOUR)
        await harness.node.presence.renew()
        await harness.node.engine.scheduler.turn()  # its lease has run out
        assert (await harness.run(run.id)).status == "stopped"
        await harness.work()
        assert await statuses(harness, wakes) == ["fired", "queued", "queued"]
        gate.open()
