"""The contract of the store, on each database."""

import asyncio
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import apsw
import asyncpg
import pytest

from harness import DAY, HOUR, MINUTE, NOON, Harness
from wakeful.core import ids
from wakeful.core.errors import StoreUnavailable
from wakeful.core.events import News, SessionChanged, WakeChanged, WakeDueSooner
from wakeful.core.records import Outcome
from wakeful.core.types import Rules, User
from wakeful.datadir.files import STORE_FILE
from wakeful.store.errors import BrokenReference
from wakeful.store.wakes import NoSuchWake

pytestmark = pytest.mark.both_stores

RECALL_COLUMNS = [
    "id", "session_id", "call_type", "trigger_at", "interval_seconds", "internal_comment", "additional_context_message",
    "status", "created_at", "updated_at",
]  # fmt: skip


class Slip(Exception):
    """An error that a work function raises."""


def someone(name: str) -> User:
    return User(id=ids.new_id(), name=name, role="user", created_at=NOON)


def add(user: User):
    return lambda tx: tx.agents.add_user(user)


async def find(store, user: User) -> User | None:
    return await store.read(lambda tx: tx.agents.user(user.id))


async def read_rows(harness: Harness, query: str) -> list[dict]:
    """Ask the database itself, as a person with its own shell would."""
    if "database_url" in harness.settings:
        connection = await asyncpg.connect(harness.settings["database_url"])
        try:
            return [dict(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()
    # With the same library as the store: a second copy of SQLite in one process would undo the first one's locks.
    with closing(apsw.Connection(str(Path(harness.settings["data_dir"]) / STORE_FILE))) as connection:
        connection.row_trace = lambda cursor, row: dict(zip([c[0] for c in cursor.get_description()], row, strict=True))
        return list(connection.execute(query))


@pytest.fixture
def backend_settings(backend_settings):
    """Plain, so that a test can look into the file by itself."""
    return backend_settings | {"store_encryption": False}


@pytest.fixture
def store(harness):
    return harness.node.store


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_written_is_read(store):
    user = someone("Grace")
    await store.write(add(user))
    assert await find(store, user) == user


async def test_many_writes_at_once_are_all_kept(store):
    users = [someone(f"user {number}") for number in range(300)]
    await asyncio.gather(*[store.write(add(user)) for user in users])
    assert [await find(store, user) for user in users] == users


async def test_a_write_that_fails_changes_nothing_and_leaves_its_neighbours_alone(store):
    users = [someone(f"user {number}") for number in range(60)]
    slips = set(users[20:40:5])

    async def work(tx, user):
        await tx.agents.add_user(user)
        if user in slips:
            raise Slip(user.name)
        return user.name

    answers = await asyncio.gather(
        *[store.write(lambda tx, user=user: work(tx, user)) for user in users], return_exceptions=True
    )

    for user, answer in zip(users, answers, strict=True):
        if user in slips:
            assert isinstance(answer, Slip)
            assert str(answer) == user.name
            assert await find(store, user) is None
        else:
            assert answer == user.name
            assert await find(store, user) == user


async def test_a_row_that_does_not_fit_fails_alone(harness, store):
    users = [someone(f"user {number}") for number in range(10)]
    orphan = replace(harness.make_agent(), user_id="nobody")
    twin = users[0]
    answers = await asyncio.gather(
        *[store.write(add(user)) for user in users],
        store.write(lambda tx: tx.agents.add(orphan)),
        store.write(add(twin)),
        return_exceptions=True,
    )
    assert answers[:10] == [None] * 10
    assert isinstance(answers[10], BrokenReference)
    assert isinstance(answers[11], BrokenReference)
    assert [await find(store, user) for user in users] == users


async def test_a_caller_who_gives_up_takes_nobody_along(store):
    users = [someone(f"user {number}") for number in range(30)]
    writes = [asyncio.create_task(store.write(add(user))) for user in users]
    await asyncio.sleep(0)
    writes[7].cancel()
    answers = await asyncio.gather(*writes, return_exceptions=True)
    assert isinstance(answers[7], asyncio.CancelledError)
    assert [await find(store, user) for user in users if user is not users[7]] == users[:7] + users[8:]


async def test_the_next_write_is_none_the_worse_for_one_that_failed(store):
    async def slip(tx):
        await tx.agents.add_user(someone("Nobody"))
        raise Slip

    with pytest.raises(Slip):
        await store.write(slip)
    await store.write(add(user := someone("Grace")))
    assert await find(store, user) == user


async def test_writes_that_belong_together_are_kept_or_dropped_together(harness, store):
    user, agent = someone("Grace"), harness.make_agent()

    async def work(tx):
        await tx.agents.add_user(user)
        await tx.agents.add(replace(agent, user_id="nobody"))

    with pytest.raises(BrokenReference):
        await store.write(work)
    assert await find(store, user) is None


async def test_a_read_does_not_find_what_was_rolled_back_while_it_waited(store):
    user = someone("Grace")

    async def slip(tx):
        await tx.agents.add_user(user)
        raise Slip

    answers = await asyncio.gather(store.write(slip), *[find(store, user) for _ in range(20)], return_exceptions=True)
    assert answers[1:] == [None] * 20


async def test_a_closed_store_says_so(harness, store):
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.write(add(someone("Grace")))
    with pytest.raises(StoreUnavailable, match="closed"):
        await find(store, someone("Grace"))


async def test_what_was_written_is_there_when_the_store_is_opened_again(harness, store):
    wake = await harness.book()
    await store.close()
    await store.open(harness.clock.now())
    assert await harness.wake(wake) == wake


async def test_somebody_elses_wake_is_not_there(harness):
    wake = await harness.book()
    stranger = someone("Mallory")
    await harness.node.agents.add_user(stranger)
    with pytest.raises(NoSuchWake):
        await harness.node.wakes.get(wake.id, stranger.id)
    with pytest.raises(NoSuchWake):
        await harness.node.wakes.cancel(wake.id, stranger.id)
    assert (await harness.wake(wake)).status == "pending"


# ── News ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Listener:
    """A subscriber that reads the announced row at once."""

    def __init__(self, store, look):
        self.heard: list[News] = []
        self.found: list[object] = []
        self._look = look
        self._looking: set[asyncio.Task] = set()
        self._told = asyncio.Event()
        for kind in (WakeChanged, WakeDueSooner):
            store.on(kind, self)

    def __call__(self, news: News) -> None:
        self.heard.append(news)
        self._looking.add(asyncio.create_task(self._look_now()))

    async def _look_now(self) -> None:
        self.found.append(await self._look())
        self._told.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self._told.wait(), timeout=5)
        await asyncio.gather(*self._looking)


async def test_whoever_hears_of_a_wake_finds_it(harness, store):
    session = await harness.session()
    listener = Listener(store, lambda: store.read(lambda tx: tx.wakes.of_session(session.id, 50)))
    wake = await harness.book(session=session, call_type="immediate")
    await listener.wait()
    assert listener.heard == [WakeChanged(wake.id, "scheduled", "pending", wake.nominal_at), WakeDueSooner()]
    assert listener.found[0] == [wake]


async def test_what_is_far_off_is_no_news(harness, store):
    listener = Listener(store, harness.session)
    await harness.book(at=harness.clock.now() + HOUR)
    await asyncio.sleep(0.2)
    assert WakeDueSooner() not in listener.heard


async def test_nobody_hears_of_what_was_rolled_back(harness, store):
    booked = await harness.book()
    listener = Listener(store, harness.session)
    wake = replace(booked, id=ids.new_id(), slot=None, attempt_at=harness.clock.now())

    async def slip(tx):
        await tx.wakes.add([wake])
        raise Slip

    answers = await asyncio.gather(store.write(slip), store.write(add(someone("Grace"))), return_exceptions=True)
    await asyncio.sleep(0.2)
    assert isinstance(answers[0], Slip)
    assert listener.heard == []


# ── PostgreSQL: several nodes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def two_nodes(postgres_url, tmp_path):
    settings = {"data_dir": tmp_path, "config_dir": tmp_path, "database_url": postgres_url}
    harness = Harness(settings)
    other = harness.another_node()
    async with harness.node.opened(), other.opened():
        await harness.settle_in()
        yield harness, other


async def test_another_node_hears_and_finds(two_nodes):
    harness, other = two_nodes
    session = await harness.session()
    listener = Listener(other.store, lambda: other.store.read(lambda tx: tx.wakes.of_session(session.id, 50)))
    await wait_until_listening(harness.settings["database_url"], 2)
    wake = await harness.book(session=session, call_type="immediate")
    await listener.wait()
    assert set(listener.heard) == {WakeChanged(wake.id, "scheduled", "pending", wake.nominal_at), WakeDueSooner()}
    assert listener.found[-1] == [wake]


async def test_a_node_hears_its_own_news_once(two_nodes):
    harness, other = two_nodes
    await wait_until_listening(harness.settings["database_url"], 2)
    here: asyncio.Queue[SessionChanged] = asyncio.Queue()
    there: asyncio.Queue[SessionChanged] = asyncio.Queue()
    harness.node.store.on(SessionChanged, here.put_nowait)
    other.store.on(SessionChanged, there.put_nowait)
    one = await harness.session()
    assert here.get_nowait() == SessionChanged(one.id)
    assert await asyncio.wait_for(there.get(), timeout=5) == SessionChanged(one.id)
    two = await other.sessions.open(harness.agent.id, harness.user.id)
    # NOTIFY keeps the order of the commits, so the first one has not come again.
    assert await asyncio.wait_for(here.get(), timeout=5) == SessionChanged(two.id)


async def test_a_read_sees_one_state_of_things_while_another_node_writes(two_nodes):
    harness, other = two_nodes
    user = someone("Grace")

    async def look_twice(tx):
        before = await tx.agents.user(user.id)
        await other.store.write(add(user))
        return before, await tx.agents.user(user.id)

    assert await harness.node.store.read(look_twice) == (None, None)
    assert await find(harness.node.store, user) == user


async def test_two_nodes_that_take_the_same_slot_agree_on_who_has_it(two_nodes):
    harness, other = two_nodes
    session = await harness.session()
    first, second = harness, Harness(harness.settings)
    second.node, second.user, second.agent = other, harness.user, harness.agent
    for _ in range(20):
        answers = await asyncio.gather(
            first.book(session=session), second.book(session=session), return_exceptions=True
        )
        booked = [answer for answer in answers if not isinstance(answer, Exception)]
        assert len(booked) == 1
        await harness.node.wakes.cancel(booked[0].id, harness.user.id)


async def wait_until_listening(url: str, nodes: int) -> None:
    connection = await asyncpg.connect(url)
    try:
        for _ in range(500):
            listening = await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
            if listening >= nodes:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{listening} nodes listen")
    finally:
        await connection.close()


# ── The recalls' own view ───────────────────────────────────────────────────────────────────────────────────────────


async def recall_row(harness: Harness, wake) -> dict:
    [row] = await read_rows(harness, f"SELECT * FROM session_recalls WHERE id = '{wake.id}'")
    return row


def instant(shown: object) -> datetime:
    return shown if isinstance(shown, datetime) else datetime.fromisoformat(str(shown))


async def test_session_recalls_has_the_columns_of_its_door(harness):
    session = await harness.session()
    harness.clock.advance(MINUTE)
    wake = await harness.book(session=session, call_type="recurring", every=2 * HOUR, comment="look again")
    row = await recall_row(harness, wake)
    assert list(row) == RECALL_COLUMNS
    assert row["session_id"] == session.id
    assert row["call_type"] == "recurring"
    assert instant(row["trigger_at"]) == wake.nominal_at
    assert row["interval_seconds"] == 7200
    assert row["internal_comment"] == "look again"
    assert row["additional_context_message"] == wake.instructions
    assert instant(row["created_at"]) == instant(row["updated_at"]) == wake.created_at


async def test_session_recalls_shows_every_status_as_its_door_calls_it(harness):
    async def shown(wake):
        return (await recall_row(harness, wake))["status"]

    wake = await harness.book(call_type="immediate")
    assert await shown(wake) == "pending"

    await harness.node.engine.scheduler.turn()
    assert (await harness.wake(wake)).status == "queued"
    assert await shown(wake) == "pending"

    gate = harness.executor.default = harness.gate()
    await harness.work()
    assert (await harness.wake(wake)).status == "running"
    assert await shown(wake) == "fired"

    await harness.let_through(gate)
    assert (await harness.wake(wake)).status == "fired"
    assert await shown(wake) == "fired"


@pytest.mark.parametrize("ending", ["cancelled", "failed", "skipped"])
async def test_session_recalls_shows_what_never_came_to_its_end_as_cancelled(harness, ending):
    wake = await harness.book(on_miss="skip")
    if ending == "cancelled":
        await harness.node.wakes.cancel(wake.id, harness.user.id)
    elif ending == "skipped":
        await harness.turn_at(wake.nominal_at + HOUR)
    else:

        async def fail(run, steps, stop):
            raise Slip
            yield

        harness.executor.default = fail
        await harness.turn_at(wake.nominal_at)
    assert (await harness.wake(wake)).status == ending
    assert (await recall_row(harness, wake))["status"] == "cancelled"


async def test_session_recalls_shows_recalls_only(harness):
    await harness.book(kind="message")
    await harness.book(kind="next_run")
    assert await read_rows(harness, "SELECT * FROM session_recalls") == []


async def test_a_recall_trigger_is_in_utc(harness):
    wake = await harness.book(timezone="Asia/Tokyo", at=datetime(2026, 3, 3, 6, 30, tzinfo=UTC))
    [row] = await read_rows(harness, "SELECT trigger_at FROM session_recalls")
    assert instant(row["trigger_at"]) == wake.nominal_at
    assert instant(row["trigger_at"]).utcoffset().total_seconds() == 0


# ── Leases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_is_finished_by_its_owner_with_its_fence_or_not_at_all(harness, store):
    await harness.book(call_type="immediate")
    await harness.node.engine.scheduler.turn()
    now = harness.clock.now()
    [claimed] = await store.write(lambda tx: tx.runs.claim("me", now, MINUTE, messages=0, headless=1, rules=Rules()))
    run = claimed.run

    async def finish(run, at):
        return await store.write(lambda tx: tx.runs.finish([(run, Outcome(status="success"))], at))

    assert await finish(replace(run, owner="another"), now) == set()
    assert await finish(replace(run, fence=run.fence - 1), now) == set()
    assert (await harness.run(run.id)).status == "running"
    assert await finish(run, now + DAY) == {run.id}  # nobody took it over, so only the clock was set
    assert await finish(run, now) == set()
