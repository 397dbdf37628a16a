"""Recognise the program behind an OpenAI-compatible list of models by its form."""

from collections.abc import Mapping, Sequence
from typing import Any

from wakeful.domain.models.providers import CHAT


def provider_of(data: Sequence[Mapping[str, Any]]) -> str:
    """Return the provider whose list this looks like."""
    owners = {each.get("owned_by") for each in data}
    if "llamacpp" in owners:
        return "llamacpp"
    if "vllm" in owners or any("max_model_len" in each for each in data):
        return "vllm"
    if "library" in owners:
        return "ollama"
    return "lmstudio" if "organization_owner" in owners else CHAT
