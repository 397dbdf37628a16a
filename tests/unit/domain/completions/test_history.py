"""Which histories are the same conversation."""

from datetime import UTC, datetime

import pytest

from wakeful.domain.completions import history
from wakeful.domain.completions.answer import AnswerPieces, Piece, finish_reason
from wakeful.domain.completions.request import read_request
from wakeful.domain.completions.side_requests import is_side_request
from wakeful.domain.types import Message

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def request(*contents, **more):
    """Make a request of texts, the user's and the assistant's in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": each} for place, each in enumerate(contents)]
    return read_request({"model": "m", "messages": messages} | more)


def keys(asked):
    return history.keys_of(asked, None, "t", "a")


def step(role, content, **more):
    return Message(id="1", session_id="s", position=1, role=role, content=content, created_at=NOON, **more)


def test_a_request_finds_the_key_that_the_one_before_left():
    first, second = request("Hi"), request("Hi", "Hello", "And?")
    assert keys(first).before is None
    assert keys(second).before == keys(first).after


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(request("Ho", "Hello", "And?"), id="another question"),
        pytest.param(request("Hi", "Hello", "Well", "Well", "And?"), id="a message more"),
    ],
)
def test_an_edited_history_has_another_key(other):
    assert keys(other).before != keys(request("Hi")).after


def test_another_token_or_agent_has_another_key():
    asked = request("Hi")
    key = history.read_key("X-Conversation-Id", "c")
    found = [history.keys_of(asked, key, token, agent) for token in "tu" for agent in "ab"]
    assert len({each.after for each in found}) == len({each.client for each in found}) == 4


def test_texts_that_only_join_differently_have_different_keys():
    assert keys(request("ab", "c", "d")).after != keys(request("a", "bc", "d")).after


@pytest.mark.parametrize("value", [None, "", " ", "new", "NULL", "undefined", "{{LIBRECHAT_BODY_CONVERSATIONID}}"])
def test_a_conversation_without_an_id_has_no_key(value):
    assert history.read_key("X-Conversation-Id", value) is None


@pytest.mark.parametrize(
    ("given", "is_over", "kind"),
    [
        ("Let me look. Done.", True, "same"),
        ("<think>Hm.</think>Let me look.\nDone.", True, "same"),
        ('<details type="reasoning"><summary>x</summary>Hm.</details> Let me look. Done.', True, "same"),
        ("Let me", True, "part"),
        ("", True, "part"),
        ("Let me look. Done. And more", False, "part"),
        ("Let me look. Done. And more", True, "other"),
        ("No.", True, "other"),
    ],
)
def test_an_answer_in_a_history_is_compared_with_the_one_that_was_given(given, is_over, kind):
    steps = [step("user", "Hi"), step("assistant", "Let me look."), step("tool", "x"), step("assistant", "Done.")]
    assert history.compare_answer(given, steps, is_over=is_over) == kind


def test_a_question_that_was_edited_does_not_follow():
    steps = [step("user", "How are you?")]
    assert history.is_next(request("Hi", "Hello", " How are  you?", "Fine", "And?"), steps)
    assert not history.is_next(request("Hi", "Hello", "How old are you?", "Fine", "And?"), steps)
    assert not history.is_next(request("How are you?"), steps)


def test_text_of_several_turns_is_apart_and_a_note_at_the_end_is_said():
    pieces = AnswerPieces()
    frames = [
        {"type": "stream_start"},
        {"type": "stream_delta", "delta": "Let me look."},
        {"type": "tool_started", "tool": "x"},
        {"type": "stream_delta", "delta": "Of a subagent", "is_subagent": True},
        {"type": "tool_call", "tool": "x"},
        {"type": "stream_delta", "delta": "Done."},
    ]
    said = [piece.text for frame in frames for piece in pieces.read(frame)]
    assert said == ["Let me look.", "\n\nDone."]
    assert pieces.read({"type": "stream_end", "content": "Done."}) == []
    assert pieces.read({"type": "stream_end", "content": "I stopped here."}) == [Piece("text", "\n\nI stopped here.")]


@pytest.mark.parametrize(("note", "reason"), [(None, "stop"), ("budget", "length"), ("prompt_cut", "stop")])
def test_a_limit_is_the_length_of_an_answer(note, reason):
    assert finish_reason(note) == reason


@pytest.mark.parametrize(
    ("asked", "is_side"),
    [
        (request("### Task:\nName it.\n<chat_history>\nx\n</chat_history>"), True),
        (request("### Task:\nAnswer from <context>x</context>"), False),
        (request("Hi", "Hello", "### Task:\n<chat_history></chat_history>"), False),
        (request("Write a 5-word-or-less title for the conversation."), True),
        (request("What is a title?"), False),
    ],
)
def test_side_requests_are_recognised_by_what_chat_pages_write(asked, is_side):
    assert is_side_request(asked) is is_side


def test_names_of_ignored_parameters_fit_into_a_header():
    asked = request("Hi", **{"temperature": 1, "top_p": None, "sto\r\np": 1, "é": 1, "logit_bias": {}, "seed": 0})
    assert asked.ignored == ("seed", "temperature")
