"""Search in messages and titles: the same answers on both databases."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from harness import NOON, Harness, lay_out
from search_reset import forget_index
from wakeful.core import ids
from wakeful.core.types import Message, Session, User
from wakeful.sessions import search as sessions_search
from wakeful.sessions.search import Answer
from wakeful.store.sessions import NoSuchSession

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
async def node(shared_settings):
    """A node for the tests of this file; each opens sessions for a user of its own."""
    await lay_out(shared_settings)
    async with Harness(shared_settings).opened() as harness:
        yield harness


@pytest.fixture
async def person(node) -> "Person":
    user = User(id=ids.new_id(), name=f"Ada {ids.new_id()}", role="member", created_at=NOON)
    await node.node.agents.add_user(user)
    agent = await node.node.agents.add(node.make_agent(user_id=user.id))
    return Person(node, user, agent)


class Person:
    """A user who writes and searches."""

    def __init__(self, node, user, agent):
        self.node = node.node
        self.clock = node.clock
        self.user = user
        self.agent = agent

    async def session(self, title: str = "") -> Session:
        return await self.node.sessions.open(self.agent.id, self.user.id, title)

    async def say(self, session: Session, *texts: str, role: str = "user") -> list[str]:
        """Save messages one after the other, and return their ids."""
        said = []
        for text in texts:
            self.clock.set(self.clock.now() + timedelta(seconds=1))
            message = Message(
                id=ids.new_id(self.clock.now()),
                session_id=session.id,
                position=0,
                role=role,
                content=text,
                created_at=self.clock.now(),
            )
            await self.node.store.write(lambda tx, message=message: tx.sessions.append(message))
            said.append(message.id)
        return said

    async def search(self, words: str, most: int = 20, place=None) -> Answer:
        return await self.node.services.search.find(self.user.id, words, most, place)

    async def found(self, words: str) -> list[str]:
        """Return the texts that a search finds."""
        return [hit.found.text for hit in (await self.search(words)).hits]


async def test_messages_are_found_by_their_words_the_latest_first(person):
    session = await person.session()
    first, second = await person.say(session, "The garden is wet", "Water the Gärden, please")
    await person.say(session, "Something else")
    answer = await person.search("garden")
    assert [hit.found.message_id for hit in answer.hits] == [second, first]
    hit = answer.hits[0]
    assert hit.snippet.text == "Water the Gärden, please"
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.matches] == ["Gärden"]
    assert (hit.found.session_id, hit.found.agent_id, hit.found.role) == (session.id, person.agent.id, "user")
    assert (answer.next, answer.index.is_complete, answer.index.percent) == (None, True, 100)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("明天下午的会议室在三楼。", ["会议", "楼", "下午的", "会议室 明天"]),
        ("きのう東京Towerに行った", ["東京", "tower", "行", "To"]),
        ("팀회의에서 말했다", ["회의", "말했", "팀"]),
        ("มีการประชุมพรุ่งนี้", ["ประชุม", "พรุ่ง"]),
        ("Der Zahnarzttermin in der Straße", ["termin", "STRASSE", "de", '"in der straße"']),
        ("Запись к врачу", ["ЗАПИСЬ", "врач", "к"]),
        ("حجز موعد", ["موعد", "حج"]),
        ("यह हिन्दी है", ["हिन्दी"]),
        ("Done🎉 𠮷野家", ["🎉", "done", "𠮷", "野家"]),
        ("x = a|b & c:d 'e' \\f", ["'e'", "a|b", "x", '"c:d"', "\\f", "!x"]),
    ],
)
async def test_any_language_is_found(person, text, words):
    await person.say(await person.session(), text)
    for each in words:
        assert await person.found(each) == [text], each


async def test_words_that_are_not_there_find_nothing(person):
    await person.say(await person.session(), "the thesis on hats", "明天会议", "I said so")
    for words in ("that", "the hat on", '"hats on"', "天会明", "ai", "议明"):
        expected = ["the thesis on hats"] if words == "the hat on" else []
        assert await person.found(words) == expected, words


HOSTILE = [
    '"', '""', "...", "\x00", "' OR 1=1; --", "a*", "NEAR(a b)", "terms:a", "\ud800",
    "☃" * 500, "ab " * 166, "aa" * 250,
]  # fmt: skip


@pytest.mark.parametrize("words", HOSTILE)
async def test_no_query_is_an_error(person, words):
    await person.say(await person.session(), "Something else")
    assert await person.found(words) == []


async def test_titles_are_found_first_and_follow_their_session(person):
    session = await person.session("Garden plans")
    await person.say(session, "The garden is wet")
    untitled = await person.session()
    assert await person.found("garden") == ["Garden plans", "The garden is wet"]
    [title, _] = (await person.search("garden")).hits
    assert (title.found.message_id, title.found.run_id, title.found.role) == (None, None, None)

    await person.node.sessions.rename(session.id, person.user.id, "Roof")
    await person.node.sessions.give_title(untitled.id, "Gardening")
    assert await person.found("garden") == ["Gardening", "The garden is wet"]
    assert await person.found("roof") == ["Roof"]


async def test_only_texts_of_people_and_agents_are_searched(person):
    session = await person.session()
    await person.say(session, "needle of the agent", role="assistant")
    await person.say(session, "needle of a tool", role="tool")
    await person.say(session, "", role="assistant")
    assert await person.found("needle") == ["needle of the agent"]


async def test_nobody_finds_the_texts_of_others(node, person):
    await person.say(await person.session("Secret title"), "A secret text")
    theirs = (await node.node.services.search.find(node.user.id, "secret", 20)).hits
    assert theirs == []
    assert len(await person.found("secret")) == 2


async def test_pages_follow_each_other_without_gaps(person):
    session = await person.session("needle session")
    await person.say(session, *(f"needle {number}" for number in range(7)))
    expected = ["needle session", *(f"needle {number}" for number in reversed(range(7)))]
    for size in (1, 3, 8, 20):
        texts, place = [], None
        while True:
            answer = await person.search("needle", size, place)
            texts += [hit.found.text for hit in answer.hits]
            assert len(answer.hits) <= size
            place = answer.next
            if place is None:
                break
        assert texts == expected, size


async def test_texts_with_the_terms_but_not_the_words_are_passed_over(person):
    session = await person.session()
    await person.say(session, "abcd bcde")
    await person.say(session, *["abcd and bcde" for _ in range(150)])
    assert await person.found('"abcd bcde"') == ["abcd bcde"]


async def test_a_deleted_session_leaves_nothing_in_the_index(person):
    session = await person.session("Garden plans")
    await person.say(session, "The garden is wet")
    other = await person.session()
    await person.say(other, "Another garden")
    await person.node.sessions.delete(session.id, person.user.id)
    assert await person.found("garden") == ["Another garden"]
    assert await rows_of(person, "search_texts", session) == 0


async def rows_of(person, table, session) -> int:
    query = f"SELECT COUNT(*) AS n FROM {table} WHERE session_id = '{session.id}'"

    async def work(statements):
        if statements.dialect == "sqlite":
            return statements.connection.execute(query).get
        return await statements.connection.fetchval(query)

    return await person.node.store.database.read(work)


async def test_a_message_that_is_saved_twice_is_found_once(person):
    session = await person.session()
    message = Message(
        id=ids.new_id(NOON), session_id=session.id, position=0, role="user", content="needle", created_at=NOON
    )
    for _ in range(2):
        await person.node.store.write(lambda tx: tx.sessions.append(message))
    assert await person.found("needle") == ["needle"]


async def test_a_message_that_is_not_saved_is_not_found(person):
    session = await person.session()
    message = Message(
        id=ids.new_id(NOON), session_id=session.id, position=0, role="user", content="needle", created_at=NOON
    )

    async def work(tx):
        await tx.sessions.append(message)
        await tx.sessions.append(replace(message, id=ids.new_id(NOON), session_id="none"))

    with pytest.raises(NoSuchSession):
        await person.node.store.write(work)
    assert await person.found("needle") == []


async def test_a_very_long_message_is_saved_and_found_by_its_beginning(person):
    text = "needle " + "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(100_000))
    await person.say(await person.session(), text)
    [hit] = (await person.search("needle")).hits
    assert hit.snippet.text.endswith("…")


# ── Building the index after an upgrade ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def upgraded(harness, monkeypatch):
    """A store whose texts were there before it had an index, which is built in steps of two texts."""
    monkeypatch.setattr(sessions_search, "MAX_TEXTS", 2)
    person = Person(harness, harness.user, harness.agent)
    session = await person.session("Garden plans")
    await person.say(session, *(f"needle {number}" for number in range(7)))
    await forget_index(harness.node)
    return person


async def test_the_index_of_an_empty_store_is_complete(harness):
    assert not await harness.node.services.search_index.build_some()


async def test_the_latest_texts_can_be_found_first_and_the_progress_is_told(upgraded):
    index = upgraded.node.services.search_index
    answer = await upgraded.search("needle")
    assert (answer.hits, answer.index.is_complete, answer.index.percent) == ([], False, 0)
    assert await index.build_some()  # the title
    assert await index.build_some()
    answer = await upgraded.search("needle")
    assert [hit.found.text for hit in answer.hits] == ["needle 6", "needle 5"]
    assert (answer.index.is_complete, answer.index.percent) == (False, 37)
    await index.build()
    assert await upgraded.found("needle") == [f"needle {number}" for number in reversed(range(7))]
    assert await upgraded.found("garden") == ["Garden plans"]
    assert (await upgraded.search("needle")).index.is_complete
    assert not await index.build_some()


async def test_new_texts_are_found_while_the_index_is_built_and_stay_the_latest(upgraded):
    index = upgraded.node.services.search_index
    session = await upgraded.session("needle session")
    await index.build_some()
    await upgraded.say(session, "needle 7")
    await index.build_some()
    await upgraded.say(session, "needle 8")
    await index.build()
    expected = ["needle session", *(f"needle {number}" for number in reversed(range(9)))]
    assert await upgraded.found("needle") == expected


async def test_a_session_renamed_or_deleted_meanwhile_is_indexed_as_it_is(upgraded, harness):
    [session] = await harness.node.sessions.find(harness.user.id)
    other = await upgraded.session("Roof")
    await forget_index(harness.node)
    await harness.node.sessions.rename(session.session.id, harness.user.id, "Garden of needles")
    await harness.node.sessions.delete(other.id, harness.user.id)
    await harness.node.services.search_index.build()
    assert await upgraded.found("garden") == ["Garden of needles"]
    assert await upgraded.found("roof") == []


async def test_two_nodes_that_build_at_once_add_each_text_once(upgraded):
    index = upgraded.node.services.search_index
    while any(await asyncio.gather(*(index.build_some() for _ in range(3)))):
        pass
    assert await upgraded.found("needle") == [f"needle {number}" for number in reversed(range(7))]
