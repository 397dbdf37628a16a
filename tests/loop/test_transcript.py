"""The saved transcript in the form a model reads."""

from datetime import UTC, datetime

from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from wakeful.core.types import Message
from wakeful.loop.context import INTERRUPTED, open_calls, to_data, to_model

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def message(role, content="", **data):
    return Message(id="m", session_id="s", position=0, role=role, content=content, created_at=NOON, data=data or None)


def reply(*parts, text=""):
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    data = to_data(ModelResponse(parts=list(parts), timestamp=NOON), "", [{"call_id": c.tool_call_id} for c in calls])
    return message("assistant", text, **data)


def call(number):
    return ToolCallPart("read_file", '{"path": "a"}', f"c{number}")


def result(number, text="found"):
    return message("tool", text, call_id=f"c{number}", tool="read_file")


def parts_of(messages):
    return [part for each in to_model("Be kind.", messages, {}) for part in each.parts][1:]


def test_the_system_prompt_comes_first():
    first, *rest = to_model("Be kind.", [], {})
    assert isinstance(first.parts[0], SystemPromptPart)
    assert first.parts[0].content == "Be kind."
    assert rest == []


def test_what_was_said_keeps_its_order_and_its_sides():
    written = to_model("", [message("user", "Hello"), reply(TextPart("Hi")), message("user", "Bye")], {})
    assert [type(each) for each in written] == [ModelRequest, ModelRequest, ModelResponse, ModelRequest]
    assert [part.content for each in written[1:] for part in each.parts] == ["Hello", "Hi", "Bye"]


def test_a_reply_comes_back_as_the_provider_gave_it():
    thinking = ThinkingPart("Hm.", id="reasoning", signature="signed", provider_name="p")
    [_, _, response] = to_model("", [message("user", "Hello"), reply(thinking, TextPart("Hi"), call(1))], {})[:3]
    assert response.parts == [thinking, TextPart("Hi"), call(1)]


def test_results_follow_their_calls():
    parts = parts_of([message("user", "Go"), reply(call(1), call(2)), result(1, "one"), result(2, "two")])
    assert [(part.tool_call_id, part.content) for part in parts if isinstance(part, ToolReturnPart)] == [
        ("c1", "one"),
        ("c2", "two"),
    ]


def test_a_call_without_a_result_is_answered_before_the_next_thing_is_said():
    parts = parts_of([reply(call(1), call(2)), result(1), message("user", "What happened?")])
    assert [type(part) for part in parts] == [
        ToolCallPart,
        ToolCallPart,
        ToolReturnPart,
        ToolReturnPart,
        UserPromptPart,
    ]
    assert (parts[3].tool_call_id, parts[3].content) == ("c2", INTERRUPTED)


def test_a_call_without_a_result_at_the_end_is_answered_too():
    last = parts_of([reply(call(1))])[-1]
    assert isinstance(last, ToolReturnPart)
    assert (last.tool_call_id, last.content) == ("c1", INTERRUPTED)


def test_a_result_that_nobody_asked_for_is_left_out():
    parts = parts_of([message("user", "Go"), result(9), reply(TextPart("Hi"))])
    assert not any(isinstance(part, ToolReturnPart) for part in parts)


def test_a_second_result_of_the_same_call_is_left_out():
    parts = parts_of([reply(call(1)), result(1, "first"), result(1, "second")])
    assert [part.content for part in parts if isinstance(part, ToolReturnPart)] == ["first"]


def test_an_answer_that_was_cut_off_is_its_text():
    [part] = parts_of([message("assistant", "Once upon", cut_off=True)])
    assert part == TextPart("Once upon")


def test_uploaded_files_are_named_after_the_text():
    files = [{"name": "a.txt", "path": "/w/a.txt"}, {"name": "b.txt", "path": "/w/b.txt"}]
    [part] = parts_of([message("user", "Read", files=files, images=[])])
    assert part.content == "Read\n[Uploaded files on disk: /w/a.txt, /w/b.txt]"


def test_images_go_with_their_message_and_those_too_far_back_are_mentioned():
    images = [{"id": "i1", "media_type": "image/png"}, {"id": "i2", "media_type": "image/png"}]
    written = to_model("", [message("user", "Look", images=images, files=[])], {"i2": ("image/png", b"bytes")})
    text, gone, shown = written[1].parts[0].content
    assert text == "Look"
    assert "too far back" in gone
    assert isinstance(shown, BinaryContent)
    assert (shown.data, shown.media_type) == (b"bytes", "image/png")


def test_what_is_kept_of_a_reply_can_be_written_as_json_and_leaves_out_what_is_empty():
    data = to_data(ModelResponse(parts=[TextPart("Hi")], timestamp=NOON), "", [])
    assert set(data) == {"response"}
    data = to_data(ModelResponse(parts=[TextPart("Hi")], timestamp=NOON), "Hm.", [{"call_id": "c"}])
    assert (data["thinking"], data["tool_calls"]) == ("Hm.", [{"call_id": "c"}])


def test_open_calls_are_those_of_the_last_reply_without_a_result():
    assert open_calls([reply(call(1), call(2), call(3)), result(2)]) == [call(1), call(3)]
    assert open_calls([reply(call(1)), result(1)]) == []
    assert open_calls([reply(call(1)), message("user", "Never mind")]) == []
    assert open_calls([]) == []


def test_what_stands_beside_the_conversation_is_not_sent_and_parts_no_call_from_its_result():
    beside = [message(role, "beside") for role in ("planning", "plan", "subagent", "summary")]
    said = [message("user", "Go"), reply(call(1)), *beside, result(1, "one")]
    assert "beside" not in str(to_model("", said, {}))
    assert INTERRUPTED not in str(to_model("", said, {}))
    assert open_calls(said) == []
    assert open_calls(said[:-1]) == [call(1)]


def test_a_notice_is_read_by_the_model():
    assert parts_of([message("notice", "Come to an end.")])[-1].content == "Come to an end."


def test_a_reply_without_a_word_is_not_sent():
    parts = parts_of([message("user", "Go"), reply(TextPart("")), message("user", "Well?")])
    assert [part.content for part in parts] == ["Go", "Well?"]
