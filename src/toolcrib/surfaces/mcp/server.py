"""The protocol itself, by its SDK: list and call, over standard input and output or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from toolcrib import __version__
from toolcrib.calling.blocking import READS, in_thread
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import MissingDependencyError, ToolcribError
from toolcrib.core.roles import NOBODY, Principal
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import handover
from toolcrib.surfaces.http.accepting import accepts_events
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.errors import MethodNotAllowedError, RequestError
from toolcrib.surfaces.http.gate import PRINCIPAL
from toolcrib.surfaces.mcp.reporting import reporting
from toolcrib.surfaces.mcp.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
    from starlette.types import Message, Receive, Scope, Send


STREAMED = "toolcrib.mcp.streamed"
"""Says in an ASGI scope that the SDK watches whether the client leaves: it has an answer under way all the time."""
_PROGRESS = b'"progressToken"'


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
        caller = ToolContext.of(_principal(context))
        if context.request_id is not None:
            caller = caller.asked_as(str(context.request_id))
        call = toolbox.call(params.name, params.arguments)
        wanted = context.meta is not None and "progress_token" in context.meta
        run = reporting(context.session.report_progress, call.execute, caller) if wanted else call.execute(caller)
        request = context.request
        try:
            result = await (run if request is None or STREAMED in request.scope else while_connected(request, run))
        except RequestError as error:
            raise MCPError(error.answer.rpc, str(error)) from error
        return types.CallToolResult.model_validate(call.render(result, caller))

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
    connection of its question and nowhere else, so a client that closes it ends its run. It is JSON; to a request that
    asks to be told of progress it is a stream of events, for that has nowhere else to go. ``Host`` and ``Origin`` are
    checked by the gate that stands in front of every HTTP door.
    """

    def __init__(self, toolbox: Toolbox) -> None:
        server = build_server(toolbox)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        self._plain = StreamableHTTPSessionManager(app=server, json_response=True, stateless=True)
        self._streaming = StreamableHTTPSessionManager(app=server, json_response=False, stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._plain.run(), self._streaming.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "GET":  # the SDK would hold the connection open and never say anything on it
            raise MethodNotAllowedError("nothing is streamed from here; send messages with POST", ("POST",))
        message = await receive()
        given = [message]

        async def receive_again() -> Message:
            return given.pop() if given else await receive()

        if accepts_events(scope) and _PROGRESS in message.get("body", b""):
            scope[STREAMED] = True
            await self._streaming.handle_request(scope, receive_again, send)
        else:
            await self._plain.handle_request(scope, receive_again, send)
