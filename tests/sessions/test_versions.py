"""A person's last message answered again or edited: the earlier version stays, and models no longer read it."""

import pytest

from wakeful.runs.rules import NoSuchMessage, NotTheLastMessage, ReplacedByVersion
from wakeful.sessions.service import SessionBusy

pytestmark = pytest.mark.both_stores


async def talk(harness, content="First?"):
    """Send a message in a new session and have it answered."""
    session = await harness.session()
    await harness.node.runs.ask(session.id, harness.user.id, content)
    await harness.work()
    return session


async def messages_of(harness, session):
    return await harness.node.sessions.messages(session.id, harness.user.id)


async def test_an_edit_replaces_the_last_message_and_its_answer(harness):
    session = await talk(harness)
    before = await messages_of(harness, session)
    run = await harness.node.runs.ask_again(session.id, harness.user.id, before[0].id, "Second?")
    await harness.work()
    after = await messages_of(harness, session)
    assert [each.superseded_by for each in after[: len(before)]] == [run.id] * len(before)
    new = after[len(before) :]
    assert (new[0].role, new[0].content, new[0].run_id) == ("user", "Second?", run.id)
    assert {each.superseded_by for each in new} == {None}


async def test_a_retry_sends_the_same_words_and_attachments_again(harness):
    session = await talk(harness)
    [asked, *_] = await messages_of(harness, session)
    await harness.node.runs.ask_again(session.id, harness.user.id, asked.id)
    await harness.work()
    new = [each for each in await messages_of(harness, session) if each.superseded_by is None]
    assert (new[0].content, new[0].data) == (asked.content, asked.data)


async def test_only_the_last_message_of_a_person_can_be_replaced(harness):
    session = await talk(harness)
    [first, *_] = await messages_of(harness, session)
    await harness.node.runs.ask(session.id, harness.user.id, "And then?")
    await harness.work()
    again = harness.node.runs.ask_again
    with pytest.raises(NotTheLastMessage):
        await again(session.id, harness.user.id, first.id)
    last = [each for each in await messages_of(harness, session) if each.role == "user"][-1]
    await again(session.id, harness.user.id, last.id)
    await harness.work()
    with pytest.raises(NotTheLastMessage):  # it is an earlier version itself by now
        await again(session.id, harness.user.id, last.id)
    with pytest.raises(NoSuchMessage):
        await again(session.id, harness.user.id, "nothing")


async def test_nothing_is_replaced_while_a_run_is_in_progress(harness):
    session = await talk(harness)
    async with harness.talking(session):
        last = (await messages_of(harness, session))[-1]
        with pytest.raises(SessionBusy):
            await harness.node.runs.ask_again(session.id, harness.user.id, last.id)
    assert {each.superseded_by for each in await messages_of(harness, session)} == {None}


async def test_a_run_of_an_earlier_version_is_not_continued(harness):
    session = await harness.session()
    harness.executor.default = fail
    run = await harness.node.runs.ask(session.id, harness.user.id, "First?")
    await harness.work()
    assert (await harness.run(run.id)).status == "failed"
    [asked, *_] = await messages_of(harness, session)
    await harness.node.runs.ask_again(session.id, harness.user.id, asked.id)
    await harness.work()
    with pytest.raises(ReplacedByVersion):
        await harness.node.runs.go_on(run.id, harness.user.id)


async def fail(run, steps, stop):
    raise RuntimeError("the disk is full")
    yield
