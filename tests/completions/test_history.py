"""Which histories are the same conversation."""

from datetime import UTC, datetime

import pytest

from wakeful.completions import rules as completions_rules
from wakeful.completions.rules import AnswerPieces, Piece, finish_reason, is_side_request, read_request
from wakeful.core.types import Message

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


def request(*contents, **more):
    """Make a request of texts, the user's and the assistant's in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": each} for place, each in enumerate(contents)]
    return read_request({"model": "m", "messages": messages} | more)


def keys(asked):
    return completions_rules.keys_of(asked, None, "t", "a")


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
    key = completions_rules.read_key("X-Conversation-Id", "c")
    found = [completions_rules.keys_of(asked, key, token, agent) for token in "tu" for agent in "ab"]
    assert len({each.after for each in found}) == len({each.client for each in found}) == 4


def test_another_person_has_another_key_and_a_request_that_names_none_has_that_of_0_2():
    key = completions_rules.read_key("X-Conversation-Id", "c")

    def keys_for(*names, **body):
        asked = read_request({"model": "m", "messages": [{"role": "user", "content": "Hi"}]} | body, names)
        return completions_rules.keys_of(asked, key, "t", "a")

    plain = keys_for()
    assert plain.client == "a521c1cfc8997bfdad1411ea52c5d3a65cf1893af8f910e1"
    assert plain.after == "ad1414720b8f96648c2be85daaae745d50ce2f2ffe8cb558"
    assert keys_for(None, " ", user=None) == keys_for("{{LIBRECHAT_USER_ID}}", user=5, safety_identifier="") == plain
    named = [keys_for("ada"), keys_for("bob"), keys_for(None, "ada"), keys_for(user="ada")]
    named += [keys_for("ada", user="bob"), keys_for(safety_identifier="ada"), keys_for(user="x" * 10_000_000)]
    assert len({each.after for each in named}) == len({each.client for each in named}) == len(named)
    assert len({each.after for each in (plain, *named)}) == len(named) + 1
    assert {len(each.after) for each in named} == {48}


def test_texts_that_only_join_differently_have_different_keys():
    assert keys(request("ab", "c", "d")).after != keys(request("a", "bc", "d")).after


@pytest.mark.parametrize("value", [None, "", " ", "new", "NULL", "undefined", "{{LIBRECHAT_BODY_CONVERSATIONID}}"])
def test_a_conversation_without_an_id_has_no_key(value):
    assert completions_rules.read_key("X-Conversation-Id", value) is None


@pytest.mark.parametrize(
    ("given", "is_over", "kind"),
    [
        ("Let me look. Done.", True, "same"),
        ("<think>Hm.</think>Let me look.\nDone.", True, "same"),
        ('<details type="reasoning"><summary>x</summary>Hm.</details> Let me look. Done.', True, "same"),
        (" Let  me\nlook.Done. ", True, "same"),
        ("Let me", True, "other"),
        ("", True, "other"),
        ("", False, "other"),
        ("<think>Hm.</think>", True, "other"),
        ("Let me look. Done. And more", False, "other"),
        ("Let me look. Done. And more", True, "other"),
        ("No.", True, "other"),
    ],
)
def test_an_answer_in_a_history_is_compared_with_the_one_that_was_given(given, is_over, kind):
    steps = [step("user", "Hi"), step("assistant", "Let me look."), step("tool", "x"), step("assistant", "Done.")]
    assert completions_rules.compare_answer(given, steps, is_over=is_over) == kind


LONG = "a b" * 100  # 200 characters without its spaces


@pytest.mark.parametrize(
    ("given", "said", "is_over", "kind"),
    [
        pytest.param(LONG, LONG + "c", True, "part", id="a part"),
        pytest.param(LONG[:-1], LONG + "c", True, "other", id="a part that is too short"),
        pytest.param(LONG + "c", LONG, False, "part", id="more than is saved of a run in progress"),
        pytest.param(LONG + "c", LONG, True, "other", id="more than was said"),
        pytest.param(LONG, LONG[:-1], False, "other", id="too little is saved of a run in progress"),
        pytest.param("", "", True, "other", id="nothing"),
        pytest.param("Hello", "", False, "other", id="nothing is saved of a run in progress"),
    ],
)
def test_a_part_of_an_answer_has_200_characters(given, said, is_over, kind):
    assert (
        completions_rules.compare_answer(given, [step("user", "Hi"), step("assistant", said)], is_over=is_over) == kind
    )


def test_a_question_that_was_edited_does_not_follow():
    steps = [step("user", "How are you?")]
    assert completions_rules.is_next(request("Hi", "Hello", " How are  you?", "Fine", "And?"), steps)
    assert not completions_rules.is_next(request("Hi", "Hello", "How old are you?", "Fine", "And?"), steps)
    assert not completions_rules.is_next(request("How are you?"), steps)


def test_documents_around_a_question_do_not_count():
    asked = '### Task:\nAnswer from the context.\n\n<context>\n<source id="1">Tea</source>\n</context>\n\nWhen?'
    assert keys(request(asked)).after == keys(request("When?")).after != keys(request("Where?")).after
    assert completions_rules.is_next(request("When?", "At five", "Sure?"), [step("user", asked)])


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
