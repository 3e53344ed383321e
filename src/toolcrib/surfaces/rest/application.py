"""The ASGI application: gate, route, answer; every error becomes an answer in one place.

``GET /tools/{id}`` is asked far more often than everything else, so it has a path of its own through the same gate.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from opentelemetry import propagate, trace
from starlette.requests import Request

from toolcrib.calling.blocking import in_thread
from toolcrib.core.errors import ToolcribError
from toolcrib.core.roles import Role
from toolcrib.surfaces.auth import require
from toolcrib.surfaces.rest.answers import problem_answer
from toolcrib.surfaces.rest.endpoints import Endpoint
from toolcrib.surfaces.rest.rendered import RenderedEntries, headers_of
from toolcrib.surfaces.rest.routing import Router
from toolcrib.surfaces.rest.service import Service

logger = logging.getLogger("toolcrib.http")
_tracer = trace.get_tracer("toolcrib")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Mounted = Callable[[Scope, Receive, Send], Awaitable[None]]

_TOOLS = "/tools/"
_SLOW_SECONDS = 1.0


class Application:
    """``mounts`` are further ASGI applications by path prefix, behind the same gate with the role they need.

    ``start`` runs before the first request, ``stop`` after the last.
    """

    def __init__(
        self,
        service: Service,
        endpoints: Sequence[Endpoint],
        rendered: RenderedEntries,
        *,
        mounts: Mapping[str, tuple[Role | None, Mounted]] | None = None,
        start: Callable[[], Awaitable[None]] | None = None,
        stop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.service = service
        self._router = Router(endpoints, service.metrics)
        self._rendered = rendered
        self._mounts = dict(mounts or {})
        self._start = start
        self._stop = stop
        self._remote = service.catalogue.remote
        self._reserved = frozenset(
            endpoint.path[len(_TOOLS) :] for endpoint in endpoints if endpoint.path.startswith(_TOOLS)
        )
        # Where every request is logged or traced, all of them go the long way.
        self._short = not (service.log_requests or _is_traced())
        self._observe_get = service.metrics.route("GET", "/tools/{tool_id}")
        self._observe_unknown = service.metrics.route("-", "-")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            name = self._plain_get(scope)
            if name:
                await self._get_tool(name, scope, receive, send)
            else:
                await _Exchange(self, scope, receive, send).run()
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    # The short way

    def _plain_get(self, scope: Scope) -> str:
        """The tool's name where the request is the common one."""
        path: str = scope["path"]
        if scope["method"] != "GET" or not self._short or not path.startswith(_TOOLS):
            return ""
        name = path[len(_TOOLS) :]
        return "" if "/" in name or name in self._reserved else name

    async def _get_tool(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        status = 200
        try:
            require(await self.service.guard.admit(scope), Role.READER)
            if self._remote:
                rendered = await in_thread(self._rendered.get, name)
            else:
                rendered = self._rendered.get(name)
        except ToolcribError as error:
            answer = problem_answer(error)
            status = answer.status_code
            await answer(scope, receive, send)
        except Exception as error:
            logger.exception("GET /tools/{tool_id} broke")
            answer = problem_answer(error)
            status = answer.status_code
            await answer(scope, receive, send)
        else:
            body, _, etag, _ = rendered
            headers = headers_of(rendered)
            if _unchanged(scope["headers"], etag):
                status, body, headers = 304, b"", [(b"etag", etag)]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        self._observe_get(status, time.perf_counter() - started)

    # Start and end

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            if self._start is not None:
                await self._start()
        except Exception as error:
            logger.exception("the service could not start")
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        if self._stop is not None:
            await self._stop()
        await send({"type": "lifespan.shutdown.complete"})


def _is_traced() -> bool:
    """Whether somebody installed an OpenTelemetry SDK to send spans to."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider)


def _unchanged(headers: Sequence[tuple[bytes, bytes]], etag: bytes) -> bool:
    for name, value in headers:
        if name == b"if-none-match":
            return value == b"*" or etag in (tag.strip().removeprefix(b"W/") for tag in value.split(b","))
    return False


def _announces_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )


class _Exchange:
    """One request and its answer, the long way."""

    def __init__(self, application: Application, scope: Scope, receive: Receive, send: Send) -> None:
        self._application = application
        self._scope = scope
        self._receive = receive
        self._outer_send = send
        self._status = 0
        self._unread = _announces_body(scope)
        self._route = "-"
        self._observe = application._observe_unknown
        self._principal = ""

    async def run(self) -> None:
        service = self._application.service
        started = time.perf_counter()
        service.metrics.in_flight.inc()
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in self._scope["headers"]}
        with _tracer.start_as_current_span(
            f"{self._scope['method']:.20}", context=propagate.extract(carrier), kind=trace.SpanKind.SERVER
        ) as span:
            try:
                await self._answer()
            finally:
                seconds = time.perf_counter() - started
                service.metrics.in_flight.dec()
                self._observe(self._status, seconds)
                span.update_name(f"{self._scope['method']:.20} {self._route}")
                span.set_attribute("http.response.status_code", self._status)
                span.set_attribute("http.route", self._route)
                self._report(seconds)

    async def _answer(self) -> None:
        try:
            principal = await self._application.service.guard.admit(self._scope)
            self._principal = principal.name
            self._scope["toolcrib.principal"] = principal
            mounted = self._mounted()
            if mounted is not None:
                role, application = mounted
                require(principal, role)
                await application(self._scope, self._receive_piece, self._send)
                return
            endpoint, parameters, self._observe = self._application._router.find(
                self._scope["method"], self._scope["path"]
            )
            self._route = endpoint.path
            require(principal, endpoint.role)
            self._scope["path_params"] = parameters
            response = await endpoint.handle(self._application.service, Request(self._scope, self._receive_piece))
        except ToolcribError as error:
            response = problem_answer(error)
        except Exception as error:  # the last line: whatever broke, the caller gets an answer and the log the reason
            logger.exception("%s %s broke", self._scope["method"], self._route)
            response = problem_answer(error)
        if self._status:
            raise RuntimeError("an answer broke after it had begun")
        await response(self._scope, self._receive, self._send)

    async def _receive_piece(self) -> Message:
        message = await self._receive()
        if not message.get("more_body", False):
            self._unread = False
        return message

    def _mounted(self) -> tuple[Role | None, Mounted] | None:
        path: str = self._scope["path"]
        for prefix, mounted in self._application._mounts.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                self._route = prefix
                self._observe = self._application.service.metrics.route("-", prefix)
                return mounted
        return None

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            if self._unread:  # the rest of the body is not wanted, so the connection cannot go on
                message["headers"].append((b"connection", b"close"))
        elif self._scope["method"] == "HEAD":
            message["body"] = b""
        await self._outer_send(message)

    def _report(self, seconds: float) -> None:
        service = self._application.service
        reading = self._scope["method"] in ("GET", "HEAD")
        if reading and self._status < 400 and seconds < _SLOW_SECONDS and not service.log_requests:
            return
        level = logging.ERROR if self._status >= 500 else logging.INFO
        details = {
            "method": self._scope["method"][:20],
            "route": self._route,
            "path": self._scope["path"][:200],
            "status": self._status,
            "milliseconds": round(seconds * 1000, 2),
            "principal": self._principal,
            "client": (self._scope.get("client") or ("",))[0],
        }
        logger.log(level, "%s %s %s", details["method"], self._route, self._status, extra={"details": details})
