"""The protocol itself, by its SDK: list and call, over standard input and output or over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.calling.blocking import READS, in_thread
from toolcrib.core.errors import MissingDependencyError, ToolcribError
from toolcrib.core.roles import NOBODY, Principal
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import handover, render_result
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.errors import MethodNotAllowedError, RequestError
from toolcrib.surfaces.http.gate import PRINCIPAL
from toolcrib.surfaces.mcp.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
    from starlette.types import Receive, Scope, Send


def build_server(toolbox: Toolbox) -> Server:
    """An MCP server of the toolbox's tools."""
    try:
        from mcp import MCPError, types
        from mcp.server import Server
    except ImportError:
        raise MissingDependencyError("the MCP SDK", extra="mcp") from None

    async def list_tools(context: ServerRequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        try:
            specs, cursor = await toolbox.page(params.cursor if params is not None else None, _principal(context))
        except ToolcribError as error:
            raise MCPError(error.answer.rpc, str(error)) from error
        return types.ListToolsResult(tools=await in_thread(READS, defined, specs), next_cursor=cursor)

    def defined(specs: Sequence[ToolSpec]) -> list[types.Tool]:
        return [types.Tool.model_validate(definition) for definition in handover(specs, "mcp").definitions]

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        call_id = "" if context.request_id is None else str(context.request_id)
        run = toolbox.run(params.name, params.arguments, _principal(context), call_id)
        try:
            result = await (run if context.request is None else while_connected(context.request, run))
        except RequestError as error:
            raise MCPError(error.answer.rpc, str(error)) from error
        return types.CallToolResult.model_validate(render_result("mcp", "", result))

    return Server("toolcrib", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _principal(context: ServerRequestContext) -> Principal:
    """Who the gate in front of the HTTP door let in; over standard input it is whoever started us."""
    scope = getattr(context.request, "scope", None) or {}
    principal: Principal = scope.get(PRINCIPAL, NOBODY)
    return principal


async def serve_stdio(toolbox: Toolbox) -> None:
    """Serve one client on standard input and output, until it leaves."""
    server = build_server(toolbox)
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class HttpDoor:
    """The door as an ASGI application, while :meth:`running`.

    Stateless: every request stands alone, so several processes can answer the same client. The answer goes to the
    connection of its question and nowhere else, so a client that closes it ends its run. ``Host`` and ``Origin`` are
    checked by the gate that stands in front of every HTTP door.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        server = build_server(toolbox)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._manager = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)

    def running(self) -> AbstractAsyncContextManager[None]:
        return self._manager.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":  # the SDK would hold the connection open and never say anything on it
            raise MethodNotAllowedError("nothing is streamed from here; send messages with POST", ("POST",))
        await self._manager.handle_request(scope, receive, send)
