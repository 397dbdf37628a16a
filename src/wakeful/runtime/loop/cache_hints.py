"""Cache breakpoints of a session, in the words of the providers that take them."""

from collections.abc import Collection

_WORDS = {"system": "cache_instructions", "tools": "cache_tool_definitions", "messages": "cache_messages"}


def cache_settings(model: str, breakpoints: Collection[str]) -> dict[str, bool]:
    """Return the settings of a model request; none for a provider that takes no breakpoints."""
    provider = model.partition(":")[0].removeprefix("gateway/")
    if provider not in ("anthropic", "bedrock"):
        return {}
    return {f"{provider}_{_WORDS[each]}": True for each in breakpoints}
