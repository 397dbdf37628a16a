"""Test a model with a short request that offers it one tool, so that a wrong name, key or address is found early.

A local model may have to be loaded first, which takes minutes. So a test goes on in the background: the same
request again returns its result, or that it still waits.
"""

import asyncio
import re
import time
from dataclasses import dataclass, field, replace

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from wakeful.core.errors import WakefulError
from wakeful.core.records import ToolCalls
from wakeful.models.by_name import Models
from wakeful.models.errors import ModelBusy, ModelFailed, ModelSilent, ProviderMissing, quote
from wakeful.models.names import DEMO, NoSuchModel
from wakeful.models.rules import ModelKeyMissing, ModelKeyUnreadable, ModelTrial, Problem, has_text_call

ANSWER_WITHIN = 20.0  # seconds; a person waits for the result
PATIENCE = 60.0  # seconds for a provider's answer
LOADING_PATIENCE = 600.0  # for a local model
LOADING_PAUSE = 1.0  # between requests to a server that says that it is loading
_TOOL = "report_ready"
_ASK = f"Call the tool {_TOOL} with the word 'ready'. If you cannot call tools, answer with the one word: ready"
_ASK_PLAIN = "Answer with the one word: ready"
_SHOWN = 200  # characters of the answer
_NO_TOOLS = re.compile(r"\btools?\b|\bfunctions?\b", re.IGNORECASE)
_CALLS = "It calls tools."
_AS_TEXT = (
    "It wrote its tool call as text, which is not made, so agents with this model cannot use tools. Its server may "
    "need an option for tool calls."
)
_NONE = "It did not call the tool that it was offered, so agents with this model cannot use tools."
_OFFERED = ToolDefinition(
    name=_TOOL,
    description="Report that you are ready.",
    parameters_json_schema={
        "type": "object",
        "properties": {"word": {"type": "string", "description": "The word 'ready'."}},
        "required": ["word"],
    },
)


@dataclass(slots=True)
class _Running:
    """A test in progress."""

    began: float
    task: asyncio.Task[ModelTrial] = field(init=False)
    is_loading: bool = False


class ModelTests:
    """Tests of models, one at a time for each."""

    def __init__(self, models: Models, *, answer_within: float = ANSWER_WITHIN) -> None:
        self._models = models
        self._answer_within = answer_within
        self._running: dict[str, _Running] = {}

    async def test(self, name: str) -> ModelTrial:
        """Test a model, or join the test that is in progress. An error of the provider is part of the result."""
        running = self._running.get(name)
        if running is None:
            running = self._running[name] = _Running(time.monotonic())
            running.task = asyncio.create_task(self._try(name, running), name=f"test-{name}")
        done, _ = await asyncio.wait({running.task}, timeout=self._answer_within)
        if not done:
            return self._waiting(name, running)
        if self._running.get(name) is running:
            del self._running[name]
        return running.task.result()

    async def aclose(self) -> None:
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _waiting(self, name: str, running: _Running) -> ModelTrial:
        seconds = time.monotonic() - running.began
        place, is_local = self._models.place_of(name), self._models.find(name).is_local
        doing = "is still loading the model" if running.is_loading else "has not answered yet"
        maybe = " A local model may have to be loaded first." if is_local and not running.is_loading else ""
        reason = f"{place} {doing} ({seconds:.0f} s).{maybe} The test goes on."
        return ModelTrial(
            model=name, outcome="waiting", seconds=seconds, reason=reason, is_loading=is_local or running.is_loading
        )

    async def _try(self, name: str, running: _Running) -> ModelTrial:
        trial = ModelTrial(model=name, outcome="failed", seconds=0.0)
        patience = PATIENCE
        try:
            await self._models.prepare(name)
            patience = LOADING_PATIENCE if self._models.find(name).is_local else patience
            trial = replace(trial, subject=self._models.find(name).subject)
            async with asyncio.timeout(patience):
                said, tools, note = await self._ask(name, running)
            abilities = self._models.abilities(name)
            trial = replace(
                trial,
                outcome="answered",
                said=quote(said)[:_SHOWN],
                tool_calls=tools,
                tools_note=note,
                context_window=abilities.context_window,
                output_limit=abilities.output_limit,
            )
        except TimeoutError:
            reason = f"The model {name!r} did not answer within {patience:g} seconds."
            trial = replace(trial, outcome="timed_out", reason=reason, problem="timeout")
        except Exception as error:
            meaning = self._models.translate(error, name)
            if meaning is None:
                raise
            trial = replace(trial, reason=str(meaning), problem=problem_of(meaning))
        return replace(trial, seconds=time.monotonic() - running.began)

    async def _ask(self, name: str, running: _Running) -> tuple[str, ToolCalls, str]:
        """Return what the model said, and how it called the tool, also in words."""
        if name == DEMO:  # it knows sentences, not this tool
            return "ready", "native", _CALLS
        try:
            response = await self._request(name, running, _ASK, [_OFFERED])
        except Exception as error:
            meaning = self._models.translate(error, name)
            if not isinstance(meaning, ModelFailed) or not _is_about_tools(meaning):
                raise
            response = await self._request(name, running, _ASK_PLAIN, [])
            return _text_of(response), "none", _NONE
        calls = [part for part in response.parts if isinstance(part, ToolCallPart) and part.tool_name == _TOOL]
        text = _text_of(response)
        if calls:
            return text or "ready", "native", _CALLS
        return text, "none", _AS_TEXT if has_text_call(text, [_TOOL]) else _NONE

    async def _request(self, name: str, running: _Running, ask: str, tools: list[ToolDefinition]) -> ModelResponse:
        """Send a request; repeat it while the server says that it is loading the model."""
        while True:
            try:
                return await model_request(
                    await self._models.load(name),
                    [ModelRequest(parts=[UserPromptPart(content=ask)])],
                    model_request_parameters=ModelRequestParameters(function_tools=tools, allow_text_output=True),
                )
            except ModelBusy as busy:
                if busy.status != 503 or "loading" not in busy.problem.lower():
                    raise
                running.is_loading = True
                await asyncio.sleep(LOADING_PAUSE)


def problem_of(error: WakefulError) -> Problem:
    """Return the kind of a failure."""
    if isinstance(error, ModelSilent):
        return "timeout"
    if isinstance(error, ModelFailed | ModelBusy):
        return error.kind
    if isinstance(error, NoSuchModel):
        return "name"
    if isinstance(error, ProviderMissing):
        return "package"
    return "key" if isinstance(error, ModelKeyMissing | ModelKeyUnreadable) else "address"


def _is_about_tools(error: ModelFailed) -> bool:
    return error.status in (400, 404, 422, 500, 501) and bool(_NO_TOOLS.search(error.problem))


def _text_of(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()
