"""``/graphql``: queries by POST and GET, and the page for a browser at the same address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import SCANS, in_thread
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.core.errors import DeniedError, InvalidNameError, ToolNotFoundError
from toolcrib.core.names import check_name
from toolcrib.core.roles import Role, require
from toolcrib.surfaces.graphql.execution import answer
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.bodies import parse_json, read_json
from toolcrib.surfaces.http.endpoints import Answered, Body, Endpoint, Parameter
from toolcrib.surfaces.http.entries import shown
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.pages import page
from toolcrib.surfaces.http.problems import json_bytes, json_list
from toolcrib.surfaces.http.refusals import Refusals

_RESPONSE = "application/graphql-response+json"


@dataclass(frozen=True, slots=True)
class Graphs:
    """What the GraphQL endpoints work with."""

    catalogue: Catalogue
    refusals: Refusals
    public_url: str


@dataclass(frozen=True, slots=True)
class _EntryReader:
    seen: CatalogueReader
    public_url: str
    refused: list[tuple[str, DeniedError]]
    """Tools that were asked for by name: a refusal is only a part of the answer here, and goes on record after it."""

    def query(self, where: dict[str, Any], limit: int, after: str | None) -> Iterator[dict[str, Any]]:
        cursor = check_name(after) if after else None
        found = self.seen.entries(parameters.entry_filter(where), after=cursor, page=min(limit, parameters.MOST_HELD))
        return (shown(entry.document, self.public_url) for entry in islice(found, limit))

    def get(self, tool_id: str) -> dict[str, Any] | None:
        try:
            return shown(self.seen.entry(check_name(tool_id)).document, self.public_url)
        except (ToolNotFoundError, InvalidNameError):
            return None
        except DeniedError as error:
            self.refused.append((tool_id, error))
            raise


async def graphql_query(graphs: Graphs, request: Request) -> Response:
    body = await read_json(request)
    return await _answer(graphs, request, body)


async def graphql_page(graphs: Graphs, request: Request) -> Response:
    """A browser gets the page; a query in the address is answered."""
    text = request.query_params.get("query")
    if text is None or "text/html" in request.headers.get("accept", ""):
        return page("toolcrib.surfaces.graphql", "graphiql.html")
    require(parameters.principal(request), Role.READER)
    variables = request.query_params.get("variables")
    body = {
        "query": text,
        "variables": parse_json(variables.encode()) if variables else None,
        "operationName": request.query_params.get("operationName"),
    }
    return await _answer(graphs, request, body)


async def _answer(graphs: Graphs, request: Request, body: object) -> Response:
    if isinstance(body, list):
        raise RequestError("one GraphQL request at a time, please; a list of them is not taken")
    reader = _EntryReader(graphs.catalogue.as_seen_by(parameters.principal(request)), graphs.public_url, [])
    has_data, content = await in_thread(SCANS, _answered, body, reader)
    for tool_id, refusal in reader.refused:
        await graphs.refusals.record(request.scope, refusal, tool_id)
    modern = _RESPONSE in request.headers.get("accept", "")
    status = 400 if modern and not has_data else 200
    return Response(content, status, media_type=_RESPONSE if modern else "application/json")


def _answered(body: object, reader: _EntryReader) -> tuple[bool, bytes]:
    """Whether there is data, and the answer as it is sent."""
    answered = answer(body, reader)
    return "data" in answered, _encoded(answered)


def _encoded(answered: dict[str, Any]) -> bytes:
    """As JSON, one tool at a time."""
    written = []
    for field, value in (answered.get("data") or {}).items():
        text = json_list(_let_go(value)) if isinstance(value, list) else json_bytes(value)
        written.append(b"%b:%b" % (json_bytes(field), text))
    if not written:
        return json_bytes(answered)
    rest = json_bytes({name: value for name, value in answered.items() if name != "data"})[1:]
    return b'{"data":{%b}%b%b' % (b",".join(written), b"," if len(rest) > 1 else b"", rest)


def _let_go(values: list[Any]) -> Iterator[Any]:
    """Each in turn; the list is empty then."""
    values.reverse()
    while values:
        yield values.pop()


_ANSWER = {
    "type": "object",
    "properties": {
        "data": {"type": ["object", "null"]},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_BOTH = {"application/json": _ANSWER, _RESPONSE: _ANSWER}
_REQUEST = {
    "type": "object",
    "required": ["query"],
    "properties": {
        "query": {"type": "string"},
        "variables": {"type": ["object", "null"]},
        "operationName": {"type": ["string", "null"]},
    },
}

ENDPOINTS = (
    Endpoint(
        "POST", "/graphql", graphql_query, Role.READER, "GraphQL", "Ask in GraphQL",
        body=Body(_REQUEST, example={"query": '{ tools(query: { tool_tags: "nlp" }) { tool_id tool_type } }'}),
        answers={200: Answered("The data, or errors with their codes.", _ANSWER, also={_RESPONSE: _ANSWER})},
    ),
    Endpoint(
        "GET", "/graphql", graphql_page, None, "GraphQL", "GraphiQL in a browser; an answer if `query` is given",
        (
            Parameter("query", "A GraphQL document."),
            Parameter("variables", "A JSON object."),
            Parameter("operationName", "Which operation of the document."),
        ),
        answers={200: Answered("The page, or the answer.", {"type": "string"}, "text/html", also=_BOTH)},
    ),
)  # fmt: skip
