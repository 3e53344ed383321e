"""The one way of an HTTP request: gate -> route -> role -> handler -> answer.

Every error becomes an answer here, as problem JSON. Every request is counted, and logged and traced if that is wanted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from opentelemetry import propagate, trace
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Lifespan, Message, Receive, Scope, Send

from toolcrib.calling.places import CALLER, Places
from toolcrib.core.errors import OverloadedError, ToolcribError
from toolcrib.core.query.budget import LIMITS
from toolcrib.surfaces.http.bodies import Incoming, Limits
from toolcrib.surfaces.http.errors import MethodNotAllowedError, NoSuchPathError
from toolcrib.surfaces.http.gate import PRINCIPAL, Gate
from toolcrib.surfaces.http.metrics import Metrics
from toolcrib.surfaces.http.problems import problem_answer
from toolcrib.surfaces.http.refusals import Refusals
from toolcrib.surfaces.http.routes import ROUTE

logger = logging.getLogger("toolcrib.http")

_SLOW_SECONDS = 1.0
_NOWHERE = ("-", "-")


class Application:
    """The ASGI application: ``routes`` behind ``gate``. ``lifespan`` is what happens before and after all requests.

    ``under_way`` are the clients, by address and port, whose request is being answered. One caller may have half of
    the requests with a body: what takes long has one. What there is only so much of is shared by those whom the gate
    lets in. Reads that go well are logged only with ``log_requests``; a request becomes a span only with a ``tracer``.
    """

    def __init__(
        self,
        gate: Gate,
        routes: Sequence[BaseRoute],
        metrics: Metrics,
        limits: Limits,
        *,
        refusals: Refusals | None = None,
        log_requests: bool = False,
        tracer: trace.Tracer | None = None,
        lifespan: Lifespan[Any] | None = None,
    ) -> None:
        self.gate = gate
        self.metrics = metrics
        self.refusals = refusals or Refusals(None)
        self.limits = limits
        self.under_way: set[tuple[Any, ...]] = set()
        self.bodies = Places("requests with a body", limits.under_way, each=limits.under_way // 2)
        self.log_requests = log_requests
        self.router = Router(routes, redirect_slashes=False, default=_nothing_here, lifespan=lifespan)
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.router.lifespan(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif self._tracer is None:
            await _Exchange(self, scope, receive, send).run()
        else:
            await self._traced(self._tracer, _Exchange(self, scope, receive, send), scope)

    def clients(self) -> set[tuple[str, str]]:
        """Address and port of those whose request is being answered; any thread may ask."""
        return {(str(client[0]), str(client[1])) for client in self.under_way.copy() if client}

    async def _traced(self, tracer: trace.Tracer, exchange: _Exchange, scope: Scope) -> None:
        carrier = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        method, context = f"{scope['method']:.20}", propagate.extract(carrier)
        with tracer.start_as_current_span(method, context=context, kind=trace.SpanKind.SERVER) as span:
            try:
                await exchange.run()
            finally:
                route = scope.get(ROUTE, _NOWHERE)[1]
                span.update_name(f"{method} {route}")
                span.set_attribute("http.response.status_code", exchange.status)
                span.set_attribute("http.route", route)


class _Exchange:
    """One request and its answer. ``status`` is 0 until the answer begins."""

    __slots__ = ("_application", "_body", "_receive", "_scope", "_send", "status")

    def __init__(self, application: Application, scope: Scope, receive: Receive, send: Send) -> None:
        self._application = application
        self._scope = scope
        self._body = Incoming.of(scope, receive, application.limits)
        self._receive = self._body or receive
        self._send = send
        self.status = 0

    async def run(self) -> None:
        started = time.perf_counter()
        metrics = self._application.metrics
        client = tuple(self._scope.get("client") or ())
        metrics.in_flight.inc()
        self._application.under_way.add(client)
        try:
            await self._answer()
        finally:
            seconds = time.perf_counter() - started
            self._application.under_way.discard(client)
            metrics.in_flight.dec()
            method, route = self._scope.get(ROUTE, _NOWHERE)
            metrics.answered(method, route, self.status, seconds)
            self._report(route, seconds)

    async def _answer(self) -> None:
        scope = self._scope
        try:
            scope[PRINCIPAL] = principal = await self._application.gate.admit(scope)
            CALLER.set(principal.key or str((scope.get("client") or ("nobody",))[0]))
            LIMITS.set(self._application.limits.query)
            scope["app"] = self._application  # so that Starlette raises, and its errors are answered here too
            if self._body is None:
                await self._application.router(scope, self._receive, self.send)
            else:
                await self._take_in(principal.key)
        except Exception as error:
            if self.status:
                raise  # the answer has begun: all that is left is to break the connection
            await self._application.refusals.record(scope, error)
            answer = problem_answer(self._explained(error))
            await answer(scope, self._receive, self.send)

    async def _take_in(self, caller: str) -> None:
        """Answer a request with a body, unless the caller has too many such requests under way: then refuse at once."""
        bodies = self._application.bodies
        if not bodies.try_take(caller):
            raise OverloadedError("too many of your requests are being answered already; try again in a moment")
        try:
            await self._application.router(self._scope, self._receive, self.send)
        finally:
            bodies.give_back(caller)

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, HTTPException):
            return _routing_error(self._application.router.routes, self._scope, error.status_code)
        if not isinstance(error, ToolcribError):  # a defect: the caller gets an answer and the log the reason
            logger.error("%s %s broke", self._scope["method"], self._scope.get(ROUTE, _NOWHERE)[1], exc_info=error)
        return error

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            if self._body is not None and not self._body.complete:
                headers.append((b"connection", b"close"))  # the rest of the body stays unread
            message["headers"] = headers
        elif self._scope["method"] == "HEAD":
            message["body"] = b""
        await self._send(message)

    def _report(self, route: str, seconds: float) -> None:
        scope, status = self._scope, self.status
        went_well = scope["method"] in ("GET", "HEAD") and status < 400 and seconds < _SLOW_SECONDS
        if went_well and not self._application.log_requests:
            return
        principal = scope.get(PRINCIPAL)
        details = {
            "method": scope["method"][:20],
            "route": route,
            "path": scope["path"][:200],
            "status": status,
            "milliseconds": round(seconds * 1000, 2),
            "principal": principal.name if principal else "",
            "client": (scope.get("client") or ("",))[0],
        }
        level = logging.ERROR if status >= 500 else logging.INFO
        logger.log(level, "%s %s %s", details["method"], route, status, extra={"details": details})


async def _nothing_here(scope: Scope, _receive: Receive, _send: Send) -> None:
    raise NoSuchPathError(f"there is nothing at {scope['path']!r:.100}; GET /openapi.json says what there is")


def _routing_error(routes: Sequence[BaseRoute], scope: Scope, status: int) -> ToolcribError:
    """What Starlette's own refusal means: another method, or no such file."""
    if status != 405:
        return NoSuchPathError(f"there is nothing at {scope['path']!r:.100}")
    partial = [route for route in routes if isinstance(route, Route) and route.matches(scope)[0] is Match.PARTIAL]
    ways = tuple(sorted({way for route in partial for way in route.methods or ()} or {"GET", "HEAD"}))
    return MethodNotAllowedError(f"{scope['method']:.20} is not possible here; use {' or '.join(ways)}", ways)
