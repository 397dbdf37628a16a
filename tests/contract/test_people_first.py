"""A person who is present gets a second after each run's end before the next queued wake starts."""

from contextlib import asynccontextmanager

import pytest

from wakeful.domain.runs.runs import SessionBusy
from world import HOUR, MINUTE, NOON, SECOND, World

HALF = SECOND / 2


@pytest.fixture
def backend_settings(backend_settings):
    """Nobody renews leases here, and some runs are at work for a while."""
    return backend_settings | {"lease_seconds": 3600}


async def book_three(world, session):
    """Book three messages for the same session and let the first of them run up to a gate."""
    wakes = [await world.book(kind="message", session=session, at=NOON + number * SECOND) for number in range(3)]
    gate = world.executor.by_wake[wakes[0].id] = world.gate()
    await world.turn_at(NOON + 5 * SECOND)
    assert await statuses(world, wakes) == ["running", "queued", "queued"]
    return wakes, gate


async def statuses(world, wakes):
    return [(await world.wake(wake)).status for wake in wakes]


async def ask(world, session, text="And me?"):
    return await world.node.runs.ask(session.id, world.user.id, text)


@asynccontextmanager
async def watching(world, session):
    async with world.node.presence.watching(session.id):
        yield


async def test_with_an_open_socket_the_next_wake_waits_a_second_and_a_message_in_it_goes_first(world):
    session = await world.session()
    async with watching(world, session):
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        await world.work()
        assert await statuses(world, wakes) == ["fired", "queued", "queued"]
        world.clock.advance(SECOND - SECOND / 1000)
        asked = await ask(world, session)
        await world.work()
        assert (await world.run(asked.id)).status == "success"
        assert await statuses(world, wakes) == ["fired", "queued", "queued"]


async def test_without_a_message_the_next_one_starts_after_that_second_by_itself(world):
    session = await world.session()
    async with watching(world, session):
        wakes, gate = await book_three(world, session)
        ended_at = world.clock.now()
        await world.let_through(gate)
        assert await world.turn() == ended_at + SECOND  # when the scheduler looks next
        await world.turn_at(ended_at + SECOND)
        assert await statuses(world, wakes) == ["fired", "fired", "queued"]
        await world.live_until(ended_at + MINUTE)
    assert [ran.at - ended_at for ran in world.executor.ran] == [0 * SECOND, SECOND, 2 * SECOND]


async def test_nobody_there_means_no_delay(world):
    session = await world.session()
    wakes, gate = await book_three(world, session)
    await world.let_through(gate)
    await world.work()
    assert await statuses(world, wakes) == ["fired"] * 3


async def test_whoever_has_left_delays_nothing(world):
    session = await world.session()
    async with watching(world, session), watching(world, session):
        pass
    wakes, gate = await book_three(world, session)
    await world.let_through(gate)
    await world.work()
    assert await statuses(world, wakes) == ["fired"] * 3


async def test_the_first_of_two_sockets_to_close_does_not_end_the_other_ones_presence(world):
    session = await world.session()
    async with watching(world, session):
        async with watching(world, session):
            pass
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        await world.work()
        assert await statuses(world, wakes) == ["fired", "queued", "queued"]


async def test_someone_in_another_session_of_the_agent_delays_nothing_here(world):
    session = await world.session()
    async with watching(world, await world.session()):
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        await world.work()
    assert await statuses(world, wakes) == ["fired"] * 3


@pytest.mark.parametrize(("ago", "is_held"), [(2 * MINUTE - 7 * SECOND, True), (2 * MINUTE, False)])
async def test_who_wrote_in_the_last_two_minutes_is_there_without_a_socket(world, ago, is_held):
    session = await world.session()
    world.clock.set(NOON - ago)
    await ask(world, session)
    await world.work()
    wakes, gate = await book_three(world, session)
    await world.let_through(gate)
    await world.work()
    assert (await statuses(world, wakes) == ["fired", "queued", "queued"]) is is_held


async def test_a_message_that_was_refused_counts_as_writing(world):
    session = await world.session()
    wakes, gate = await book_three(world, session)
    with pytest.raises(SessionBusy):
        await ask(world, session)
    await world.let_through(gate)
    await world.work()
    assert await statuses(world, wakes) == ["fired", "queued", "queued"]
    world.clock.advance(HALF)
    asked = await ask(world, session)
    await world.work()
    assert (await world.run(asked.id)).status == "success"


