"""Health, readiness, metrics, the audit, and the description with its page."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import in_thread
from toolcrib.core.errors import MissingConfigError, StoreError
from toolcrib.core.roles import Role
from toolcrib.surfaces.errors import RequestError
from toolcrib.surfaces.rest import asking, metrics
from toolcrib.surfaces.rest.answers import json_answer
from toolcrib.surfaces.rest.endpoints import Answered, Endpoint, Handler, Parameter, array_of, limited_to, ref
from toolcrib.surfaces.rest.pages import page
from toolcrib.surfaces.rest.service import Service

_PING_SECONDS = 5.0


async def healthz(_service: Service, _request: Request) -> Response:
    return json_answer({"status": "alive"})


async def readyz(service: Service, _request: Request) -> Response:
    try:
        async with asyncio.timeout(_PING_SECONDS):
            await in_thread(service.catalogue.store.ping)
    except TimeoutError:
        raise StoreError(f"the store did not answer within {_PING_SECONDS:g} s") from None
    return json_answer({"status": "ready"})


async def get_metrics(service: Service, _request: Request) -> Response:
    waiting = await in_thread(service.catalogue.store.outbox, limit=1000)
    service.metrics.waiting(len(waiting))
    return Response(service.metrics.text(), media_type=metrics.CONTENT_TYPE)


async def get_catalogue_page(_service: Service, _request: Request) -> Response:
    return page("catalogue.html")


async def list_audit(service: Service, request: Request) -> Response:
    if service.audit is None:
        raise MissingConfigError("this service keeps no audit log; set TOOLCRIB_AUDIT")
    since = request.query_params.get("since", "0")
    try:
        begin = float(since)
    except ValueError:
        raise RequestError(f"the query parameter 'since' must be seconds since 1970, not {since!r:.60}") from None
    if not 0 <= begin < 1e12:
        raise RequestError(f"the query parameter 'since' must be seconds since 1970, not {since!r:.60}")
    events = await in_thread(
        service.audit.events,
        **{name: asking.optional_text(request, name) for name in ("tool", "principal", "action", "outcome", "call")},
        since=begin,
        limit=asking.whole_number(request, "limit", 100, asking.MAX_LIMIT),
    )
    return json_answer([event._asdict() for event in events])


async def get_docs(_service: Service, _request: Request) -> Response:
    return page("docs.html")


def description_of(text: bytes) -> Handler:
    async def get_openapi(_service: Service, _request: Request) -> Response:
        return Response(text, media_type="application/json")

    return get_openapi


_HTML = {200: Answered("The page.", {"type": "string"}, "text/html")}

ENDPOINTS = (
    Endpoint(
        "GET", "/healthz", healthz, None, "Operations", "Whether the service is alive",
        answers={200: Answered("It is.", ref("Status"))},
    ),
    Endpoint(
        "GET", "/readyz", readyz, None, "Operations", "Whether the store can be reached",
        answers={200: Answered("It can.", ref("Status"))},
    ),
    Endpoint(
        "GET", "/metrics", get_metrics, Role.READER, "Operations", "Prometheus metrics",
        answers={200: Answered("The metrics.", {"type": "string"}, "text/plain")},
    ),
    Endpoint("GET", "/", get_catalogue_page, None, "Operations", "The catalogue as a page", answers=_HTML),
    Endpoint(
        "GET", "/audit", list_audit, Role.ADMIN, "Operations", "Who did what, newest first",
        (
            Parameter("tool", "Only about this tool."),
            Parameter("principal", "Only by this caller."),
            Parameter("action", "Only create, update, delete or run."),
            Parameter("outcome", "Only attempt, done, failed, refused or crashed."),
            Parameter("call", "Only the events of one attempt."),
            Parameter("since", "Only from then on, in seconds since 1970.", {"type": "number", "minimum": 0}),
            limited_to(asking.MAX_LIMIT, 100),
        ),
        answers={200: Answered("The events.", array_of(ref("AuditEvent")))},
        problems=(409,),
    ),
    Endpoint("GET", "/docs", get_docs, None, "Operations", "This description as a page", answers=_HTML),
)  # fmt: skip


def openapi_endpoint(text: bytes) -> Endpoint:
    return Endpoint(
        "GET", "/openapi.json", description_of(text), None, "Operations", "The OpenAPI description",
        answers={200: Answered("OpenAPI 3.1.", {"type": "object"})},
    )  # fmt: skip
