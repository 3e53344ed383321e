"""Health, readiness and metrics: what an operator's programs ask."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.core.errors import StoreError
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import metrics
from toolcrib.surfaces.http.endpoints import Answered, Endpoint, ref
from toolcrib.surfaces.http.problems import json_answer
from toolcrib.surfaces.rest.service import Service

_PING_SECONDS = 5.0


async def healthz(_service: Service, _request: Request) -> Response:
    return json_answer({"status": "alive"})


async def readyz(service: Service, _request: Request) -> Response:
    for what, ping in {"store": service.catalogue.store.ping, "blob store": service.blobs.ping}.items():
        try:
            async with asyncio.timeout(_PING_SECONDS):
                await in_thread(HOUSEKEEPING, ping)
        except TimeoutError:
            raise StoreError(f"the {what} did not answer within {_PING_SECONDS:g} s") from None
    return json_answer({"status": "ready"})


async def get_metrics(service: Service, _request: Request) -> Response:
    waiting = await in_thread(HOUSEKEEPING, service.catalogue.store.outbox, limit=1000)
    service.metrics.waiting(len(waiting))
    return Response(service.metrics.text(), media_type=metrics.CONTENT_TYPE)


ENDPOINTS = (
    Endpoint(
        "GET", "/healthz", healthz, None, "Operations", "Whether the service is alive",
        answers={200: Answered("It is.", ref("Status"))},
    ),
    Endpoint(
        "GET", "/readyz", readyz, None, "Operations", "Whether the store and the blobs can be reached",
        answers={200: Answered("They can.", ref("Status"))},
    ),
    Endpoint(
        "GET", "/metrics", get_metrics, Role.READER, "Operations", "Prometheus metrics",
        answers={200: Answered("The metrics.", {"type": "string"}, "text/plain")},
    ),
)  # fmt: skip
