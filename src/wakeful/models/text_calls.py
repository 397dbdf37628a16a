"""Recognises a tool call that a model wrote as text, in the forms of the usual models: nobody makes such a call."""

import re
from collections.abc import Collection

MAX_READ = 200_000  # characters; the rest of a text is not searched
# Marks that only a call has, so a text with one has a call even if its tool does not exist.
_MARKED = re.compile(
    r"<tool_calls?>\s{0,20}(?:[\[{<]|[\w.:-]{1,100}\s{0,20}[{<])|<function=\w|<invoke\s+name=|<\|python_tag\|>"
    r"|\[TOOL_CALLS\]\s{0,20}[\[{\w]|<｜tool▁call|<\|tool_call",
    re.IGNORECASE,
)
_JSON = re.compile(
    r'"(?:name|tool|tool_name|function|function_name)"\s*:\s*"([\w.:-]{1,100})"'
    r'\s*(?:,\s*"(?:arguments|parameters|args|input|tool_input)"\s*:|\})'
)
_PYTHON = re.compile(
    r"^[ \t]*(?:<\|\w{1,40}\|>)?\[?(?:print\()?([A-Za-z_][\w.]{0,99})\((?=\s*(?:\)|\w{1,100}\s*=))(.*)", re.MULTILINE
)
_CODE_SPAN = re.compile(r"(?<!`)`[^`\n]+`(?!`)")


def has_text_call(text: str, tools: Collection[str]) -> bool:
    """Return whether a text has a call of one of these tools, or one that is clearly marked as a call."""
    text = _CODE_SPAN.sub(lambda found: "" if found[0] != text.strip() else found[0], text[:MAX_READ])
    return (
        _MARKED.search(text) is not None
        or any(found[1] in tools for found in _JSON.finditer(text))
        # A sentence can begin like a call, and ends in another way.
        or any(found[1] in tools and found[2].rstrip()[-1:] in ")],>{['\"" for found in _PYTHON.finditer(text))
    )
