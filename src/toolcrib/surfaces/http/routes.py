"""From the table of endpoints to Starlette's routes: each asks for its role, then answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolcrib.core.limits import Action
from toolcrib.core.roles import Role, require
from toolcrib.surfaces.http.endpoints import Endpoint, S
from toolcrib.surfaces.http.gate import PRINCIPAL

ROUTE = "toolcrib.route"
"""Where a route leaves its method and path, in the ASGI scope: logs, traces and metrics name them."""
ACTION = "toolcrib.action"
"""Where a route leaves what is to be done, in the words of policies and the audit."""


class _ForRole:
    """An application, for those whose role covers ``role``."""

    def __init__(self, app: ASGIApp, role: Role | None, path: str, method: str = "-") -> None:
        self._app = app
        self._role = role
        self._route = (method, path)
        self._action = _action_of(method, path, role)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE], scope[ACTION] = self._route, self._action
        require(scope[PRINCIPAL], self._role)
        await self._app(scope, receive, send)


def _action_of(method: str, path: str, role: Role | None) -> Action:
    if role is Role.RUNNER:
        return "run"
    if role is not Role.PUBLISHER:
        return "read"
    if method == "DELETE":
        return "delete"
    return "update" if "{tool_id}" in path else "create"


def routes_of(endpoints: Iterable[Endpoint[S]], served: S) -> list[BaseRoute]:
    """A door's routes; its handlers get ``served``."""

    def answering(handle: Callable[[S, Request], Awaitable[Response]]) -> ASGIApp:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(served, Request(scope, receive))
            await response(scope, receive, send)

        return answer

    return [
        Route(row.path, _ForRole(answering(row.handle), row.role, row.path, row.method), methods=[row.method])
        for row in endpoints
    ]


def whole(path: str, role: Role | None, app: ASGIApp) -> Route:
    """A path that another application answers, whatever the method."""
    return Route(path, _ForRole(app, role, path))


def below(path: str, role: Role | None, app: ASGIApp) -> Mount:
    """Everything below a path, answered by another application."""
    return Mount(path, _ForRole(app, role, path))
