"""Tools of an MCP server.

``binding.mcp`` is the address of a server (``https://host/mcp``) or a command that starts one on its standard streams.
The tool has its own name there unless the binding ends in ``#other-name``. A command comes from whoever published the
tool, so it is started only if the setting ``mcp_commands`` lists it word for word.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.adapters.http import DEFAULT_MAX_BYTES, HttpCaller, Reply
from toolcrib.adapters.runners.bound import BoundRunner, Credentials, check_values, open_credentials, trace_to_send
from toolcrib.adapters.runners.http_service import credential_headers
from toolcrib.core.addresses import is_url
from toolcrib.core.content import Audio, File, Image
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import DeniedError, MissingDependencyError, ToolcribError, ToolFailedError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.formats.mcp import read_block

try:
    import httpx2
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import CallToolResult, TextContent
except ImportError as error:
    raise MissingDependencyError("the MCP SDK", extra="mcp") from error

_MAX_LINES = 10_000
"""In an answer that comes as events. The SDK reads them all in one step, and may log a line for each."""


@dataclass(eq=False)
class McpRunner(BoundRunner):
    """One connection per call: a tool call holds no session open."""

    caller: HttpCaller
    commands: Sequence[str] = ()
    traced: bool = False
    """Whether the server is told which trace the call belongs to."""

    async def __call__(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        context: ToolContext,
        credentials: Credentials | None = None,
    ) -> Any:
        spec = tool.spec
        async with self.deadline(spec, context) as seconds:
            headers = trace_to_send() if self.traced else {}
            headers |= credential_headers(spec.name, await open_credentials(credentials))
            try:
                async with self._client(spec, headers, seconds) as client:
                    client.session.validate_tool_result = _unjudged  # type: ignore[method-assign]
                    answer = await client.call_tool(spec.binding.mcp_tool or spec.name, arguments)
            except (MCPError, OSError, httpx2.HTTPError, ExceptionGroup) as error:
                raise _failure(spec.name, error) from None
        return _value(spec, answer)

    @contextlib.asynccontextmanager
    async def _client(self, spec: ToolSpec, headers: Mapping[str, str], seconds: float) -> AsyncIterator[Client]:
        target = spec.binding.mcp_server
        if not is_url(target):
            async with Client(self._command(target)) as client:
                yield client
            return
        transport = _GuardedTransport(self.caller, spec.name, seconds)
        async with (
            httpx2.AsyncClient(transport=transport, headers=dict(headers), trust_env=False) as http,
            Client(streamable_http_client(target, http_client=http, terminate_on_close=False)) as client,
        ):
            yield client

    def _command(self, target: str) -> StdioServerParameters:
        if target not in self.commands:
            raise DeniedError(
                f"the command {target!r} may not be started as an MCP server; list it in TOOLCRIB_MCP_COMMANDS",
                rule="mcp_commands",
            )
        program, *words = shlex.split(target)
        return StdioServerParameters(command=program, args=words)


class _GuardedTransport(httpx2.AsyncBaseTransport):
    """The SDK's requests through our caller. A tool call needs POST alone; the server's own stream is declined.

    An answer that says it is compressed is not undone here either: little can become more than the machine holds.
    """

    def __init__(self, caller: HttpCaller, name: str, seconds: float) -> None:
        self._caller = caller
        self._name = name
        self._seconds = seconds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return httpx2.Response(405, request=request)
        body = await request.aread()
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in {"host", "content-length", "accept-encoding", "connection", "transfer-encoding"}
        }
        reply = await self._caller.post(
            str(request.url), body, headers, seconds=self._seconds, max_bytes=DEFAULT_MAX_BYTES
        )
        self._check(reply)
        plain = {name: value for name, value in reply.headers.items() if name != "content-encoding"}
        return httpx2.Response(reply.status, headers=plain, content=reply.body, request=request)

    def _check(self, reply: Reply) -> None:
        check_values(self._name, reply.body)
        if "event-stream" in reply.headers.get("content-type", "").lower():
            lines = reply.body.count(b"\n") + reply.body.count(b"\r")
            if lines > _MAX_LINES:
                raise ToolFailedError(self._name, f"its MCP server sent events of more than {_MAX_LINES:,} lines")


async def _unjudged(name: str, result: CallToolResult) -> None:
    """The SDK would judge a result by the schema that the server itself sends, whose patterns may run for ever.

    What counts is the description in the catalogue, by which every call is checked.
    """


def _value(spec: ToolSpec, answer: CallToolResult) -> Any:
    """What its schema is about, or else all of its content."""
    texts = [part.text for part in answer.content if isinstance(part, TextContent)]
    if answer.is_error:
        raise ToolFailedError(spec.name, "; ".join(texts) or "its MCP server reported an error")
    parts = [read_block(part.model_dump(mode="json", by_alias=True, exclude_none=True)) for part in answer.content]
    holds_media = any(isinstance(part, Image | Audio | File) for part in parts)
    if answer.structured_content is not None and (spec.returns or not holds_media):
        return answer.structured_content
    return parts[0] if len(parts) == 1 else parts


def _failure(name: str, error: BaseException) -> BaseException:
    """What went wrong, out of the task groups that the SDK works in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolcribError | TimeoutError):
        return error
    return ToolFailedError(name, f"its MCP server failed: {error}", cause_type=type(error).__name__)
