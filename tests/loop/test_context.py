"""The part of a transcript that a model is sent, for every kind of transcript."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.core.types import Message
from wakeful.loop.context import blocks, keep_from, measure, shorten, to_model, tokens_in, view

WINDOW = 1_000


def row(role, content="x", data=None):
    return Message(
        id="",
        session_id="s",
        position=0,
        role=role,
        content=content,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        data=data,
    )


def reply(text, *call_ids, tokens=0):
    parts = [{"part_kind": "text", "content": text}] + [
        {"part_kind": "tool-call", "tool_name": "t", "args": "{}", "tool_call_id": call_id} for call_id in call_ids
    ]
    data = {
        "response": {"kind": "response", "parts": parts, "usage": {"input_tokens": tokens}},
        "tool_calls": [{"call_id": call_id, "tool": "t", "args": {}} for call_id in call_ids],
    }
    return row("assistant", text, data)


def result(call_id, text):
    return row("tool", text, {"call_id": call_id, "tool": "t"})


@st.composite
def transcripts(draw):
    """Conversations as the loop writes them, with rows beside the conversation anywhere."""
    rows = []
    for number in range(draw(st.integers(0, 12))):
        size = draw(st.sampled_from([1, 100, 1_000, 5_000]))
        match draw(st.sampled_from(["user", "reply", "calls", "notice", "plan"])):
            case "reply":
                rows.append(reply("r" * size))
            case "calls":
                called = [f"c{number}-{each}" for each in range(draw(st.integers(1, 3)))]
                rows.append(reply("", *called))
                rows.append(row("subagent", "s" * size, {"role": "user"}))
                rows += [result(each, "t" * size) for each in called]
            case role:
                rows.append(row(role, "u" * size))
    return rows


def summarised(rows, draw_room):
    keep = keep_from(rows, WINDOW, draw_room)
    return [*rows, row("summary", "The gist.", {"covers": keep, "dropped": 0})]


@settings(deadline=None)
@given(transcripts(), st.integers(0, WINDOW))
def test_a_summary_never_parts_a_call_from_its_result(rows, room):
    sent = view(summarised(rows, room), WINDOW)
    called = set()
    for message in sent:
        if message.role == "assistant":
            called = {call["call_id"] for call in message.data["tool_calls"]}
        elif message.role == "tool":
            assert message.data["call_id"] in called
            called.remove(message.data["call_id"])
        else:
            assert not called
    assert "interrupted" not in str(to_model("", sent, {}))


@settings(deadline=None)
@given(transcripts(), st.integers(0, WINDOW))
def test_what_was_asked_last_is_always_sent_in_its_own_words(rows, room):
    asked = [message for message in rows if message.role == "user"]
    if asked:
        assert asked[-1] in view(summarised(rows, room), WINDOW)


@settings(deadline=None)
@given(transcripts(), st.integers(0, WINDOW))
def test_what_is_kept_fits_but_for_a_question_at_the_end(rows, room):
    kept = [message for message in rows[keep_from(rows, WINDOW, room) :] if message.role in ("user", "assistant")]
    if len(kept) > 1:
        assert sum(tokens_in(message.content) for message in kept[:-1]) <= max(room, 0) + tokens_in(kept[-1].content)


@settings(deadline=None)
@given(transcripts())
def test_blocks_cover_everything_from_where_they_begin(rows):
    cut = blocks(rows, 0)
    assert [index for block in cut for index in block] == list(range(cut[0].start, len(rows)) if cut else ())


@settings(deadline=None)
@given(transcripts())
def test_rows_beside_the_conversation_are_not_sent(rows):
    assert {message.role for message in view(rows, WINDOW)} <= {"user", "assistant", "tool", "notice"}


def test_results_before_a_point_can_be_dropped_and_keep_their_calls():
    rows = [row("user"), reply("", "a"), result("a", "old"), reply("", "b"), result("b", "new")]
    sent = view([*rows, row("summary", "", {"covers": 0, "dropped": 3})], WINDOW)
    assert [message.role for message in sent] == ["user", "assistant", "tool", "assistant", "tool"]
    assert "left out" in sent[2].content
    assert sent[4].content == "new"


def test_a_count_of_the_provider_is_good_until_a_summary():
    rows = [row("user"), reply("hello", tokens=700), row("user", "x" * 300)]
    assert measure(rows, WINDOW, lambda: "") == 700 + 101
    after = [*rows, row("summary", "The gist.", {"covers": 2, "dropped": 0})]
    assert measure(after, WINDOW, lambda: "") < 200
    assert measure([*after, reply("hello", tokens=300)], WINDOW, lambda: "") == 300


@settings(deadline=None)
@given(st.text(max_size=3_000), st.integers(0, 2_000))
def test_a_shortened_text_is_as_short_as_it_should_be(text, most):
    short = shorten(text, most)
    assert short == text or tokens_in(short) <= most + 40
    assert short.startswith(text[: max(0, len(short) // 4)]) or "left out" in short
