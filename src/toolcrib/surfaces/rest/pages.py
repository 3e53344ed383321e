"""The pages of the REST door: the catalogue for people, and the description of the endpoints."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.surfaces.http.endpoints import Answered, Endpoint
from toolcrib.surfaces.http.pages import page
from toolcrib.surfaces.rest.service import Service

_PACKAGE = "toolcrib.surfaces.rest"
_HTML = {200: Answered("The page.", {"type": "string"}, "text/html")}


async def get_catalogue_page(_service: Service, _request: Request) -> Response:
    return page(_PACKAGE, "catalogue.html")


async def get_docs(_service: Service, _request: Request) -> Response:
    return page(_PACKAGE, "docs.html")


ENDPOINTS = (
    Endpoint("GET", "/", get_catalogue_page, None, "Operations", "The catalogue as a page", answers=_HTML),
    Endpoint("GET", "/docs", get_docs, None, "Operations", "This description as a page", answers=_HTML),
)
