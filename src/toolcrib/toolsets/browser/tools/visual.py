"""Seeing the page: as an outline of text, as pictures, on paper."""

from __future__ import annotations

import base64
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from toolcrib import ModelCapability, SafetyLevel
from toolcrib.toolsets.browser.definition import Data, FileName, Timeout, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError
from toolcrib.toolsets.browser.folders import for_writing
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import find_named, told

if TYPE_CHECKING:
    from playwright.async_api import Locator

tool = partial(browser_tool, category="extraction")

_CHARACTERS_PER_TOKEN = 4
"""A token is about four characters of English and markup: an estimate that needs no tokenizer."""
_VISION = (ModelCapability.VISION,)


@tool(
    "snapshot()",
    "snapshot(page=2)",
    'snapshot(selector="main", interactive_only=True)',
    returns="The outline, one line a thing with role, name, state and handle; the page of it, and how many there are",
    timeout_seconds=60,
    usage_notes="Use the handles (e12) as selectors of the other tools. They stay with an element while it lives.",
)
async def snapshot(
    session: BrowserSession,
    selector: Annotated[str, "Which part of the page; empty for all of it"] = "",
    page: Annotated[int, "Which page of the outline, from 1"] = 1,
    max_tokens: Annotated[int, "How large one page of the outline may be, in tokens of about four characters"] = 6000,
    interactive_only: Annotated[bool, "Leave everything out that cannot be used"] = False,
    timeout: Timeout = 5000,
) -> Data:
    """Outline the page as its accessibility tree, with a handle for every element that can be used."""
    match = await find_named(session, selector, timeout)
    heading = f"{await session.page.title()} ({session.page.url})"
    room = max(max_tokens, 100) * _CHARACTERS_PER_TOKEN - len(heading) - 200
    root = match.handle if match else ""
    question = {"root": root, "characters": room, "page": page, "interactiveOnly": interactive_only}
    outline = await session.ask(match.frame if match else session.page.main_frame, "snapshot", question)
    text, pages, left_out = outline["text"], outline["pages"], 0
    if not match and outline["page"] == pages:
        text, left_out = await _with_frames(session, text, room, interactive_only)
    if outline["page"] < pages:
        text += f"\n... page {outline['page']} of {pages}; the rest with snapshot(page={outline['page'] + 1})"
    if left_out:
        text += f"\n... {left_out} frames did not fit; read them with snapshot(selector=<an element in the frame>)"
    return {
        "snapshot": f"{heading}\n{text}",
        "page": outline["page"],
        "pages": pages,
        "lines": outline["lines"],
        "tokens": (len(heading) + len(text)) // _CHARACTERS_PER_TOKEN + 1,
        "matched": told(match),
    }


async def _with_frames(session: BrowserSession, text: str, room: int, interactive_only: bool) -> tuple[str, int]:
    """The outlines of the page's frames after its own, as long as there is room."""
    left_out = 0
    for frame in session.page.frames[1:]:
        question = {"root": "", "characters": room, "page": 1, "interactiveOnly": interactive_only}
        inner = await session.ask(frame, "snapshot", question, missing={"text": ""})
        if not inner["text"]:
            continue
        block = f"\nframe {frame.name or frame.url}:\n" + "\n".join(f"  {line}" for line in inner["text"].splitlines())
        if inner["pages"] > 1 or len(text) + len(block) > room:
            left_out += 1
        else:
            text += block
    return text, left_out


def _image(data: bytes, kind: str) -> dict[str, str]:
    return {"type": "image", "mimeType": f"image/{kind}", "data": base64.b64encode(data).decode("ascii")}


async def _veil(session: BrowserSession) -> list[Locator]:
    """What must not be seen on a picture: places where the page shows a secret."""
    return [frame.get_by_text(value) for frame in session.page.frames for value in session.hidden.values]


@tool(
    "screenshot()",
    "screenshot(full_page=True)",
    'screenshot(selector="#chart", file="chart.png")',
    returns="The picture (base64 and its MIME type), its size, and the file if one was asked for",
    required_capabilities=_VISION,
    optimal_capabilities=_VISION,
    timeout_seconds=60,
)
async def screenshot(
    session: BrowserSession,
    selector: Annotated[str, "An element to take alone; empty for the page"] = "",
    full_page: Annotated[bool, "The whole page instead of what is in view"] = False,
    format: Annotated[Literal["png", "jpeg"], "The kind of picture"] = "png",
    file: Annotated[str, "Also keep it under this name in the session's folder"] = "",
    timeout: Timeout = 5000,
) -> Data:
    """Take a picture of the page, of all of it, or of one element."""
    match = await find_named(session, selector, timeout)
    path = for_writing(session.files, file) if file else None
    veil = await _veil(session)
    if match is not None:
        data = await match.locator.screenshot(type=format, mask=veil, timeout=max(timeout, 5000))
    else:
        data = await session.page.screenshot(type=format, full_page=full_page, mask=veil, timeout=30000)
    if path is not None:
        path.write_bytes(data)
    return {
        "image": _image(data, format),
        "bytes": len(data),
        "url": session.page.url,
        "file": path.name if path else None,
        "matched": told(match),
    }


@tool(
    "page_explorer()",
    "page_explorer(screens=5)",
    returns="A picture of each screenful from the top, with its scroll position and the elements to use in it",
    required_capabilities=_VISION,
    optimal_capabilities=(ModelCapability.VISION, ModelCapability.MULTI_IMAGE_VISION),
    timeout_seconds=120,
)
async def page_explorer(session: BrowserSession, screens: Annotated[int, "How many screenfuls at most"] = 3) -> Data:
    """Look through the page screen by screen: a picture of each, and what can be used in it."""
    if not 1 <= screens <= 20:
        raise BadInputError(f"screens is {screens}; give 1 to 20")
    page, frame = session.page, session.page.main_frame
    start = await session.ask(frame, "scroll", {"handle": "", "direction": "top", "amount": 0})
    found: list[dict[str, Any]] = []
    position = start["after"]
    while True:
        picture = await page.screenshot(type="jpeg", quality=70, mask=await _veil(session), timeout=30000)
        visible = await session.ask(frame, "inView", {"limit": 60})
        found.append({"scroll": position["y"], "image": _image(picture, "jpeg"), "elements": visible})
        if position["at_end"] or len(found) >= screens:
            break
        position = (await session.ask(frame, "scroll", {"handle": "", "direction": "down", "amount": 0}))["after"]
    state = await session.ask(frame, "pageState", {})
    await page.evaluate("([x, y]) => window.scrollTo({ left: x, top: y, behavior: 'instant' })",
                        [start["before"]["x"], start["before"]["y"]])  # fmt: skip
    return {
        "screens": found,
        "complete": bool(position["at_end"]),
        "headings": state["headings"],
        "height": position["height"],
    }


@tool(
    'save_pdf(file="page.pdf")',
    returns="The file in the session's folder, and its size",
    safety_level=SafetyLevel.HIGH_RISK,
    timeout_seconds=60,
)
async def save_pdf(
    session: BrowserSession,
    file: FileName = "page.pdf",
    landscape: Annotated[bool, "Paper on its side"] = False,
    background: Annotated[bool, "Print background colours and pictures"] = True,
) -> Data:
    """Print the page to a PDF file."""
    path = for_writing(session.files, file, ".pdf")
    await session.page.pdf(path=path, landscape=landscape, print_background=background)
    name = str(path.relative_to(session.files.resolve()))
    return {"file": name, "bytes": path.stat().st_size, "url": session.page.url}
