"""What the REST endpoints work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request

from toolcrib.calling.call import Calls
from toolcrib.calling.places import Places
from toolcrib.calling.sessions import Sessions
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.formats.bundle import BundleLimits
from toolcrib.ports import AuditLog, Blobs
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.metrics import Metrics
from toolcrib.surfaces.http.readiness import Readiness
from toolcrib.surfaces.rest.rendered import RenderedEntries


@dataclass(frozen=True, slots=True)
class Service:
    """``spool`` is where uploads wait while they come in, each in a place of ``uploads``.

    ``public_url`` is what the service's own links begin with.
    """

    catalogue: Catalogue
    calls: Calls
    blobs: Blobs
    audit: AuditLog
    metrics: Metrics
    rendered: RenderedEntries
    spool: Path
    public_url: str
    bundle_limits: BundleLimits
    uploads: Places
    readiness: Readiness
    sessions: Sessions[Any]

    def seen_by(self, request: Request) -> CatalogueReader:
        """The tools as the policy lets the caller see them."""
        return self.catalogue.as_seen_by(parameters.principal(request))
