import asyncio

import pytest
from pydantic_ai.messages import ModelRequest, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters

from wakeful.models.errors import ModelBusy
from wakeful.models.scripted import ScriptedModel, scripted
from wakeful.models.streaming import LocalCall, Say, Spend, Think

PLAIN = ModelRequestParameters()
HELLO = ModelRequest.user_text_prompt("Hello?")


async def test_a_turn_is_played_piece_by_piece():
    with scripted([Think("Hm."), Say("Hel"), Say("lo"), LocalCall("f", {"a": 1}, id="c"), Spend(3, 4)]) as model:
        response = await model.request([HELLO], None, PLAIN)
    assert response.parts == [ThinkingPart("Hm."), TextPart("Hello"), ToolCallPart("f", '{"a":1}', "c")]
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 4)
    assert response.finish_reason == "tool_call"
    assert model.asked[0].messages == [HELLO]


async def test_a_hook_holds_the_turn_in_the_middle():
    gate = asyncio.Event()
    with scripted([Say("one "), gate.wait, 0, Say("two")]) as model:
        asking = asyncio.create_task(model.request([HELLO], None, PLAIN))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not asking.done()
        gate.set()
        assert (await asking).parts == [TextPart("one two")]


async def test_an_exception_is_raised_where_it_stands():
    with scripted([Say("one"), ModelBusy("m", "no.")]) as model, pytest.raises(ModelBusy):
        await model.request([HELLO], None, PLAIN)


def test_a_script_that_is_not_used_up_fails_the_test():
    with pytest.raises(AssertionError, match="2 turns, and the model was asked 0 times"), scripted([], []):
        pass


async def test_a_script_that_is_too_short_fails_at_once_and_at_the_end():
    model = ScriptedModel()
    with pytest.raises(AssertionError, match="asked 1 times"):
        await model.request([HELLO], None, PLAIN)
    with pytest.raises(AssertionError):
        model.check_used_up()


def test_a_failure_in_the_block_is_not_hidden_by_the_script():
    with pytest.raises(ZeroDivisionError), scripted([Say("never asked")]):
        raise ZeroDivisionError
