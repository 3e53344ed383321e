"""The REST door, with GraphQL at ``/graphql``: one ASGI application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from toolcrib.core.roles import Role
from toolcrib.surfaces.rest import code, graphs, queries, status, tools, using, versions
from toolcrib.surfaces.rest.answers import json_bytes
from toolcrib.surfaces.rest.application import Application, Mounted
from toolcrib.surfaces.rest.asking import entry_bytes
from toolcrib.surfaces.rest.endpoints import Endpoint
from toolcrib.surfaces.rest.openapi import describe
from toolcrib.surfaces.rest.rendered import RenderedEntries
from toolcrib.surfaces.rest.service import Limits, Service

__all__ = ["ENDPOINTS", "Application", "Limits", "Service", "create_application"]

ENDPOINTS: tuple[Endpoint, ...] = (
    *tools.ENDPOINTS,
    *queries.ENDPOINTS,
    *using.ENDPOINTS,
    *versions.ENDPOINTS,
    *code.ENDPOINTS,
    *graphs.ENDPOINTS,
    *status.ENDPOINTS,
)


def create_application(
    service: Service,
    *,
    mounts: Mapping[str, tuple[Role | None, Mounted]] | None = None,
    start: Callable[[], Awaitable[None]] | None = None,
    stop: Callable[[], Awaitable[None]] | None = None,
) -> Application:
    """The whole service. ``start`` and ``stop`` run before the first and after the last request."""
    described = describe(ENDPOINTS, service.version)
    endpoints = (*ENDPOINTS, status.openapi_endpoint(json_bytes(described)))
    rendered = RenderedEntries(service.catalogue, entry_bytes, service.limits.rendered_bytes)
    return Application(service, endpoints, rendered, mounts=mounts, start=start, stop=stop)
