"""The HTTP service: REST, GraphQL, MCP and the help pages as one ASGI application, over a running system."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from opentelemetry import trace
from starlette.routing import BaseRoute

from toolcrib import __version__
from toolcrib.bootstrap import System, open_system
from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.calling.places import Places
from toolcrib.core.errors import MissingDependencyError
from toolcrib.core.query.budget import QueryLimits
from toolcrib.core.roles import Role
from toolcrib.formats.archives import ArchiveLimits
from toolcrib.formats.bundle import BundleLimits
from toolcrib.settings import Settings
from toolcrib.surfaces import graphql, rest
from toolcrib.surfaces.collecting import collecting
from toolcrib.surfaces.http.application import Application
from toolcrib.surfaces.http.bodies import Limits, body_first
from toolcrib.surfaces.http.endpoints import Endpoint
from toolcrib.surfaces.http.gate import Access, Gate
from toolcrib.surfaces.http.help import help_routes
from toolcrib.surfaces.http.metrics import Metrics
from toolcrib.surfaces.http.openapi import openapi_endpoint
from toolcrib.surfaces.http.readiness import Readiness
from toolcrib.surfaces.http.refusals import Refusals
from toolcrib.surfaces.http.routes import routes_of, whole
from toolcrib.surfaces.mcp import HttpDoor, Toolbox, large_results
from toolcrib.surfaces.rest.uploads import check_spool

ENDPOINTS: tuple[Endpoint[Any], ...] = (*rest.ENDPOINTS, *graphql.ENDPOINTS)


def application(settings: Settings) -> Application:
    """The whole service as an ASGI application; its lifespan closes what it opened."""
    return application_of(open_system(settings))


def application_of(
    system: System,
    *,
    limits: Limits | None = None,
    query_limits: QueryLimits | None = None,
    tracer: trace.Tracer | None = None,
) -> Application:
    """The doors, put together. Without a ``tracer`` the one of an installed OpenTelemetry SDK is used."""
    system.seal.require()
    settings, catalogue = system.settings, system.catalogue
    system.browsers.processes = settings.workers
    limits = limits or Limits(settings.max_body_bytes, settings.max_upload_bytes)
    query = query_limits or QueryLimits(settings.query_seconds)
    metrics = Metrics(__version__)
    service = rest.Service(
        catalogue,
        system.shared_calls,
        system.blobs,
        system.audit,
        metrics,
        rest.RenderedEntries(catalogue, public_url=settings.service_url),
        settings.spool,
        settings.service_url,
        BundleLimits(code=ArchiveLimits(settings.max_unpacked_bytes)),
        Places("uploads", settings.max_uploads, each=settings.max_uploads // 2),
        Readiness(readiness_parts(system)),
        system.browsers.sessions,
    )
    mcp, refusals = _mcp_door(system), Refusals(system.recorder)
    routes: list[BaseRoute] = [
        *routes_of(rest.endpoints(public_bundles=settings.public_bundles), service),
        *routes_of(graphql.ENDPOINTS, graphql.Graphs(catalogue, refusals, settings.service_url)),
        *routes_of([openapi_endpoint(ENDPOINTS, __version__)], None),
        *([whole("/mcp", Role.RUNNER, body_first(mcp))] if mcp else ()),
        *help_routes(),
    ]
    return Application(
        Gate(Access.of(settings, system.tokens), system.tokens, system.bearer),
        routes,
        metrics,
        replace(limits, under_way=settings.max_connections, query=query),
        refusals=refusals,
        log_requests=settings.log_requests,
        tracer=tracer or _installed_tracer(),
        lifespan=lambda _: _running(system, mcp),
    )


def readiness_parts(system: System) -> dict[str, Callable[[], object]]:
    """Every place that the service must be able to write to."""
    return {
        "store": system.store.ping,
        "audit": system.audit.ping,
        "blob store": system.blobs.ping,
        "upload folder": lambda: check_spool(system.settings.spool),
    }


def _mcp_door(system: System) -> HttpDoor | None:
    """The MCP door if its SDK is installed; the service does without it otherwise."""
    try:
        large = large_results(system.settings, system.settings.workers)
        toolbox = Toolbox(system.shared_calls, catalogue=system.catalogue, large=large)
        return HttpDoor(toolbox, system.browsers.sessions)
    except MissingDependencyError:
        return None


def _installed_tracer() -> trace.Tracer | None:
    """Ours, if somebody installed an OpenTelemetry SDK to send spans to."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return trace.get_tracer("toolcrib")


@asynccontextmanager
async def _running(system: System, mcp: HttpDoor | None) -> AsyncIterator[None]:
    """What goes on beside the requests, and the end of all of it."""
    collector = asyncio.create_task(collecting(system))
    if system.outbox is not None:
        system.outbox.start()
    try:
        if mcp is None:
            yield
        else:
            async with mcp.running():
                yield
    finally:
        collector.cancel()
        await asyncio.gather(collector, return_exceptions=True)
        if system.outbox is not None:
            await in_thread(HOUSEKEEPING, system.outbox.stop)
        await in_thread(HOUSEKEEPING, system.close)
