"""What goes between the page and the network, and what its console says."""

from __future__ import annotations

import asyncio
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError
from toolcrib.toolsets.browser.session import BrowserSession

if TYPE_CHECKING:
    from playwright.async_api import Request, Route

tool = partial(browser_tool, category="session")

_UNDER_WAY_SECONDS = 0.3
_ANSWERED_SECONDS = 10.0
"""Far more than it takes to be told of an answer that is there."""
Resource = Literal["document", "stylesheet", "image", "media", "font", "script", "xhr", "fetch", "websocket", "other"]


@tool(
    "console_messages()",
    'console_messages(level="error")',
    returns="The newest messages of the page's console and its uncaught errors, the newest last",
)
async def console_messages(
    session: BrowserSession,
    level: Annotated[Literal["all", "error", "warning", "info", "log", "debug"], "Only these"] = "all",
    limit: Annotated[int, "How many at most"] = 50,
) -> Data:
    """Read the page's console."""
    messages = [
        {"level": message.type, "text": message.text[:1000], "at": str(message.location.get("url", ""))}
        for message in await session.page.console_messages()
        if level in ("all", message.type)
    ]
    errors = [str(error)[:1000] for error in await session.page.page_errors()] if level in ("all", "error") else []
    return {"messages": messages[-limit:], "errors": errors[-limit:], "count": len(messages) + len(errors)}


@tool(
    "network_requests()",
    'network_requests(contains="/api/", failed_only=True)',
    returns="The newest requests of the page with method, address, kind and status; no headers and no bodies",
    timeout_seconds=60,
)
async def network_requests(
    session: BrowserSession,
    contains: Annotated[str, "Only addresses with this in them"] = "",
    kinds: Annotated[list[Resource], "Only these kinds"] = [],  # noqa: B006
    failed_only: Annotated[bool, "Only those that failed or were answered with 400 and above"] = False,
    limit: Annotated[int, "How many at most"] = 50,
) -> Data:
    """List what the page asked the network for: its last hundred requests."""
    wanted = [
        request
        for request in await session.page.requests()
        if contains in request.url and (not kinds or request.resource_type in kinds)
    ]
    found = await asyncio.gather(*(_request(request, request in session.tab.asked) for request in wanted))
    if failed_only:
        found = [entry for entry in found if entry["failure"] or (entry["status"] or 0) >= 400]
    refused = [event for event in session.happenings if event["kind"] == "refused"]
    return {"requests": found[-limit:], "count": len(found), "refused": refused[-limit:]}


async def _request(request: Request, under_way: bool) -> dict[str, Any]:
    entry = {"method": request.method, "url": request.url[:500], "kind": request.resource_type}
    try:
        limit = _UNDER_WAY_SECONDS if under_way else _ANSWERED_SECONDS
        response = await asyncio.wait_for(request.response(), limit)
    except TimeoutError:
        return {**entry, "status": None, "failure": "", "pending": True}
    failure = request.failure or ("" if response else "no answer")
    return {**entry, "status": response.status if response else None, "failure": failure, "pending": False}


@tool(
    'block_resources(kinds=["image", "font"])',
    'block_resources(patterns=["*analytics*"])',
    "block_resources()",
    returns="What is blocked from now on",
    safety_level=SafetyLevel.LOW_RISK,
)
async def block_resources(
    session: BrowserSession,
    kinds: Annotated[list[Resource], "Kinds of resources"] = [],  # noqa: B006
    patterns: Annotated[list[str], "Addresses, as patterns with *"] = [],  # noqa: B006
) -> Data:
    """Do not load some resources, to be quick or quiet; without arguments, load everything again."""
    context = session.context
    if session.blocker is not None:
        await context.unroute("**/*", session.blocker)
        session.blocker = None
    if kinds or patterns:

        async def block(route: Route) -> None:
            request = route.request
            if request.resource_type in kinds or any(fnmatchcase(request.url, pattern) for pattern in patterns):
                await route.abort("blockedbyclient")
            else:
                await route.fallback()

        session.blocker = block
        await context.route("**/*", block)
    return {"kinds": kinds, "patterns": patterns, "blocking": bool(kinds or patterns)}


@tool(
    'set_headers(headers={"Accept-Language": "no"})',
    "set_headers(headers={})",
    returns="The names of the headers that go with every request from now on",
    safety_level=SafetyLevel.DANGEROUS,
)
async def set_headers(
    session: BrowserSession,
    headers: Annotated[
        dict[str, str], "Names and values; {{name}} stands for a configured secret. Empty: none any more"
    ],
) -> Data:
    """Send headers along with every request of the session."""
    for name, value in headers.items():
        if not name or any(sign in name + value for sign in "\r\n\0"):
            raise BadInputError(f"{name!r} is not a header: names and values have no line breaks")
    # They go to every host, so a secret that is meant for some is not given away: no host at all is not among those.
    revealed = {name: session.hidden.reveal(value, "") for name, value in headers.items()}
    await session.context.set_extra_http_headers(revealed)
    return {"headers": sorted(headers)}


@tool(
    'mock_route(pattern="**/api/user", body="{\\"name\\": \\"Ada\\"}")',
    'mock_route(pattern="**/api/user", remove=True)',
    returns="The pattern and what it is answered with, and all patterns that are mocked now",
    safety_level=SafetyLevel.MEDIUM_RISK,
)
async def mock_route(
    session: BrowserSession,
    pattern: Annotated[str, "Addresses, as a pattern: ** is anything, * anything but /"],
    body: Annotated[str, "The body of the answer"] = "",
    status: Annotated[int, "Its HTTP status"] = 200,
    content_type: Annotated[str, "Its type"] = "application/json",
    remove: Annotated[bool, "Stop mocking this pattern"] = False,
) -> Data:
    """Answer requests to some addresses with a made-up answer instead of asking the network."""
    if not 100 <= status <= 599:
        raise BadInputError(f"{status} is not an HTTP status")
    if session.mocks.pop(pattern, None) is not None or remove:
        await session.context.unroute(pattern)
    if not remove:

        async def answer(route: Route) -> None:
            await route.fulfill(status=status, body=body, content_type=content_type)

        await session.context.route(pattern, answer)
        session.mocks[pattern] = status
    return {"pattern": pattern, "status": None if remove else status, "mocked": sorted(session.mocks)}
