"""The result of an MCP tool as text for the model: framed as data, and limited in length."""

from typing import Any

import orjson
from mcp_types import AudioContent, CallToolResult, EmbeddedResource, ImageContent, TextContent, TextResourceContents

from wakeful.domain.quoting import frame
from wakeful.tools.registry import ToolResult

MAX_RESULT = 64_000  # characters


def read_result(result: CallToolResult, server: str, tool: str) -> ToolResult:
    """Convert a result of an MCP tool."""
    text = "\n".join(_text(block) for block in result.content)
    if not text and result.structured_content is not None:
        text = orjson.dumps(result.structured_content, default=str).decode()
    whole = len(text)
    text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()[:MAX_RESULT]
    cut = f"[truncated: {MAX_RESULT:,} of {whole:,} characters are shown]\n" if whole > MAX_RESULT else ""
    kind = "an error" if result.is_error else "a result"
    framed = cut + frame(f"{kind} from the MCP server {server!r}", text or "(nothing)")
    metadata: dict[str, Any] = {"server": server, "tool": tool, "truncated": bool(cut)}
    if result.is_error:
        return ToolResult(text=framed, success=False, metadata=metadata | {"code": "mcp_tool_error"})
    return ToolResult(text=framed, metadata=metadata)


def _text(block: Any) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, {len(block.data) * 3 // 4:,} bytes; it cannot be shown to you]"
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return f"[{resource.uri}]\n{resource.text}"
        case _:
            where = getattr(block, "uri", None) or getattr(getattr(block, "resource", None), "uri", "")
            return f"[{block.type} {where}]".replace(" ]", "]")
