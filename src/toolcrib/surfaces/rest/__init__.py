"""The REST door: one file a resource, each with its part of the table of endpoints."""

from __future__ import annotations

from dataclasses import replace

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

__all__ = ["ENDPOINTS", "RenderedEntries", "Service", "endpoints"]

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


def endpoints(*, public_bundles: bool) -> tuple[Endpoint[Service], ...]:
    """All of them; with ``public_bundles`` whoever has the link of a bundle needs no credentials for it."""
    if not public_bundles:
        return ENDPOINTS
    return tuple(replace(row, role=None) if row.path == bundles.PATH else row for row in ENDPOINTS)
