"""What a session holds beside its pages: cookies, saved logins, files; and scripts run in its name.

Whatever puts or takes what a site knows the person by is dangerous: who calls it acts in their name, or lets others.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, FileName, Timeout, browser_tool
from toolcrib.toolsets.browser.failures import (
    BadInputError,
    BrowserError,
    DomainDeniedError,
    NavigationError,
    playwright_error,
)
from toolcrib.toolsets.browser.folders import for_reading, for_writing, free_name
from toolcrib.toolsets.browser.guard import refusal_in
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import acting, find, find_named, told

tool = partial(browser_tool, category="session")

_MASK = "••••"


@tool(
    "get_cookies()",
    'get_cookies(url="https://example.com")',
    returns="The cookies with name, domain, path and expiry; their values only if they are asked for",
    safety_level=SafetyLevel.DANGEROUS,
)
async def get_cookies(
    session: BrowserSession,
    url: Annotated[str, "Only those sent to this address"] = "",
    names: Annotated[list[str], "Only those of these names"] = [],  # noqa: B006
    with_values: Annotated[bool, "Give the values too: they are logins, so mind where they go"] = False,
) -> Data:
    """List the session's cookies."""
    cookies = await session.context.cookies([url] if url else [])
    shown = [
        {**cookie, "value": cookie.get("value") if with_values else _MASK}
        for cookie in cookies
        if not names or cookie.get("name") in names
    ]
    return {"cookies": shown, "count": len(shown)}


@tool(
    'set_cookie(name="theme", value="dark")',
    'set_cookie(name="token", value="{{token}}", url="https://example.com")',
    returns="The cookie that was set, without its value, and the address it is for",
    safety_level=SafetyLevel.DANGEROUS,
)
async def set_cookie(
    session: BrowserSession,
    name: Annotated[str, "The cookie's name"],
    value: Annotated[str, "Its value; {{name}} stands for a configured secret"],
    url: Annotated[str, "The address it is for; empty for the current page's"] = "",
    expires: Annotated[float, "When it ends, in seconds since 1970; -1 for the end of the session"] = -1,
) -> Data:
    """Set a cookie."""
    address = url or session.page.url
    if urlsplit(address).scheme not in ("http", "https"):
        raise BadInputError(f"a cookie needs a web address, and the page is {address!r}; give url=...")
    revealed = session.hidden.reveal(value, address)
    await session.context.add_cookies([{"name": name, "value": revealed, "url": address, "expires": expires}])
    return {"cookie": name, "url": address}


@tool(
    "clear_cookies()",
    'clear_cookies(name="session")',
    returns="How many cookies there were and are",
    safety_level=SafetyLevel.MEDIUM_RISK,
)
async def clear_cookies(
    session: BrowserSession,
    name: Annotated[str, "Only the cookie of this name"] = "",
    domain: Annotated[str, "Only those of this domain"] = "",
) -> Data:
    """Delete cookies: all, or those of a name or a domain."""
    before = len(await session.context.cookies())
    await session.context.clear_cookies(name=name or None, domain=domain or None)
    after = len(await session.context.cookies())
    return {"before": before, "after": after, "cleared": before - after}


@tool(
    'save_state(file="shop-login.json")',
    returns="The file in the session's folder, and how many cookies and sites it holds",
    safety_level=SafetyLevel.DANGEROUS,
)
async def save_state(session: BrowserSession, file: FileName = "state.json") -> Data:
    """Save the login state (cookies and the storage of sites) to a file, to be loaded another day."""
    path = for_writing(session.files, file, ".json")
    state = await session.context.storage_state(indexed_db=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(state), encoding="utf-8")
    return {"file": path.name, "cookies": len(state.get("cookies", [])), "origins": len(state.get("origins", []))}


