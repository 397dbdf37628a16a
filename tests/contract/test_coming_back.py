"""Runs that a crash cut off come back one at a time, and whatever else waits keeps none of them from it."""

from world import MINUTE, SECOND, World


async def begin(world: World, **request) -> object:
    """Have a wake's run at work."""
    gate = world.executor.default = world.gate()
    wake = await world.book(**{"kind": "message", "at": world.clock.now()} | request)
    await world.turn()
    [run] = await world.runs_of(wake)
    assert (run.status, gate.is_holding) == ("running", 1)
    return wake


async def lose_all(world: World) -> None:
    """The process dies, and its leases run out; the next one does not wait."""
    await world.crash()
    world.executor.default = None
    world.clock.advance(MINUTE)
    await world.node.engine.scheduler.turn()


async def statuses(world: World, *wakes) -> list[str]:
    return [run.status for wake in wakes for run in await world.runs_of(wake)]


async def test_two_of_one_session_do_not_wait_for_each_other(world):
    """The one was queued first, the other was planned first."""
    session = await world.session()
    queued_first = await world.book(session=session, kind="message", at=world.clock.now())
    await world.node.engine.scheduler.turn()
    world.clock.advance(-MINUTE)
    planned_first = await world.book(session=session, kind="message", at=world.clock.now())
    await world.node.engine.scheduler.turn()
    await world.sql("UPDATE runs SET is_resuming = 1, attempt = 1, fence = 1, started_at = queued_at")

    for _ in range(3):
        await world.turn()
    assert await statuses(world, queued_first, planned_first) == ["success", "success"]


async def test_what_was_cut_off_goes_on_before_anything_else_begins_in_its_session(world):
    session = await world.session()
    begun = await begin(world, session=session)
    await lose_all(world)
    world.clock.advance(-5 * MINUTE)
    planned_earlier = await world.book(session=session, kind="message", at=world.clock.now())
    world.executor.ran.clear()
    for _ in range(3):
        await world.turn()
    assert [ran.run.wake_id for ran in world.executor.ran] == [begun.id, planned_earlier.id]


async def test_a_wake_that_a_pause_holds_keeps_nothing_that_had_begun_from_coming_back(world):
    other = await world.add_agent()
    session = await world.session()
    begun = await begin(world, session=session)
    world.clock.advance(SECOND)
    elsewhere = await begin(world, agent=other)
    world.clock.advance(-MINUTE)
    waiting = await world.book(session=session, kind="message", at=world.clock.now())
    await world.node.engine.scheduler.turn()
    await world.node.pauses.pause(world.user.id, world.agent.id, None)
    world.clock.advance(MINUTE)
    await lose_all(world)
    assert await statuses(world, begun, elsewhere, waiting) == ["queued", "queued", "queued"]

    for _ in range(3):
        await world.turn()
    assert await statuses(world, begun, elsewhere, waiting) == ["success", "success", "queued"]


async def test_a_users_run_and_a_headless_one_do_not_come_back_together(world):
    begun = await begin(world)
    world.clock.advance(SECOND)
    await begin(world, agent=await world.add_agent())
    await lose_all(world)
    await world.sql(f"UPDATE runs SET trigger = 'message' WHERE wake_id = '{begun.id}'")
    now = world.clock.now()

    taken = await world.node.store.write(
        lambda tx: tx.runs.claim("me", now, MINUTE, messages=9, headless=9, rules=world.node.rules)
    )
    assert [claimed.run.wake_id for claimed in taken] == [begun.id]