async def test_a_wake_that_falls_due_within_the_second_waits_too(world):
    session = await world.session()
    async with watching(world, session):
        async with world.talking(session):
            pass
        late = await world.book(kind="message", session=session, at=NOON + HALF)
        await world.turn_at(NOON + HALF)
        assert await statuses(world, [late]) == ["queued"]
        await world.turn_at(NOON + SECOND)
        assert await statuses(world, [late]) == ["fired"]


async def test_a_recall_that_queued_waits_too_and_is_never_lost(world):
    session = await world.session()
    async with watching(world, session):
        wake = await world.book(session=session, at=NOON)
        async with world.talking(session):
            for minutes in range(11):
                await world.turn_at(NOON + minutes * MINUTE)
            await world.node.presence.renew()
        await world.work()
        assert await statuses(world, [wake]) == ["queued"]
        asked = await ask(world, session)
        await world.work()
        assert (await world.run(asked.id)).status == "success"
        await world.live_until(world.clock.now() + MINUTE)
    assert await statuses(world, [wake]) == ["fired"]


async def test_a_persons_run_now_is_not_held(world):
    session = await world.session()
    async with watching(world, session):
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        await world.node.wakes.run_now(wakes[2].id, world.user.id)
        await world.work()
        assert await statuses(world, wakes) == ["fired", "queued", "fired"]


async def test_a_clock_that_was_set_back_holds_nothing_for_longer_than_a_second(world):
    session = await world.session()
    async with watching(world, session):
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        await world.work()
        world.clock.set(NOON - HOUR)
        await world.work()
        assert await statuses(world, wakes) == ["fired", "fired", "queued"]


async def test_presence_is_renewed_as_long_as_a_socket_is_open_and_ends_with_its_process(world):
    session = await world.session()
    async with watching(world, session):
        for minutes in range(1, 10):
            world.clock.set(NOON - HOUR + minutes * MINUTE)
            await world.node.presence.renew()
        world.clock.set(NOON)  # as if the process had been killed: nobody renews, nobody leaves
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        await world.work()
        assert await statuses(world, wakes) == ["fired"] * 3
        await world.node.presence.renew()
        later = await world.book(kind="message", session=session, at=world.clock.now())
        await world.turn()
        assert await statuses(world, [later]) == ["fired"]
        another = await world.book(kind="message", session=session, at=world.clock.now())
        await world.turn()
        assert await statuses(world, [another]) == ["queued"]


async def test_after_a_restart_the_run_is_taken_when_its_hold_ends(backend_settings):
    world = World(backend_settings)
    async with world.node.opened():
        await world.settle_in()
        session = await world.session()
        async with watching(world, session):
            wakes, gate = await book_three(world, session)
            await world.let_through(gate)
    world.node = world.another_node()
    async with world.node.opened():
        assert await world.turn() == world.clock.now() + SECOND
        assert await statuses(world, wakes) == ["fired", "queued", "queued"]
        world.clock.advance(SECOND)
        await world.turn()
        assert await statuses(world, wakes) == ["fired", "fired", "fired"]  # nobody is there any more


async def test_who_writes_without_a_pause_is_overtaken_once_in_ten_minutes(world):
    session = await world.session()
    async with watching(world, session):
        wakes, gate = await book_three(world, session)
        await world.let_through(gate)
        for seconds in range(10, 21 * 60, 30):
            world.clock.set(NOON + seconds * SECOND)
            await world.node.presence.renew()
            await ask(world, session)
            await world.work()
    began = {ran.run.wake_id: ran.at - NOON for ran in world.executor.ran}
    assert [began[wake.id] for wake in wakes] == [5 * SECOND, 610 * SECOND, 1210 * SECOND]


async def test_a_run_that_was_cut_off_for_good_gives_the_person_their_second_too(world):
    session = await world.session()
    async with watching(world, session):
        wakes, gate = await book_three(world, session)
        run = (await world.runs_of(wakes[0]))[0]
        await world.node.runs.stop(run.id, world.user.id)
        await world.crash()
        world.clock.advance(HOUR)
        await world.node.presence.renew()
        await world.node.engine.scheduler.turn()  # its lease has run out
        assert (await world.run(run.id)).status == "stopped"
        await world.work()
        assert await statuses(world, wakes) == ["fired", "queued", "queued"]
        gate.open()
