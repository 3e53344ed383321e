"""The REST door: one file a resource, each with its part of the table of endpoints."""

from __future__ import annotations

from toolcrib.surfaces.http.endpoints import Endpoint
from toolcrib.surfaces.rest import (
    audit,
    bundles,
    definitions,
    health,
    pages,
    queries,
    runs,
    search,
    sessions,
    stacking,
    tools,
    versions,
)
from toolcrib.surfaces.rest.rendered import RenderedEntries
from toolcrib.surfaces.rest.service import Service

__all__ = ["ENDPOINTS", "RenderedEntries", "Service"]

ENDPOINTS: tuple[Endpoint[Service], ...] = (
    *search.ENDPOINTS,  # before the tools: one may be called 'search'
    *tools.ENDPOINTS,
    *runs.ENDPOINTS,
    *sessions.ENDPOINTS,
    *queries.ENDPOINTS,
    *definitions.ENDPOINTS,
    *stacking.ENDPOINTS,
    *versions.ENDPOINTS,
    *bundles.ENDPOINTS,
    *audit.ENDPOINTS,
    *health.ENDPOINTS,
    *pages.ENDPOINTS,
)
