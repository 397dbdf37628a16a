"""Notifications of agents: in the inbox, once, rate-limited, with a truthful answer."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from harness import HOUR, MINUTE, NOON
from wakeful.core.errors import Invalid
from wakeful.core.types import Run
from wakeful.notices.texts import PER_HOUR, TooManyNotices
from wakeful.outgoing.notify import Notify
from wakeful.outgoing.tools import notify_tools
from wakeful.toolbox.registry import ToolContext, ToolDeps, Tools


@pytest.fixture
def notify(harness) -> Notify:
    services = harness.node.services
    return Notify(harness.node.store, harness.clock, services.outbox, services.hub, services.data.views_of)


@pytest.fixture
async def run(harness) -> Run:
    session = await harness.session()
    asked = await harness.node.runs.ask(session.id, harness.user.id, "Watch the build")
    await harness.work()
    return asked


async def call(harness, notify, run, **arguments):
    context = ToolContext(run=run, agent=replace(harness.agent, toolsets=("notify",)), workspace=Path("/nowhere"))
    return await Tools(notify_tools(ToolDeps(notify))).call("notify", arguments, context)


async def test_it_is_in_the_inbox_with_where_it_came_from(harness, notify, run):
    told = await notify.send(run, harness.agent, " The build is red ", "Three tests fail.")
    assert await harness.notices() == [told.notice]
    assert told.is_new
    notice = told.notice
    assert (notice.code, notice.title, notice.body) == ("notify", "The build is red", "Three tests fail.")
    assert (notice.agent_id, notice.session_id, notice.run_id) == (harness.agent.id, run.session_id, run.id)


async def test_the_view_that_shows_more_is_kept_with_it(harness, run):
    async def views_of(_agent):
        return {"open_tasks": []}

    services = harness.node.services
    notify = Notify(harness.node.store, harness.clock, services.outbox, services.hub, views_of)
    await notify.send(run, harness.agent, "Red", "Three tests fail.", "open_tasks")
    [notice] = await harness.notices()
    assert notice.view_ref == "open_tasks"


async def test_with_no_page_open_and_no_channel_the_answer_claims_the_inbox_and_nothing_else(harness, notify, run):
    answer = await call(harness, notify, run, title="Red", body="Three tests fail.")
    [notice] = await harness.notices()
    assert answer.success
    assert answer.text == (
        "inbox: saved at 2026-03-02 13:00:00 (Europe/Berlin). "
        "browser: no pages are open here. Channels: none is set up. Whether it was read is not known. "
        f"Notification id: {notice.id}."
    )
    assert answer.metadata == {"channels": {"inbox": "saved", "browser": "0 open"}, "notification_id": notice.id}


async def test_the_same_words_within_an_hour_are_not_told_again_and_the_answer_says_so(harness, notify, run):
    first = await notify.send(run, harness.agent, "Red", "Three tests fail.")
    harness.clock.set(NOON + HOUR - MINUTE)
    answer = await call(harness, notify, run, title="Red", body="Three tests fail.")
    assert "not saved again" in answer.text
    assert "2026-03-02 13:00:00 (Europe/Berlin)" in answer.text
    assert answer.metadata == {"channels": {"inbox": "duplicate"}, "notification_id": first.notice.id}
    assert len(await harness.notices()) == 1


async def test_the_same_words_after_an_hour_are_news_again(harness, notify, run):
    harness.clock.set(NOON + 30 * MINUTE)
    await notify.send(run, harness.agent, "Red", "Three tests fail.")
    harness.clock.set(NOON + 90 * MINUTE)
    assert (await notify.send(run, harness.agent, "Red", "Three tests fail.")).is_new
    assert len(await harness.notices()) == 2


async def test_two_that_say_the_same_at_once_say_it_once(harness, notify, run):
    told = await asyncio.gather(*[notify.send(run, harness.agent, "Red", "Three tests fail.") for _ in range(4)])
    assert sum(each.is_new for each in told) == 1
    assert len(await harness.notices()) == 1


async def test_other_words_or_another_agents_are_told(harness, notify, run):
    other = await harness.add_agent()
    await notify.send(run, harness.agent, "Red", "Three tests fail.")
    await notify.send(run, harness.agent, "Red", "Four tests fail.")
    await notify.send(replace(run, agent_id=other.id), other, "Red", "Three tests fail.")
    assert len(await harness.notices()) == 3


async def test_so_many_an_hour_and_no_more(harness, notify, run):
    for number in range(PER_HOUR):
        harness.clock.set(NOON + number * MINUTE)
        await notify.send(run, harness.agent, "Progress", f"Step {number}")
    agent = replace(harness.agent, timezone="Asia/Tokyo")
    with pytest.raises(TooManyNotices, match=r"22:00:00 \(Asia/Tokyo\)"):
        await notify.send(run, agent, "Progress", "One more")
    answer = await call(harness, notify, run, title="Progress", body="One more")
    assert (answer.success, answer.metadata["code"]) == (False, "too_many_notifications")
    assert "was not sent" in answer.text
    assert len(await harness.notices()) == PER_HOUR
    harness.clock.set(NOON + HOUR)
    assert (await notify.send(run, harness.agent, "Progress", "One more")).is_new


async def test_what_is_refused_as_a_repetition_does_not_count(harness, notify, run):
    for _ in range(2 * PER_HOUR):
        await notify.send(run, harness.agent, "Red", "Three tests fail.")
    assert (await notify.send(run, harness.agent, "Green", "All is well.")).is_new


@pytest.mark.parametrize(
    ("title", "body", "view_ref", "field"),
    [
        (" ", "Three tests fail.", None, "title"),
        ("x" * 201, "Three tests fail.", None, "title"),
        ("Red", "\n", None, "body"),
        ("Red", "x" * 4_001, None, "body"),
        ("Red", "Three tests fail.", "open_tasks", "view_ref"),
    ],
)
async def test_a_wrong_call_names_its_field_and_tells_nobody(harness, notify, run, title, body, view_ref, field):
    with pytest.raises(Invalid) as refused:
        await notify.send(run, harness.agent, title, body, view_ref)
    assert refused.value.field == field
    assert await harness.notices() == []


async def test_with_self_scheduling_off_it_is_not_there(harness, notify, run):
    harness.agent = replace(harness.agent, self_scheduling=False)
    answer = await call(harness, notify, run, title="Red", body="Three tests fail.")
    assert (answer.success, answer.metadata["code"]) == (False, "unknown_tool")
