"""Look for servers of local models on this machine: one list request to each usual port, without a key.

What answers is recognised by the form of its list, not by its port. It is only offered to the owner.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from wakeful.models.asking import EndpointFailed, asking, objects, text
from wakeful.models.lists import provider_of, read_chat
from wakeful.models.providers import CHAT, PROVIDERS
from wakeful.models.rules import MAX_LISTED, FoundServer, ListedModel

OLLAMA_PORT = 11_434
DISCOVER_SECONDS = 1.5  # a server on this machine answers at once, or is not there


async def discover(ports: Sequence[int]) -> list[FoundServer]:
    """Return the servers that answer on loopback at these ports."""
    found = await asyncio.gather(*(_probe(port) for port in dict.fromkeys(ports)))
    return [server for server in found if server is not None]


async def _probe(port: int) -> FoundServer | None:
    origin = f"http://127.0.0.1:{port}"
    path = "/api/tags" if port == OLLAMA_PORT else "/v1/models"
    try:
        async with asking(PROVIDERS[CHAT], origin, None, seconds=DISCOVER_SECONDS, is_loopback_only=True) as endpoint:
            return _recognise(origin, await endpoint.get(f"{origin}{path}"))
    except EndpointFailed:
        return None


def _recognise(origin: str, body: Any) -> FoundServer | None:
    tags = objects(body, "models")
    data = objects(body, "data")
    if data is None and tags and all("digest" in each for each in tags):
        names = [name for each in tags if (name := text(each.get("name"))) is not None]
        return _server("ollama", origin, [ListedModel(id=name) for name in names])
    if not data:
        return None
    provider = provider_of(data)
    models = [model for each in data if (model := read_chat(each)) is not None]
    return _server(provider, origin if provider == "ollama" else f"{origin}/v1", models)


def _server(provider: str, address: str, models: list[ListedModel]) -> FoundServer | None:
    if not models:
        return None
    return FoundServer(provider=provider, label=PROVIDERS[provider].label, address=address, models=models[:MAX_LISTED])
