"""The MCP protocol of both eras, by the SDK. Its import takes seconds, so the first request imports this module."""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from wakeful.core.errors import WakefulError
from wakeful.core.identity import ScopeTooSmall, includes
from wakeful.core.resources import find_shortage
from wakeful.http.auth import identity_of
from wakeful.http.connections import waiting
from wakeful.http.services import Services
from wakeful.mcp_server import acting, tools
from wakeful.mcp_server.tools import Answer, Call, McpTool

log = logging.getLogger(__name__)

TOOLS: Mapping[str, McpTool] = {tool.name: tool for tool in (*tools.TOOLS, *acting.BOOKING_TOOLS, *acting.ASKING_TOOLS)}
INSTRUCTIONS = (
    "Wakeful is an alarm for agents: book_wake lets one of the user's agents do a task later or repeatedly, on a "
    "server that stays up when this conversation has ended. ask_agent talks with one now. why explains what happened."
)


class Protocol:
    """Answers MCP requests for the caller that the gate has authenticated. Nothing is kept between requests."""

    def __init__(self, services: Services, version: str) -> None:
        self._services = services
        self._server: Server[Any] = Server(
            "wakeful",
            version=version,
            title="Wakeful",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        # One for each request: the tasks of a request end with it, and nothing has to be closed with the server. Its
        # own check of Host is off, since the gate has checked it.
        manager = StreamableHTTPSessionManager(self._server, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def _list(self, context: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        caller = identity_of(context.request)
        return ListToolsResult(tools=[_to_tool(tool) for tool in TOOLS.values() if includes(caller.scope, tool.scope)])

    async def _call(self, context: Any, params: CallToolRequestParams) -> CallToolResult:
        request: Request = context.request
        caller = identity_of(request)
        tool = TOOLS.get(params.name)
        if tool is None:
            shown = [each.name for each in TOOLS.values() if includes(caller.scope, each.scope)]
            message = f"There is no tool {params.name[:100]!r}. This token has: {', '.join(shown)}."
            raise MCPError(INVALID_PARAMS, message)
        call = Call(
            services=self._services,
            caller=caller,
            progress=context.session.report_progress,
            waiting=partial(waiting, request.scope["state"]),
        )
        try:
            if not includes(caller.scope, tool.scope):
                raise ScopeTooSmall(caller.scope, tool.scope)
            return _to_result(await tool(call, params.arguments or {}))
        except WakefulError as error:
            return _refuse(error)
        except OSError as error:
            shortage = find_shortage(error)
            if shortage is None:
                raise
            return _refuse(shortage)


def _to_tool(tool: McpTool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=False,
        ),
    )


def _to_result(answer: Answer) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=answer.text)], structured_content=answer.content.model_dump(mode="json")
    )


def _refuse(error: WakefulError) -> CallToolResult:
    text = " ".join(filter(None, (error.message, error.hint)))
    return CallToolResult(content=[TextContent(text=text)], is_error=True)
