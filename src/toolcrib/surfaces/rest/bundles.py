"""The code of bundles: from the service itself, or where the blobs have an address of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from toolcrib.calling.blocking import OUTSIDE, READS, in_thread
from toolcrib.catalogue.code import code_link, may_be_withdrawn, open_code
from toolcrib.core.errors import BundleNotFoundError
from toolcrib.core.roles import Role
from toolcrib.formats.bundle import CODE, bundle_digest
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.endpoints import TOOL_ID, Answered, Endpoint, Parameter, under
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.rest.service import Service

_DIGEST = Parameter("digest", "SHA-256 of the code.", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, True, "path")
_ZIP = "application/zip"
PATH = f"/bundles/{{digest}}/{CODE}"
"""What ``tool_source_code_link`` leads to."""


async def get_code(service: Service, request: Request) -> Response:
    """The tool.zip of a tool."""
    entry = await in_thread(READS, service.seen_by(request).entry, parameters.tool_id(request))
    link: str = entry.document["binding"]["source_code_link"]
    digest = bundle_digest(link)
    if digest is None:
        raise BundleNotFoundError(f"{entry.name!r} has no bundle")
    return await _code(service, digest, entry.name)


async def get_bundle(service: Service, request: Request) -> Response:
    """The tool.zip of a digest: what tool_source_code_link leads to."""
    digest: str = request.path_params["digest"]
    if bundle_digest(f"/bundles/{digest}/{CODE}") != digest:
        raise RequestError(f"{digest!r:.80} is not a SHA-256")
    seen = service.seen_by(request)
    limited = seen is not service.catalogue or await in_thread(OUTSIDE, may_be_withdrawn, service.blobs, digest)
    if limited and not await in_thread(READS, seen.has_bundle, digest):
        raise _missing(digest)
    return await _code(service, digest, digest[:12])


async def _code(service: Service, digest: str, name: str) -> Response:
    blobs = service.blobs
    link = await in_thread(OUTSIDE, code_link, blobs, digest)
    if link is not None:
        return RedirectResponse(link, 307, {"cache-control": "no-store"})
    pieces = await in_thread(OUTSIDE, open_code, blobs, digest)
    if pieces is None:
        raise _missing(digest)
    headers = {"content-disposition": f'attachment; filename="{name}.zip"', "etag": f'"{digest}"'}
    return StreamingResponse(_streamed(pieces), headers=headers, media_type=_ZIP)


def _missing(digest: str) -> BundleNotFoundError:
    return BundleNotFoundError(f"there is no bundle with the digest '{digest}'")


async def _streamed(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    following = partial(next, pieces, None)
    while (piece := await in_thread(OUTSIDE, following)) is not None:
        yield piece


ENDPOINTS = (
    Endpoint(
        "GET", under(CODE), get_code, Role.READER, "Bundles", "The code of a tool",
        (TOOL_ID,),
        answers={
            200: Answered("The ZIP archive.", {"type": "string", "format": "binary"}, _ZIP),
            307: Answered("Where the ZIP archive is.", headers={"Location": "Valid for an hour."}),
        },
        problems=(404,),
    ),
    Endpoint(
        "GET", PATH, get_bundle, Role.READER, "Bundles", "The code of a digest",
        (_DIGEST,),
        answers={
            200: Answered("The ZIP archive.", {"type": "string", "format": "binary"}, _ZIP),
            307: Answered("Where the ZIP archive is.", headers={"Location": "Valid for an hour."}),
        },
        problems=(404,),
        description="With the setting `public_bundles` whoever has the link needs no credentials.",
    ),
)  # fmt: skip
