"""Health, readiness and metrics: what an operator's programs ask."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import metrics
from toolcrib.surfaces.http.endpoints import Answered, Endpoint, ref
from toolcrib.surfaces.http.problems import json_answer, problem_answer
from toolcrib.surfaces.rest.service import Service

NOT_READY = 503
"""Whatever is wrong: who asks sends nobody here until it is mended. The ``code`` tells what it is."""


async def healthz(_service: Service, _request: Request) -> Response:
    return json_answer({"status": "alive"})


async def readyz(service: Service, _request: Request) -> Response:
    problem = await service.readiness.problem()
    if problem is None:
        return json_answer({"status": "ready"})
    return problem_answer(problem, NOT_READY)


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
        "GET", "/readyz", readyz, None, "Operations", "Whether everything that the service needs can be written",
        answers={200: Answered("It can.", ref("Status"))},
        problems=(NOT_READY,),
    ),
    Endpoint(
        "GET", "/metrics", get_metrics, Role.READER, "Operations", "Prometheus metrics",
        answers={200: Answered("The metrics.", {"type": "string"}, "text/plain")},
    ),
)  # fmt: skip
