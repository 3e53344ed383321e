"""Reading what a page says."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from toolcrib.toolsets.browser.definition import Data, Element, Timeout, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError, BrowserError, ElementNotFoundError
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.structured import extract, gaps
from toolcrib.toolsets.browser.targeting import Match, Purpose, find, told

tool = partial(browser_tool, category="extraction")

Part = Annotated[str, "Which part of the page: a CSS selector, a handle, or plain words; empty for all of it"]
Offset = Annotated[int, "Where to begin, in characters: for reading on where the last call ended"]
Limit = Annotated[int, "How many characters at most"]
_CONTENT_LIMIT = 20_000


async def _read(
    session: BrowserSession, function: str, selector: str, timeout: float, **question: Any
) -> tuple[dict[str, Any], Match | None]:
    """Ask the page in one go if the element is there already, and wait for it if it is not."""
    frame = session.page.main_frame
    ask: dict[str, Any] = {"target": selector, **question}
    if not selector or len(session.page.frames) == 1:
        answer: dict[str, Any] = await session.ask(frame, function, ask)
        found = answer.get("match")
        if found is None or found["found"]:
            return answer, Match(frame, found) if found else None
    match = await find(session, selector, "any", timeout)
    answer = await session.ask(match.frame, function, {**ask, "target": match.handle})
    return answer, match


def _window(shown: str, offset: int, length: int) -> Data:
    end = offset + len(shown)
    return {"length": length, "truncated": end < length, "next_offset": end if end < length else None}


async def whole_text(session: BrowserSession) -> str:
    """What the page and its frames say."""
    question = {"target": "", "offset": 0, "limit": 10**9}
    parts = [await session.ask(frame, "text", question, missing={"text": ""}) for frame in session.page.frames]
    return "\n\n".join(part["text"] for part in parts if part["text"])


@tool(
    "extract_text()",
    'extract_text(selector="article")',
    "extract_text(offset=20000)",
    returns="The visible text, how long all of it is, and where to go on when it was cut",
)
async def extract_text(
    session: BrowserSession,
    selector: Part = "",
    offset: Offset = 0,
    limit: Limit = _CONTENT_LIMIT,
    timeout: Timeout = 5000,
) -> Data:
    """Read the visible text of the page or of an element, frames and shadow trees included."""
    answer, match = await _read(session, "text", selector, timeout, offset=offset, limit=limit)
    text, length = answer["text"], answer["length"]
    if not selector and len(session.page.frames) > 1:
        joined = await whole_text(session)
        text, length = joined[offset : offset + limit], len(joined)
    return {"text": text, **_window(text, offset, length), "matched": told(match)}


@tool(
    'get_page_content(format="markdown")',
    'get_page_content(format="html", selector="main")',
    returns="The content, how long all of it is, and where to go on when it was cut",
    timeout_seconds=60,
)
async def get_page_content(
    session: BrowserSession,
    format: Annotated[Literal["markdown", "html"], "In which form"] = "markdown",
    selector: Part = "",
    offset: Offset = 0,
    limit: Limit = _CONTENT_LIMIT,
    timeout: Timeout = 5000,
) -> Data:
    """Get the page or a part of it as Markdown or HTML."""
    answer, match = await _read(session, format, selector, timeout)
    content = str(answer[format])
    shown = content[offset : offset + limit]
    return {"content": shown, "format": format, **_window(shown, offset, len(content)), "matched": told(match)}


@tool(
    "extract_table()",
    'extract_table(selector="Prices table", limit=50)',
    returns="The column names, the rows (as objects if the table has column names), and how many there are",
)
async def extract_table(
    session: BrowserSession,
    selector: Annotated[str, "Which table: a CSS selector, a handle, or plain words; empty for the largest"] = "",
    offset: Annotated[int, "The first row to give"] = 0,
    limit: Annotated[int, "How many rows at most"] = 100,
    timeout: Timeout = 5000,
) -> Data:
    """Read a table as rows and columns."""
    answer, match = await _read(session, "table", selector, timeout)
    table = answer["table"]
    if table is None:
        raise ElementNotFoundError(f"there is no table in {selector!r}" if selector else "the page has no table")
    headers, rows = table["headers"], table["rows"]
    shown = rows[offset : offset + limit]
    records = [dict(zip(headers, row, strict=False)) for row in shown] if headers else shown
    return {
        "headers": headers,
        "rows": records,
        "total": len(rows),
        "truncated": offset + len(shown) < len(rows),
        "caption": table["caption"],
        "matched": told(match),
    }


@tool(
    "extract_links()",
    'extract_links(contains="download", limit=10)',
    returns="The links with text, address, handle and whether they lead to another site, and how many there are",
)
async def extract_links(
    session: BrowserSession,
    selector: Part = "",
    contains: Annotated[str, "Only links with this in their text or address"] = "",
    limit: Annotated[int, "How many at most"] = 100,
    timeout: Timeout = 5000,
) -> Data:
    """List the links of the page or of a part of it."""
    answer, match = await _read(session, "links", selector, timeout, contains=contains, limit=limit)
    links, total = answer["links"], answer["total"]
    if not selector:
        for frame in session.page.frames[1:]:
            ask = {"target": "", "contains": contains, "limit": max(0, limit - len(links))}
            inner = await session.ask(frame, "links", ask, missing={"links": [], "total": 0})
            links, total = links + inner["links"], total + inner["total"]
    return {"links": links, "total": total, "truncated": total > len(links), "matched": told(match)}


@tool(
    'extract_structured(schema={"type": "object", "properties": {"price": {"type": "number"}}})',
    'extract_structured(schema={"type": "array", "items": {"properties": {"title": {}}}}, items=".hit")',
    returns="The data in the shape of the schema, where each value came from, and which required values were not found",
    timeout_seconds=120,
)
async def extract_structured(
    session: BrowserSession,
    schema: Annotated[dict[str, Any], "The JSON Schema of what is wanted: an object, or an array of objects"],
    selectors: Annotated[dict[str, str], "CSS selectors for some fields; 'a@href' reads an attribute"] = {},  # noqa: B006
    items: Annotated[
        str, "For an array: the CSS selector of one record; the selectors are then looked up inside it"
    ] = "",
    selector: Part = "",
    timeout: Timeout = 5000,
) -> Data:
    """Fill a JSON Schema from the page: from selectors, JSON-LD, microdata, tables, labels and repeated blocks."""
    answer, match = await _read(session, "facts", selector, timeout, selectors=selectors, items=items)
    data, sources = extract(schema, answer)
    missing = gaps(schema, data)
    if missing and session.model is not None:
        text = await session.ask(session.page.main_frame, "text", {"target": "", "offset": 0, "limit": _CONTENT_LIMIT})
        material = {"schema": schema, "found": data, "missing": missing, "text": text["text"], "url": session.page.url}
        data, sources = _with_model(data, sources, await session.model("extract", session.hidden.redact(material)))
        missing = gaps(schema, data)
    if data in ({}, [], None):
        raise BrowserError(
            f"{session.page.url} has nothing of what the schema asks for; name selectors, or read it with snapshot",
            missing=missing,
        )
    return {"data": data, "sources": sources, "missing": missing, "matched": told(match)}


def _with_model(data: Any, sources: dict[str, str], answer: Any) -> tuple[Any, dict[str, str]]:
    """What the page says itself stands; the model's answer fills the gaps."""
    if isinstance(data, dict) and isinstance(answer, dict):
        new = {name: value for name, value in answer.items() if data.get(name) is None and value is not None}
        return data | new, sources | dict.fromkeys(new, "model")
    if not data and isinstance(answer, list | dict):
        return answer, {"": "model"}
    return data, sources


