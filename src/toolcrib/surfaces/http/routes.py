"""From the table of endpoints to Starlette's routes: each asks for its role, then answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from starlette.requests import Request
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.core.roles import Role, require
from toolcrib.surfaces.http.endpoints import Endpoint, S
from toolcrib.surfaces.http.gate import PRINCIPAL

ROUTE = "toolcrib.route"
"""Where a route leaves its method and path, in the ASGI scope: logs, traces and metrics name them."""


class _Answers(Generic[S]):
    """One endpoint, for those whose role covers the one that it needs."""

    def __init__(self, endpoint: Endpoint[S], served: S) -> None:
        self._handle = endpoint.handle
        self._served = served
        self._role = endpoint.role
        self._route = (endpoint.method, endpoint.path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self._route
        require(scope[PRINCIPAL], self._role)
        response = await self._handle(self._served, Request(scope, receive))
        await response(scope, receive, send)


class _ForRole:
    """Another application, for those whose role covers ``role``."""

    def __init__(self, app: ASGIApp, role: Role | None, path: str) -> None:
        self._app = app
        self._role = role
        self._route = ("-", path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = self._route
        require(scope[PRINCIPAL], self._role)
        await self._app(scope, receive, send)


def routes_of(endpoints: Iterable[Endpoint[S]], served: S) -> list[BaseRoute]:
    """A door's routes; its handlers get ``served``."""
    return [Route(row.path, _Answers(row, served), methods=[row.method]) for row in endpoints]


def whole(path: str, role: Role | None, app: ASGIApp) -> Route:
    """A path that another application answers, whatever the method."""
    return Route(path, _ForRole(app, role, path))


def below(path: str, role: Role | None, app: ASGIApp) -> Mount:
    """Everything below a path, answered by another application."""
    return Mount(path, _ForRole(app, role, path))
