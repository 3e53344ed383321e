"""The protocol itself, by its SDK: list and call, over standard input and output or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from toolcrib import __version__
from toolcrib.calling.blocking import READS, in_thread
from toolcrib.calling.sessions import Sessions
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, MissingDependencyError, SessionNotFoundError, ToolcribError
from toolcrib.core.roles import NOBODY, Principal
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import handover
from toolcrib.surfaces.http.accepting import accepts_events
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.errors import MethodNotAllowedError, RequestError
from toolcrib.surfaces.http.gate import PRINCIPAL
from toolcrib.surfaces.mcp.clients import SESSION, giving_name, named, new_session, session_of, told
from toolcrib.surfaces.mcp.reporting import reporting
from toolcrib.surfaces.mcp.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server import Server, ServerRequestContext
    from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
    from starlette.types import Message, Receive, Scope, Send


STREAMED = "toolcrib.mcp.streamed"
"""Says in an ASGI scope that the SDK watches whether the client leaves: it has an answer under way all the time."""
_PROGRESS = b'"progressToken"'


def build_server(toolbox: Toolbox, session: str = "") -> Server:
    """An MCP server of the toolbox's tools. ``session`` is that of its one client, where there is but one."""
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
        caller = in_session(caller, context)
        call = toolbox.call(params.name, params.arguments)
        wanted = context.meta is not None and "progress_token" in context.meta
        run = reporting(context.session.report_progress, call.execute, caller) if wanted else call.execute(caller)
        request = context.request
        try:
            result = await (run if request is None or STREAMED in request.scope else while_connected(request, run))
        except RequestError as error:
            raise MCPError(error.answer.rpc, str(error)) from error
        answer = call.render(result, caller)
        return types.CallToolResult.model_validate(answer | told(result) if caller.session else answer)

    def in_session(caller: ToolContext, context: ServerRequestContext) -> ToolContext:
        """The call in the session that it names, or else in its client's."""
        name = named(context.meta)
        if name is None:
            name = _scope(context).get(SESSION, session)
            return caller.in_session(name) if name else caller
        try:
            return caller.in_session(name)
        except InvalidArgumentsError as error:
            raise MCPError(error.answer.rpc, f"_meta.{error}") from None

    return Server("toolcrib", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


def _principal(context: ServerRequestContext) -> Principal:
    """Who the gate in front of the HTTP door let in; over standard input it is whoever started us."""
    principal: Principal = _scope(context).get(PRINCIPAL, NOBODY)
    return principal


def _scope(context: ServerRequestContext) -> MutableMapping[str, Any]:
    """The ASGI scope of the request; empty over standard input."""
    return getattr(context.request, "scope", None) or {}


async def serve_stdio(toolbox: Toolbox) -> None:
    """Serve one client on standard input and output, until it leaves. All its calls are of one session."""
    server = build_server(toolbox, new_session())
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class HttpDoor:
    """The door as an ASGI application, while :meth:`running`.

    Stateless: every request stands alone, so several processes can answer the same client. The answer goes to the
    connection of its question and nowhere else, so a client that closes it ends its run. It is JSON; to a request that
    asks to be told of progress it is a stream of events, for that has nowhere else to go. ``Host`` and ``Origin`` are
    checked by the gate that stands in front of every HTTP door. What the calls of one client share is in ``sessions``.
    """

    def __init__(self, toolbox: Toolbox, sessions: Sessions[Any] | None = None) -> None:
        self._sessions = None if sessions is None or sessions.refusal else sessions
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
        if scope["method"] == "DELETE" and self._sessions is not None:
            await _end(self._sessions, scope)
            from starlette.responses import Response

            await Response(status_code=204)(scope, receive, send)
            return
        message = await receive()
        given = [message]
        if self._sessions is not None:
            scope[SESSION] = session_of(scope)
            send = send if scope[SESSION] else giving_name(send, message.get("body", b""))

        async def receive_again() -> Message:
            return given.pop() if given else await receive()

        if accepts_events(scope) and _PROGRESS in message.get("body", b""):
            scope[STREAMED] = True
            await self._streaming.handle_request(scope, receive_again, send)
        else:
            await self._plain.handle_request(scope, receive_again, send)


async def _end(sessions: Sessions[Any], scope: Scope) -> None:
    name = session_of(scope)
    if not name:
        raise RequestError("DELETE ends the session that the header Mcp-Session-Id names, and there is none")
    principal: Principal = scope[PRINCIPAL]
    with suppress(SessionNotFoundError):  # nothing was kept in it
        await sessions.end(principal.name, name)