@tool(
    'load_state(file="shop-login.json")',
    returns="How many cookies and sites were restored",
    safety_level=SafetyLevel.DANGEROUS,
)
async def load_state(session: BrowserSession, file: FileName = "state.json") -> Data:
    """Restore a saved login state, in place of the present one."""
    path = for_reading(session.files, file)
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        counts = {"cookies": len(state["cookies"]), "origins": len(state["origins"])}
    except (ValueError, KeyError, TypeError):
        raise BadInputError(f"{file!r} is not a saved state; make one with save_state") from None
    await session.context.set_storage_state(path)
    return {"file": file, **counts}


@tool(
    'download_file(url="https://example.com/report.pdf")',
    'download_file(selector="Download CSV")',
    returns="The file in the session's folder, its size and where it came from",
    safety_level=SafetyLevel.HIGH_RISK,
    timeout_seconds=300,
    limitations=("A file that is fetched by its address is held in memory until it is saved",),
)
async def download_file(
    session: BrowserSession,
    url: Annotated[str, "The address of the file"] = "",
    selector: Annotated[str, "Or the element whose click starts the download"] = "",
    file: Annotated[str, "The name to keep it under; empty for the one it comes with"] = "",
    timeout: Annotated[float, "How long the download may take, in milliseconds"] = 120000,
) -> Data:
    """Download a file into the session's folder."""
    if bool(url) == bool(selector):
        raise BadInputError("give either the url of the file or the selector of what to click")
    chosen = for_writing(session.files, file) if file else None
    if url:
        return await _fetch(session, session.check_url(url), chosen, timeout)
    match = await find(session, selector, "click")
    mark = len(session.happenings)
    downloading = session.page.expect_download(timeout=timeout)
    async with downloading as coming, acting(session, "clicked for a download", match):
        await match.locator.click(timeout=min(timeout, 30000))
    download = await coming.value
    if failure := await download.failure():
        raise NavigationError(f"the download of {download.url} failed: {failure}")
    await session.tabs.settle()
    saved = next(event for event in reversed(session.happenings[mark:]) if event["kind"] == "download")
    path = session.files / saved["file"]
    if chosen is not None:
        path = path.replace(chosen)
    return {"file": path.name, "bytes": path.stat().st_size, "url": download.url, "matched": match.as_dict()}


async def _fetch(session: BrowserSession, address: str, chosen: Any, timeout: float) -> dict[str, Any]:
    response = await session.context.request.get(address, timeout=timeout)
    try:
        if (refusal := refusal_in(response.headers)) is not None:
            raise DomainDeniedError(f"{response.url} was not fetched: {refusal}", url=response.url)
        if not response.ok:
            raise NavigationError(f"{address} answered {response.status}", retryable=response.status >= 500)
        body = await response.body()
    finally:
        await response.dispose()
    suggested = _named(response.headers.get("content-disposition", "")) or unquote(urlsplit(response.url).path)
    path = chosen or free_name(session.files, suggested)
    path.write_bytes(body)
    content_type = response.headers.get("content-type", "")
    return {"file": path.name, "bytes": len(body), "url": response.url, "type": content_type}


def _named(disposition: str) -> str:
    for part in disposition.split(";"):
        key, _, value = part.strip().partition("=")
        if key.lower() == "filename":
            return value.strip('"')
    return ""


@tool(
    'evaluate_javascript(script="document.title")',
    'evaluate_javascript(script="element => element.innerHTML", selector="e12")',
    returns="What the script returned",
    safety_level=SafetyLevel.DANGEROUS,
    timeout_seconds=60,
)
async def evaluate_javascript(
    session: BrowserSession,
    script: Annotated[str, "An expression or a function; with a selector, a function of the element"],
    selector: Annotated[str, "An element to hand to the function"] = "",
    timeout: Timeout = 5000,
) -> Data:
    """Run JavaScript in the page, with everything the page may do: it can act in the person's name."""
    match = await find_named(session, selector, timeout)
    try:
        value = await (match.locator.evaluate(script) if match else session.page.evaluate(script))
    except playwright_error() as error:
        line = str(error).splitlines()[0]
        raise BrowserError(f"the script failed: {line.partition(': ')[2] or line}") from None
    plain = json.loads(json.dumps(value, default=str))  # what is not JSON becomes its text
    return {"value": plain, "matched": told(match)}
