"""What the endpoints work with: the catalogue and its neighbours, and how an async door calls them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from starlette.requests import Request

from toolcrib.calling.call import Guard as RunGuard
from toolcrib.catalogue import Catalogue
from toolcrib.ports import AuditLog, Blobs
from toolcrib.surfaces.auth import Guard, Principal
from toolcrib.surfaces.rest.metrics import Metrics

_P = ParamSpec("_P")
_T = TypeVar("_T")


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
    guard: Guard
    spool: Path
    public_url: str
    metrics: Metrics
    blobs: Blobs | None = None
    audit: AuditLog | None = None
    runs: RunGuard = field(default_factory=RunGuard)
    limits: Limits = field(default_factory=Limits)
    version: str = ""
    log_requests: bool = False
    threads: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 32, "toolcrib"))

    async def call(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call what blocks, in a thread: a write waits for the disk, a query may be long, a policy may be far away."""
        context = contextvars.copy_context()
        work: Callable[[], Any] = partial(context.run, function, *args, **kwargs)
        result: _T = await asyncio.get_running_loop().run_in_executor(self.threads, work)
        return result

    def close(self) -> None:
        self.threads.shutdown(wait=True)


def principal_of(request: Request) -> Principal:
    """Who the gate let in."""
    principal: Principal = request.scope["toolcrib.principal"]
    return principal
