"""Bodies of OpenAI's protocol, as far as agents use it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field

from wakeful.domain.types import Agent
from wakeful.server.rest.shapes import Shape
from wakeful.service.completions.completions import Completion

MAX_MODEL = 300  # characters

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": waiting\n\n"


class CompletionBody(BaseModel):
    """A chat completion. Other parameters are ignored; the answer's header X-Wakeful-Ignored names them."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: Annotated[
        str, Field(min_length=1, max_length=MAX_MODEL, description="An agent, as GET /v1/models lists it.")
    ]
    messages: Annotated[
        list[dict[str, Any]],
        Field(
            min_length=1, description="The whole conversation. The last message is one of the user, and is answered."
        ),
    ]
    stream: bool | None = None
    stream_options: dict[str, Any] | None = Field(None, description="`include_usage`: end a stream with the usage.")
    n: int | None = Field(None, description="Only 1.")
    tool_choice: str | dict[str, Any] | None = Field(
        None, description="Refused, unless `auto` or `none`: an agent has its own tools, and ignores `tools`."
    )
    response_format: dict[str, Any] | None = Field(None, description="Refused, unless its type is `text`.")

    def given(self) -> Mapping[str, Any]:
        """Return every field that was sent."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class AgentModel(Shape):
    """An agent, as a model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["wakeful"] = "wakeful"
    name: str
    description: str

    @classmethod
    def of(cls, model: str, agent: Agent) -> "AgentModel":
        created = int(agent.created_at.timestamp())
        return cls(id=model, created=created, name=agent.name, description=agent.description)


class AgentModels(Shape):
    object: Literal["list"] = "list"
    data: list[AgentModel]


class AnswerMessage(Shape):
    role: Literal["assistant"] = "assistant"
    content: str
    reasoning_content: str | None = None
    refusal: None = None


class Choice(Shape):
    index: Literal[0] = 0
    message: AnswerMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class CompletionUsage(Shape):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, completion: Completion) -> "CompletionUsage":
        asked, answered = completion.input_tokens, completion.output_tokens
        return cls(prompt_tokens=asked, completion_tokens=answered, total_tokens=asked + answered)


class CompletionShape(Shape):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage


class Chunks:
    """Makes the events of one streamed answer."""

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        self._head = {"id": completion_id, "object": "chat.completion.chunk", "created": created, "model": model}

    def role(self) -> bytes:
        return self._choice({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        return self._choice({"content": text})

    def thought(self, text: str) -> bytes:
        return self._choice({"reasoning_content": text})

    def finish(self, reason: str) -> bytes:
        return self._choice({}, reason)

    def usage(self, completion: Completion) -> bytes:
        return _event({**self._head, "choices": [], "usage": CompletionUsage.of(completion).model_dump()})

    def _choice(self, delta: Mapping[str, str], reason: str | None = None) -> bytes:
        return _event({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def error_event(error: Mapping[str, Any]) -> bytes:
    """Return an error in the middle of a stream, which then ends without [DONE]."""
    return _event(error)


def _event(value: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"
