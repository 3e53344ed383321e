"""Items as JSON: what a brick takes and gives, when somebody calls it as a tool, or when a tool is a brick.

=========  ======================================================  ===========================================
item       as arguments                                            as an answer
=========  ======================================================  ===========================================
Request    ``url``, ``method``, ``headers``, ``body``              the same, with ``proxy`` if it has one
Page       ``html``, ``url``                                       ``url``, ``status``, ``headers``, ``html``
Record     ``records``: a list of rows                             ``records``: a list of rows
Stored                                                             ``stored``: ``where`` and ``new`` of each
=========  ======================================================  ===========================================

Links to be followed come beside it, in ``follow``. A page that is no text has ``body_base64`` in place of ``html``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.core.errors import ToolFailedError, ToolValidationError, did_you_mean
from toolcrib.core.json import as_json
from toolcrib.core.spec import ToolSpec
from toolcrib.stacking.items import Item, Page, Record, Request, Stored

ITEMS: Mapping[str, type[Item]] = {kind.__name__: kind for kind in (Request, Page, Record, Stored)}

_TEXT = {"type": "string"}
_NAMED_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_PARAMETERS: Mapping[type[Item], Mapping[str, Any]] = {
    Request: {
        "url": {**_TEXT, "description": "the address to fetch"},
        "method": {**_TEXT, "default": "GET", "description": "the HTTP method"},
        "headers": {**_NAMED_TEXTS, "description": "sent with the request"},
        "body": {**_TEXT, "default": "", "description": "the request's body"},
    },
    Page: {
        "html": {**_TEXT, "description": "the page's text"},
        "url": {**_TEXT, "default": "", "description": "where the page came from; it makes its links absolute"},
    },
    Record: {"records": {"type": "array", "items": {"type": "object"}, "description": "rows: field names and values"}},
}
_REQUIRED = {Request: "url", Page: "html", Record: "records"}

_FETCHES, _READS, _STORES, _CHANGES = (Request, Page), (Page, Record), (Record, Stored), (Record, Record)
_BY_TYPE: Mapping[str, tuple[type[Item], type[Item]]] = {
    "browser": _FETCHES,
    "http_client": _FETCHES,
    "anti_bot_service": _FETCHES,
    "captcha_solver": (Page, Page),
    "proxy_manager": (Request, Request),
    "parser": _READS,
    "data_storage": _STORES,
}


def shape_of(spec: ToolSpec) -> tuple[type[Item], type[Item]]:
    """What a kept tool takes and gives as a brick: as ``metadata.brick`` says, else as is usual for its type."""
    said = spec.metadata.get("brick", {})
    if not isinstance(said, Mapping):
        raise ToolValidationError(f"metadata.brick of {spec.name!r} must be an object, not {said!r:.60}")
    unknown = next((key for key in said if key not in ("takes", "gives")), None)
    if unknown is not None:
        raise ToolValidationError(f"metadata.brick of {spec.name!r} has {unknown!r}; it knows 'takes' and 'gives'")
    takes, gives = _BY_TYPE.get(spec.tool_type, _CHANGES)
    return _named(spec, "takes", said.get("takes"), takes), _named(spec, "gives", said.get("gives"), gives)


def _named(spec: ToolSpec, field: str, word: object, usual: type[Item]) -> type[Item]:
    if word is None:
        return usual
    kind = ITEMS.get(word.capitalize()) if isinstance(word, str) else None
    if kind is None or (field == "takes" and kind is Stored):
        known = [name for name, one in ITEMS.items() if field == "gives" or one is not Stored]
        hint = did_you_mean(str(word), known) or f"; use one of {', '.join(map(repr, known))}"
        raise ToolValidationError(f"metadata.brick of {spec.name!r} {field} {word!r}, which no item is called{hint}")
    return kind


def parameters_for(kind: type[Item]) -> tuple[dict[str, Any], list[str]]:
    """The parameters that make an item of this kind, and which of them are required."""
    known = _nearest(kind)
    return dict(_PARAMETERS[known]), [_REQUIRED[known]]


def items_from(kind: type[Item], arguments: Mapping[str, Any]) -> list[Item]:
    """The items that arguments stand for."""
    known = _nearest(kind)
    if known is Request:
        return [_request(arguments)]
    if known is Page:
        url = arguments.get("url", "")
        return [Page(Request(url), url, 200, arguments["html"].encode("utf-8", "surrogatepass"), _HTML)]
    return [Record(row, position=position) for position, row in enumerate(arguments["records"])]


def arguments_from(item: Item) -> dict[str, Any]:
    """The arguments that stand for an item."""
    if isinstance(item, Request):
        return _told_request(item)
    if isinstance(item, Page):
        return _told_page(item)
    return {"records": [as_json(dict(getattr(item, "data", {})))], "url": getattr(item, "url", "")}


def answer_from(kind: type[Item], items: Sequence[Item], followed: Sequence[Request]) -> dict[str, Any]:
    """What a tool answers whose brick gave these items."""
    links = {"follow": [_told_request(one) for one in followed]} if followed else {}
    if issubclass(kind, Record):
        return {"records": [as_json(dict(item.data)) for item in items if isinstance(item, Record)], **links}
    if issubclass(kind, Stored):
        return {"stored": [{"where": one.where, "new": one.new} for one in items if isinstance(one, Stored)], **links}
    return {**(arguments_from(items[0]) if items else {}), **links}


def items_in(kind: type[Item], answer: Any, item: Item, tool: str) -> Iterator[Item]:
    """The items in a tool's answer about ``item``: one, a list, or none for null. ToolFailedError says what is wrong.

    A row may stand by itself, an address for a request, a text for a page.
    """
    key = {Record: "records", Stored: "stored"}.get(_nearest(kind), "")
    inner = answer[key] if isinstance(answer, Mapping) and isinstance(answer.get(key), list) else answer
    several = inner if isinstance(inner, list) else [] if inner is None or inner == {} else [inner]
    for position, one in enumerate(several):
        made = _made(_nearest(kind), one, item, position if len(several) > 1 else None)
        if made is None:
            raise ToolFailedError(tool, f"it answered {one!r:.80}, which is no {kind.__name__}")
        yield made


def links_in(answer: Any) -> list[str]:
    """The addresses that a tool wants followed."""
    links = answer.get("follow", []) if isinstance(answer, Mapping) else []
    found = [one.get("url") if isinstance(one, Mapping) else one for one in links if isinstance(links, list)]
    return [one for one in found if isinstance(one, str)]


_HTML = {"content-type": "text/html; charset=utf-8"}
_TEXTUAL = ("text/", "json", "xml", "javascript", "x-www-form-urlencoded")


def _nearest(kind: type[Item]) -> type[Item]:
    known = next((one for one in ITEMS.values() if issubclass(kind, one)), None)
    if known is None:
        raise ToolValidationError(f"{kind.__name__} is an item of somebody's own, which cannot be told as JSON")
    return known


def _request(said: Mapping[str, Any]) -> Request:
    body = str(said.get("body", "")).encode("utf-8", "surrogatepass")
    return Request(said["url"], said.get("method", "GET"), dict(said.get("headers", {})), body)


def _told_request(item: Request) -> dict[str, Any]:
    told = {"url": item.url, "method": item.method, "headers": dict(item.headers)}
    told["body"] = item.body.decode("utf-8", "replace")
    return {**told, "proxy": item.proxy} if item.proxy else told


def _told_page(page: Page) -> dict[str, Any]:
    told: dict[str, Any] = {"url": page.url, "status": page.status, "headers": dict(page.headers)}
    media_type = page.headers.get("content-type", "text/html").lower()
    if any(word in media_type for word in _TEXTUAL):
        return {**told, "html": page.text}
    return {**told, "html": "", "body_base64": base64.b64encode(page.body).decode()}


def _made(kind: type[Item], said: Any, item: Item, position: int | None) -> Item | None:
    if kind is Record:
        return _record(said, item, position) if isinstance(said, Mapping) else None
    if kind is Stored:
        told = said if isinstance(said, Mapping) else {}
        return Stored(item.key, str(told.get("where", "")), bool(told.get("new", True)))
    if kind is Request:
        return _changed_request(said, item)
    text = said if isinstance(said, str) else said.get("html") if isinstance(said, Mapping) else None
    return _page(text, said if isinstance(said, Mapping) else {}, item) if isinstance(text, str) else None


def _record(row: Mapping[str, Any], item: Item, position: int | None) -> Record:
    if isinstance(item, Record):
        source = (item.source, item.position) if position is None else (item.key, position)
        return Record(dict(row), source[0], item.url, source[1])
    return Record(dict(row), item.key, getattr(item, "url", ""), position or 0)


def _changed_request(said: Any, item: Item) -> Request | None:
    told = {"url": said} if isinstance(said, str) else said
    if not isinstance(told, Mapping) or not isinstance(told.get("url", ""), str) or not isinstance(item, Request):
        return None
    made = _request({**_told_request(item), **told})
    return replace(item, url=made.url, method=made.method, headers=made.headers, body=made.body,
                   proxy=str(told.get("proxy", item.proxy)))  # fmt: skip


def _page(text: str, said: Mapping[str, Any], item: Item) -> Page | None:
    request = item.request if isinstance(item, Page) else item
    if not isinstance(request, Request):
        return None
    headers = said.get("headers", {})
    known = {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, Mapping) else {}
    url, status = said.get("url") or getattr(item, "url", ""), said.get("status", 200)
    body = text.encode("utf-8", "surrogatepass")
    return Page(request, str(url), status if isinstance(status, int) else 200, body, {**known, **_HTML})
