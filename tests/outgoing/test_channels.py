"""Channels: each notice is sent once, and failures are recorded."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from harness import HOUR, MINUTE, NOON, SECOND, Harness, send_due
from network.http_server import HttpServer
from wakeful.app.building import Wakeful
from wakeful.core.errors import Invalid
from wakeful.core.types import Channel, Notice
from wakeful.outgoing import rules
from wakeful.outgoing import worker as outgoing_worker
from wakeful.outgoing.notify import Notify
from wakeful.outgoing.rules import ChannelNameTaken, TooManyChannels
from wakeful.outgoing.tools import notify_tools
from wakeful.store.notices import NoSuchChannel
from wakeful.toolbox.registry import ToolContext, ToolDeps, Tools

ON_SQLITE = pytest.mark.parametrize("backend_settings", ["sqlite"], indirect=True)  # where the store plays no part


@pytest.fixture
async def outside():
    async with HttpServer() as server:
        yield server


@pytest.fixture
async def harness(backend_settings):
    harness = Harness(backend_settings | {"fetch_private_hosts": ["127.0.0.1"]})
    async with harness.node.opened():
        await harness.settle_in()
        yield harness


@pytest.fixture
def channels(harness):
    return harness.node.services.channels


async def add(harness, url: str, name: str = "phone", **changes) -> Channel:
    """Put a channel into the store, without the process that looks at its address."""
    now = harness.clock.now()
    channel = Channel(
        id=f"channel-{name}",
        user_id=harness.user.id,
        name=name,
        url=url,
        shown="json://127.0.0.1",
        created_at=now,
        updated_at=now,
    )
    channel = replace(channel, **changes)
    await harness.node.store.write(lambda tx: tx.channels.add(channel))
    return channel


async def of(harness, name: str = "phone") -> Channel:
    found = await harness.node.services.channels.of_user(harness.user.id)
    return next(each for each in found if each.name == name)


def notice(harness, **changes) -> Notice:
    now = harness.clock.now()
    made = Notice(
        id="notice-1",
        user_id=harness.user.id,
        agent_id=harness.agent.id,
        code="brake",
        title="The brake is on",
        body="It waits.",
        once_key="once",
        created_at=now,
    )
    return replace(made, **changes)


async def announce(harness, made: Notice) -> None:
    """Put a notice into the inbox as the engine does, and wait until it was sent to the channels."""
    await harness.node.store.write(lambda tx: tx.notices.add(made))
    await send_due(harness.node)


# ── What the host has to say ────────────────────────────────────────────────────────────────────────────────────────


async def test_what_the_host_puts_into_the_inbox_goes_over_the_channels(harness, outside):
    await add(harness, outside.url())
    await announce(harness, notice(harness))
    assert [(each["title"], each["message"]) for each in outside.received] == [("The brake is on", "It waits.")]
    told = await of(harness)
    assert (told.last_sent_at, told.last_error) == (NOON, None)


async def test_with_two_nodes_it_is_told_once(harness, outside):
    await add(harness, outside.url())
    if harness.node.store.is_shared:
        other = harness.another_node()
        async with other.opened():
            await announce(harness, notice(harness))
            await announce(harness, notice(harness, id="notice-2", once_key="twice", title="Another"))
            await asyncio.gather(send_due(other), send_due(harness.node))
    else:
        await announce(harness, notice(harness))
        await announce(harness, notice(harness, id="notice-2", once_key="twice", title="Another"))
        await asyncio.gather(*(send_due(harness.node) for _ in range(4)))
    # Either node may be the quicker one.
    assert sorted(each["title"] for each in outside.received) == ["Another", "The brake is on"]


async def test_a_channel_that_fails_loses_nothing_and_says_why_on_its_row_and_in_the_log(harness, outside, caplog):
    outside.status = 500
    await add(harness, outside.url())
    with caplog.at_level(logging.WARNING):
        await announce(harness, notice(harness))
    assert [each.id for each in await harness.notices()] == ["notice-1"]
    told = await of(harness)
    assert told.last_error is not None
    assert "500" in told.last_error
    assert told.last_error_at == NOON
    assert "notice not sent over a channel" in caplog.messages
    assert "secret" not in told.last_error + caplog.text


@ON_SQLITE
async def test_the_end_of_its_process_is_read_by_asyncio_alone(harness, outside, caplog, late_exit_status):
    await add(harness, outside.url())
    await announce(harness, notice(harness))
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
    assert late_exit_status


async def test_one_that_works_again_is_no_longer_said_to_fail(harness, outside):
    await add(harness, outside.url(), last_error="500", last_error_at=NOON)
    await announce(harness, notice(harness))
    told = await of(harness)
    assert (told.last_error, told.last_error_at) == (None, None)


@pytest.mark.both_stores
async def test_what_a_node_that_died_has_not_begun_is_sent_by_the_next(harness, outside):
    await add(harness, outside.url())
    await harness.node.store.write(lambda tx: tx.notices.add(notice(harness)))  # and then it died
    harness.clock.set(NOON + 2 * MINUTE)
    await send_due(harness.node)
    await send_due(harness.node)
    assert [(each["title"], each["message"]) for each in outside.received] == [("The brake is on", "It waits.")]


@pytest.mark.both_stores
async def test_what_a_node_that_died_was_about_to_send_is_sent_once_more_and_says_so(harness, outside):
    """It may have arrived before: better twice than never, and never a third time."""
    await add(harness, outside.url())
    await harness.node.store.write(lambda tx: tx.notices.add(notice(harness)))
    await claim_and_die(harness)
    harness.clock.set(NOON + MINUTE)
    await send_due(harness.node)
    assert outside.received == []  # the node that claimed it has a minute, and the channel's timeout
    outside.status = 500
    for minutes in (2, 4, 6):
        harness.clock.set(NOON + minutes * MINUTE)
        await send_due(harness.node)
    [sent] = outside.received
    assert sent["message"] == "It waits.\n\n(Sent once more: the server went down while it sent this.)"


@pytest.mark.both_stores
async def test_what_two_nodes_have_died_of_is_not_sent_a_third_time(harness, outside):
    await add(harness, outside.url())
    await harness.node.store.write(lambda tx: tx.notices.add(notice(harness)))
    for minutes in (0, 2):
        harness.clock.set(NOON + minutes * MINUTE)
        await claim_and_die(harness)
    harness.clock.set(NOON + 4 * MINUTE)
    await send_due(harness.node)
    assert outside.received == []


async def claim_and_die(harness) -> None:
    """Claim messages to channels as a node does that is killed before it sends them."""
    now = harness.clock.now()
    left_behind = now - 80 * SECOND
    claimed = await harness.node.store.write(lambda tx: tx.outgoing.claim("channel", now, left_behind, now, 10))
    assert len(claimed) == 1


async def test_what_is_old_when_it_is_found_is_not_told_as_news(harness, outside):
    await add(harness, outside.url())
    await harness.node.store.write(lambda tx: tx.notices.add(notice(harness)))
    harness.clock.set(NOON + 2 * HOUR)
    await send_due(harness.node)
    assert outside.received == []


async def test_just_after_the_clock_was_set_what_is_being_sent_does_not_look_abandoned(harness, outside):
    await add(harness, outside.url())
    await harness.node.store.write(lambda tx: tx.notices.add(notice(harness)))
    await claim_and_die(harness)
    harness.clock.step(HOUR / 2)
    await send_due(harness.node)
    assert outside.received == []
    harness.clock.advance(2 * MINUTE)
    await send_due(harness.node)
    assert len(outside.received) == 1


async def test_one_that_is_off_or_anothers_is_not_told(harness, outside):
    await add(harness, outside.url(), enabled=False)
    await harness.sql("INSERT INTO users (id, name, role, created_at) VALUES ('bob', 'Bob', 'user', 0)")
    await add(harness, outside.url(), name="bobs", user_id="bob")
    await announce(harness, notice(harness))
    assert outside.received == []


async def test_nobody_is_told_who_is_gone(harness, outside):
    await add(harness, outside.url())
    await harness.sql("UPDATE users SET deleted_at = 1")
    await announce(harness, notice(harness))
    assert outside.received == []


async def test_a_notice_about_a_muted_wake_stays_in_the_inbox(harness, outside):
    await add(harness, outside.url())
    wake = await harness.book()
    await harness.node.wakes.mute(wake.id, harness.user.id, True)
    await announce(harness, notice(harness, wake_id=wake.id))
    assert len(await harness.notices()) == 1
    assert outside.received == []
    await harness.node.wakes.mute(wake.id, harness.user.id, False)
    await announce(harness, notice(harness, id="notice-2", once_key="twice", wake_id=wake.id))
    assert len(outside.received) == 1


async def test_muting_does_not_get_into_the_way_of_the_scheduler(harness):
    wake = await harness.book()
    await harness.node.wakes.mute(wake.id, harness.user.id, True)
    assert (await harness.wake(wake)).version == wake.version
    await harness.turn_at(NOON + HOUR)
    after = await harness.wake(wake)
    assert (after.status, after.muted) == ("fired", True)


# ── What an agent has to say ────────────────────────────────────────────────────────────────────────────────────────


async def call(harness, *, wake_id: str | None = None, node: Wakeful | None = None):
    session = await harness.session()
    run = await harness.node.runs.ask(session.id, harness.user.id, "Watch")
    await harness.work()
    services = (node or harness.node).services
    notify = Notify((node or harness.node).store, harness.clock, services.outbox, services.hub, services.data.views_of)
    agent = replace(harness.agent, toolsets=("notify",))
    context = ToolContext(run=replace(run, wake_id=wake_id), agent=agent, workspace=Path("/nowhere"))
    return await Tools(notify_tools(ToolDeps(notify))).call(
        "notify", {"title": "Red", "body": "Three tests fail."}, context
    )


@pytest.mark.both_stores
async def test_what_it_said_when_its_server_died_is_sent_once_more(harness, outside, monkeypatch):
    await add(harness, outside.url())

    async def die(*_):
        raise asyncio.CancelledError

    with monkeypatch.context() as dying:
        dying.setattr(harness.node.services.outbox.sender, "send", die)
        with pytest.raises(asyncio.CancelledError):
            await call(harness)
    harness.clock.set(NOON + 2 * MINUTE)
    await send_due(harness.node)
    [sent] = outside.received
    assert (sent["title"], "Sent once more" in sent["message"]) == ("Red", True)
    assert (await call(harness)).metadata["channels"] == {"inbox": "duplicate"}


async def test_the_answer_says_what_each_channel_really_did(harness, outside):
    in_tokyo = replace(harness.user, timezone="Asia/Tokyo")
    await harness.node.store.write(lambda tx: tx.accounts.save_user(in_tokyo))
    async with HttpServer() as broken:
        broken.status = 503
        await add(harness, outside.url(), "phone")
        await add(harness, broken.url(), "mail")
        await add(harness, outside.url(), "full", hour_from=NOON - 10 * MINUTE, hour_count=rules.PER_HOUR)
        await add(harness, outside.url(), "off", enabled=False)
        answer = await call(harness)
    assert answer.success
    did = answer.metadata["channels"]
    assert did == {
        "inbox": "saved",
        "browser": "0 open",
        "phone": "sent",
        "mail": "failed",
        "full": "rate_limited",
    }
    assert "channel 'phone': sent." in answer.text
    assert "channel 'mail': failed (" in answer.text
    assert "503" in answer.text
    limit = "at most 30 messages an hour; free again at 2026-03-02 21:50:00 (Asia/Tokyo)"
    assert f"channel 'full': rate-limited, not sent ({limit})." in answer.text
    assert "secret" not in answer.text
    await send_due(harness.node)
    assert len(outside.received) == 1  # and nobody tells it a second time


async def test_one_that_takes_too_long_is_said_to_have_timed_out(harness, outside):
    outside.is_silent = True
    await add(harness, outside.url())
    hasty = harness.another_node(channel_timeout_seconds=3) if harness.node.store.is_shared else None
    if hasty is None:
        harness.node.services.outbox.kinds["channel"].seconds = 3
        answer = await call(harness)
    else:
        async with hasty.opened():
            answer = await call(harness, node=hasty)
    assert answer.metadata["channels"]["phone"] == "timed_out"
    assert "may or may not have arrived" in answer.text
    assert len(await harness.notices()) == 1
    assert "no answer within 3 s" in ((await of(harness)).last_error or "")


async def test_in_the_run_of_a_muted_wake_the_answer_says_that_no_channel_was_told(harness, outside):
    await add(harness, outside.url())
    wake = await harness.book()
    await harness.node.wakes.mute(wake.id, harness.user.id, True)
    answer = await call(harness, wake_id=wake.id)
    assert "muted" in answer.text
    assert answer.metadata["channels"] == {"inbox": "saved", "browser": "0 open"}
    assert outside.received == []


async def test_so_many_an_hour_over_one_channel_and_then_again(harness, outside, channels):
    await add(harness, outside.url(), hour_from=NOON - HOUR + MINUTE, hour_count=rules.PER_HOUR - 1)
    outcomes = [(await channels.test("channel-phone", harness.user.id)).outcome for _ in range(2)]
    assert outcomes == ["sent", "rate_limited"]
    harness.clock.set(NOON + MINUTE)
    assert (await channels.test("channel-phone", harness.user.id)).outcome == "sent"
    assert (await of(harness)).hour_count == 1


# ── Where a channel may go ──────────────────────────────────────────────────────────────────────────────────────────


@ON_SQLITE
async def test_it_is_led_to_no_other_private_address(harness, outside, channels):
    outside.status, outside.location = 307, f"http://127.0.0.2:{outside.port}/inside"
    await add(harness, outside.url())
    delivery = await channels.test("channel-phone", harness.user.id)
    assert delivery.outcome == "failed"
    assert "127.0.0.2 is not on the public internet" in (delivery.reason or "")


@ON_SQLITE
async def test_a_name_that_has_become_private_since_is_not_sent_to(harness, outside, channels):
    await add(harness, f"json://localhost:{outside.port}/x")
    harness.node.services.outbox.sender.private_hosts = []
    delivery = await channels.test("channel-phone", harness.user.id)
    assert delivery.outcome == "failed"
    assert "fetch_private_hosts" in (delivery.reason or "")
    assert outside.received == []


@ON_SQLITE
@pytest.mark.parametrize(
    "url", ["vapid://ada@example.org/x?keyfile={path}", "workflows://host/id/signature/?template={path}"]
)
async def test_no_address_reads_a_file_of_this_machine(harness, channels, tmp_path, url):
    secret = tmp_path / "secret.txt"
    secret.write_text("nobody's business")
    await add(harness, url.format(path=secret))
    delivery = await channels.test("channel-phone", harness.user.id)
    assert delivery.outcome == "failed"


@ON_SQLITE
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("syslog://", "SCHEMA://"),
        ("syslog://local", "HTTP or mail"),
        ("json://", "SCHEMA://"),
        ("ntfy.sh/topic", "SCHEMA://"),
        ("slack://nothing", "missing or wrong"),
    ],
)
async def test_what_is_no_service_on_the_network_is_refused_by_name(harness, channels, url, problem):
    with pytest.raises(Invalid, match=problem) as refused:
        await channels.add(harness.user.id, "phone", url)
    assert refused.value.field == "url"
    assert await channels.of_user(harness.user.id) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of modules that apprise imports
@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("dbus://session", "HTTP or mail"),
        ("gnome://desktop", "HTTP or mail"),
        ("macosx://desktop", "HTTP or mail"),
        ("windows://desktop", "HTTP or mail"),
        ("file:///etc/passwd", "no service is known"),
    ],
)
def test_services_of_this_machine_are_refused_by_name(url, problem):
    """In this process: the one that looks at an address takes a second to start."""
    assert problem in outgoing_worker.inspect(url, outgoing_worker.AddressGuard(()))["problem"]


# ── Whose they are ──────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_name_is_taken_once_and_a_person_has_so_many(harness, channels, monkeypatch):
    await add(harness, "json://127.0.0.1/x")
    await add(harness, "json://127.0.0.1/x", "mail")
    with pytest.raises(ChannelNameTaken, match="'phone'"):
        await channels.add(harness.user.id, "phone", "json://127.0.0.1/y")
    with pytest.raises(ChannelNameTaken):
        await channels.change("channel-mail", harness.user.id, {"name": "phone"})
    for number in range(rules.MAX_CHANNELS - 2):
        await add(harness, "json://127.0.0.1/x", f"n{number}")
    with pytest.raises(TooManyChannels):
        await channels.add(harness.user.id, "one more", "json://127.0.0.1/y")


@ON_SQLITE
@pytest.mark.parametrize("name", ["inbox", "Browser", " ", "x" * 101])
async def test_a_name_that_would_mislead_is_refused(harness, channels, name):
    with pytest.raises(Invalid) as refused:
        await channels.add(harness.user.id, name, "json://127.0.0.1/x")
    assert refused.value.field == "name"


async def test_anothers_is_not_there(harness, channels):
    await add(harness, "json://127.0.0.1/x")
    for act in (
        channels.change("channel-phone", "bob", {"enabled": False}),
        channels.change("channel-phone", "bob", {"url": "json://127.0.0.1/y"}),
        channels.delete("channel-phone", "bob"),
        channels.test("channel-phone", "bob"),
    ):
        with pytest.raises(NoSuchChannel, match="channel-phone"):
            await act
    assert (await of(harness)).url == "json://127.0.0.1/x"
