"""A scripted Ollama: its own API (`/api/tags`, `/api/show`, `/api/ps`, `/api/chat`, …) and `/v1/models`."""

import json
from typing import Any

from openai_server import Answer, Exchange, OpenAIServer, json_of, listing

DIGEST = "sha256:0"


def answer(*lines: dict[str, Any], prompt: int = 20, output: int = 5, reason: str = "stop") -> Answer:
    """Answer `/api/chat` with these messages, one per line, and the closing line."""

    async def send(exchange: Exchange) -> None:
        await exchange.begin(headers={"Content-Type": "application/x-ndjson"})
        common = {"model": "m", "created_at": "2026-03-02T12:00:00Z"}
        for line in lines:
            message = {"role": "assistant", "content": ""} | line
            await exchange.send(json.dumps(common | {"message": message, "done": False}).encode() + b"\n")
        end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
        counts = {"prompt_eval_count": prompt, "eval_count": output}
        await exchange.send(json.dumps(common | end | counts).encode() + b"\n")
        await exchange.end()

    return send


def say(*texts: str, **more: Any) -> Answer:
    return answer(*[{"content": each} for each in texts], **more)


def call(name: str, **arguments: Any) -> Answer:
    return answer({"tool_calls": [{"function": {"name": name, "arguments": arguments}}]})


def ollama(
    *script: Answer,
    models: tuple[str, ...] = ("qwen3:8b",),
    own: int = 40_960,
    parameters: str = "",
    loaded: int | None = None,
    capabilities: tuple[str, ...] = ("completion", "tools"),
    always: Answer | None = None,
) -> OpenAIServer:
    """Make one with these models; `own` is the window they were trained with, `loaded` that of the first if loaded."""
    tags = [{"name": name, "model": name, "digest": DIGEST, "details": {"parameter_size": "8B"}} for name in models]
    shown = {
        "parameters": parameters,
        "capabilities": list(capabilities),
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": own},
    }
    running = [] if loaded is None else [{"name": models[0], "context_length": loaded}]
    routes = {
        "GET /api/tags": json_of({"models": tags}),
        "POST /api/show": json_of(shown),
        "GET /api/ps": json_of({"models": running}),
        "GET /api/version": json_of({"version": "0.12.0"}),
        "GET /v1/models": listing(*[{"id": name, "object": "model", "owned_by": "library"} for name in models]),
    }
    return OpenAIServer(*script, routes=routes, always=always)
