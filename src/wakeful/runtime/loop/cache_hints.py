"""Cache breakpoints of a session as settings of a model request."""

from collections.abc import Collection

from wakeful.domain.doors.session_config import caching_provider

_SETTINGS = {"system": "cache_instructions", "tools": "cache_tool_definitions", "messages": "cache_messages"}


def cache_settings(model: str, breakpoints: Collection[str]) -> dict[str, bool]:
    """Return the settings for these breakpoints; none for a provider that takes no breakpoints."""
    provider = caching_provider(model)
    return {} if provider is None else {f"{provider}_{_SETTINGS[each]}": True for each in breakpoints}
