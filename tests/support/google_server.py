"""A scripted provider that speaks the Gemini API, for requests that are special to it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from openai_server import Exchange, OpenAIServer, json_of


async def answer(exchange: Exchange) -> None:
    """Answer hello, or call the first tool that is offered."""
    tools = exchange.request.body.get("tools") or []
    declared = [each for tool in tools for each in tool.get("functionDeclarations", ())]
    part: dict[str, Any] = {"text": "Hello."}
    if declared:
        part = {"functionCall": {"name": declared[0]["name"], "args": {"word": "ready"}}}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 1, "totalTokenCount": 6}
    body = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    whole = body | {"usageMetadata": usage, "modelVersion": "m", "responseId": "r"}
    if "alt=sse" in exchange.request.path:
        await exchange.begin()
        await exchange.send(f"data: {json.dumps(whole)}\r\n\r\n".encode())
        await exchange.end()
    else:
        await json_of(whole)(exchange)


@asynccontextmanager
async def google() -> AsyncIterator[OpenAIServer]:
    """Start one that answers and lists two models, one of which is not for conversations."""
    models = [
        {
            "name": "models/gemini-x",
            "displayName": "Gemini X",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent"],
        },
        {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]},
    ]
    routes = {"GET /v1beta/models?pageSize=1000": json_of({"models": models})}
    async with OpenAIServer(always=answer, routes=routes) as provider:
        yield provider
