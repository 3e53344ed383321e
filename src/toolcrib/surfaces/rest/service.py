"""What the endpoints work with: the catalogue and its neighbours, and how an async door calls them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from starlette.requests import Request

from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.ports import AuditLog, Blobs
from toolcrib.surfaces.auth import Guard, Principal
from toolcrib.surfaces.rest.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Limits:
    """How large and how slow a request may be, and how much memory rendered answers may take."""

    json_bytes: int = 2 * 1024 * 1024
    json_seconds: float = 30.0
    upload_bytes: int = 512 * 1024 * 1024
    upload_seconds: float = 3600.0
    stall_seconds: float = 30.0
    rendered_bytes: int = 256 * 1024 * 1024


@dataclass(slots=True)
class Service:
    """``spool`` is where uploads wait while they come in; ``public_url`` is what the service's own links begin with."""

    catalogue: Catalogue
    calls: Calls
    guard: Guard
    spool: Path
    public_url: str
    metrics: Metrics
    blobs: Blobs | None = None
    audit: AuditLog | None = None
    limits: Limits = field(default_factory=Limits)
    version: str = ""
    log_requests: bool = False


def principal_of(request: Request) -> Principal:
    """Who the gate let in."""
    principal: Principal = request.scope["toolcrib.principal"]
    return principal