@tool(
    'get_element_info(selector="e12")',
    returns="Role, name, text, value, attributes, box, visibility, state and style of the element",
)
async def get_element_info(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
    """Tell everything about an element."""
    match = await find(session, selector, "any", timeout)
    return {**await session.ask(match.frame, "info", {"handle": match.handle}), "matched": match.as_dict()}


@tool(
    'get_attribute(selector="Download link", attribute="href")',
    returns="The attribute's value, or null if the element does not have it",
)
async def get_attribute(
    session: BrowserSession,
    selector: Element,
    attribute: Annotated[str, "The attribute's name, such as href"],
    timeout: Timeout = 5000,
) -> Data:
    """Read an attribute of an element."""
    match = await find(session, selector, "any", timeout)
    if attribute.lower() == "value" and await match.locator.evaluate("element => element.type === 'password'"):
        raise BadInputError("the value of a password field is not read out")
    value = await match.locator.get_attribute(attribute, timeout=max(timeout, 500))
    return {"attribute": attribute, "value": value, "matched": match.as_dict()}


@tool(
    "get_page_state()",
    returns="Address, title, scroll position, counts of links, buttons and fields, headings, focus, open dialogs, tabs",
)
async def get_page_state(session: BrowserSession) -> Data:
    """Tell where the page stands, in short."""
    state: dict[str, Any] = await session.ask(session.page.main_frame, "pageState", {})
    return {**state, "tabs": len(session.tabs), "tab": session.tab.id}


@tool("get_metadata()", returns="Title, description, language, canonical address, icons, feeds, meta tags and JSON-LD")
async def get_metadata(session: BrowserSession) -> Data:
    """Read what the page says about itself in its head."""
    answer: dict[str, Any] = await session.ask(session.page.main_frame, "metadata", {})
    return answer


@tool(
    'find_element(description="search field")',
    'find_element(description="add to cart", purpose="click")',
    returns="The elements that fit best, with handle, role, name, CSS selector and a score from 0 to 1",
)
async def find_element(
    session: BrowserSession,
    description: Annotated[str, "What to look for, in plain words"],
    purpose: Annotated[Purpose, "What it is wanted for"] = "any",
    limit: Annotated[int, "How many at most"] = 5,
) -> Data:
    """Find elements by a description in plain words."""
    question = {"target": description, "purpose": purpose, "limit": limit}
    found = []
    for frame in session.page.frames:
        found += await session.ask(frame, "candidates", question, missing=[])
    best = sorted(found, key=lambda element: -element["score"])[:limit]
    if not best:
        nearest = await session.ask(session.page.main_frame, "nearest", {"target": description, "purpose": purpose})
        raise ElementNotFoundError(
            f"nothing on {session.page.url} is like {description!r}; it has {'; '.join(nearest) or 'nothing similar'}",
            looked_for=description,
            nearest=nearest,
        )
    return {"elements": best, "count": len(best)}
