"""Using the mouse, the keyboard and what the page offers them."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Annotated, Any, Literal

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, Element, Timeout, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError, ElementNotReadyError, playwright_error
from toolcrib.toolsets.browser.page import ENGINE_NAME
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import acting, find, find_named, told
from toolcrib.toolsets.browser.tools.navigation import leading

tool = partial(browser_tool, category="interaction")
acts = partial(tool, safety_level=SafetyLevel.LOW_RISK)

Button = Annotated[Literal["left", "right", "middle"], "Which mouse button"]
Keys = Annotated[list[Literal["Alt", "Control", "Meta", "Shift"]], "Keys held down meanwhile"]
_NEW_TAB_SECONDS = 2.0
_PLAIN = re.compile(r"e\d+|#[\w-]+")


async def _clicked(
    session: BrowserSession, selector: str, timeout: float, *, count: int = 1, button: Button = "left", keys: Any = ()
) -> dict[str, Any]:
    session.tabs.expect_new()
    how: dict[str, Any] = {"timeout": max(timeout, 500), "click_count": count, "button": button, "modifiers": keys}
    frames = session.page.frames
    async with leading(session) as journey:
        if len(frames) == 1 and _PLAIN.fullmatch(selector):
            # The selector leaves no doubt, so the click need not wait for the answer to what it matches.
            clicking = asyncio.ensure_future(frames[0].locator(f"{ENGINE_NAME}={selector}").click(**how))
            try:
                match = await find(session, selector, "click", timeout)
            except BaseException:
                clicking.cancel()
                await asyncio.gather(clicking, return_exceptions=True)
                raise
        else:
            match = await find(session, selector, "click", timeout)
            clicking = asyncio.ensure_future(match.locator.click(**how))
        journey.action = f"clicking the {match}"
        async with acting(session, "clicked", match):
            await clicking
        if match.found.get("opens_tab"):
            await session.tabs.wait_for_new(_NEW_TAB_SECONDS)
    return {"clicked": str(match), "matched": match.as_dict(), "navigated": journey.navigated, "url": session.url}


@acts(
    'click(selector="#submit-btn")',
    'click(selector="e12")',
    'click(selector="Sign in button", timeout=10000)',
    returns="What was clicked, how it was matched, whether the page navigated, and the address now",
)
async def click(
    session: BrowserSession,
    selector: Element,
    timeout: Timeout = 5000,
    button: Button = "left",
    modifiers: Keys = [],  # noqa: B006  read only; None would be one more type in the schema
) -> Data:
    """Click on an element."""
    return await _clicked(session, selector, timeout, button=button, keys=modifiers)


@acts(
    'double_click(selector=".row")',
    returns="What was double-clicked, how it was matched, whether the page navigated, and the address now",
)
async def double_click(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
    """Double-click an element."""
    return await _clicked(session, selector, timeout, count=2)


@acts(
    'right_click(selector="#file")',
    returns="What was right-clicked, how it was matched, whether the page navigated, and the address now",
)
async def right_click(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
    """Click an element with the right mouse button."""
    return await _clicked(session, selector, timeout, button="right")


@acts(
    'press_key(key="Enter")',
    'press_key(key="Control+a", selector="#editor")',
    returns="The key, the element that had it, and whether the page navigated",
)
async def press_key(
    session: BrowserSession,
    key: Annotated[str, "A key or a combination: Enter, Escape, ArrowDown, Control+a"],
    selector: Annotated[str, "The element to press it in; empty for the one that has the focus"] = "",
    timeout: Timeout = 5000,
) -> Data:
    """Press a key on the keyboard."""
    match = await find_named(session, selector, timeout)
    async with leading(session, f"pressing {key}") as journey:
        try:
            if match is not None:
                async with acting(session, "given the key", match):
                    await match.locator.press(key, timeout=max(timeout, 500))
            else:
                await journey.tab.page.keyboard.press(key)
        except playwright_error() as error:
            if "Unknown key" in str(error):
                raise BadInputError(
                    f"{key!r} is not a key; use names such as Enter, Escape, ArrowDown or Control+a"
                ) from None
            raise
    return {"pressed": key, "matched": told(match), "navigated": journey.navigated, "url": session.url}


@tool('hover(selector="Products menu")', returns="What the mouse is over, and how it was matched")
async def hover(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
    """Move the mouse over an element."""
    match = await find(session, selector, "any", timeout)
    async with acting(session, "hovered over", match):
        await match.locator.hover(timeout=max(timeout, 500))
    return {"hovered": str(match), "matched": match.as_dict()}


@tool(
    'focus(selector="Email")', returns="What was given the focus, how it was matched, and whether it has the focus now"
)
async def focus(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
    """Give an element the keyboard focus."""
    match = await find(session, selector, "any", timeout)
    await match.locator.focus(timeout=max(timeout, 500))
    has_focus = await match.locator.evaluate("element => element.getRootNode().activeElement === element")
    if not has_focus:
        raise ElementNotReadyError(f"the {match} does not take the focus", retryable=False, matched=match.as_dict())
    return {"focused": str(match), "matched": match.as_dict(), "has_focus": True}


@tool(
    'scroll(direction="down")',
    'scroll(direction="bottom")',
    'scroll(selector="Terms heading")',
    returns="The scroll positions before and after, and whether the end is reached",
)
async def scroll(
    session: BrowserSession,
    direction: Annotated[Literal["down", "up", "left", "right", "top", "bottom"], "Which way"] = "down",
    amount: Annotated[int, "How many pixels; 0 for nearly a screenful"] = 0,
    selector: Annotated[str, "A box to scroll inside of, or an element to bring into view; empty for the page"] = "",
    timeout: Timeout = 5000,
) -> Data:
    """Scroll the page, scroll inside a box, or bring an element into view."""
    match = await find_named(session, selector, timeout)
    frame = match.frame if match else session.page.main_frame
    question = {"handle": match.handle if match else "", "direction": direction, "amount": amount}
    answer = await session.ask(frame, "scroll", question)
    before, after = answer["before"], answer["after"]
    moved = (before["x"], before["y"]) != (after["x"], after["y"])
    return {"before": before, "after": after, "moved": moved, "at_end": after["at_end"], "matched": told(match)}


@acts(
    'drag_and_drop(source="#card-1", target="Done column")',
    returns="What was dragged and where it was dropped, and how both were matched",
)
async def drag_and_drop(session: BrowserSession, source: Element, target: Element, timeout: Timeout = 5000) -> Data:
    """Drag one element and drop it on another."""
    dragged = await find(session, source, "any", timeout)
    onto = await find(session, target, "any", timeout)
    async with acting(session, "dragged", dragged):
        await dragged.locator.drag_to(onto.locator, timeout=max(timeout, 500))
    return {"dragged": str(dragged), "onto": str(onto), "matched": [dragged.as_dict(), onto.as_dict()]}


@acts(
    'handle_dialog(action="accept")',
    'handle_dialog(action="accept", text="Ada")',
    returns="What will become of the next dialogs, and the dialogs that there were so far",
    usage_notes="Dialogs never block: they are dismissed unless this was called before, and told in the result of the "
    "call that opened them. To accept one, call this and then repeat that call.",
)
async def handle_dialog(
    session: BrowserSession,
    action: Annotated[Literal["accept", "dismiss"], "What to do with the next dialogs"],
    text: Annotated[str, "The answer to a prompt"] = "",
    count: Annotated[int, "For how many dialogs this holds"] = 1,
) -> Data:
    """Decide beforehand how the next alert, confirm or prompt is answered."""
    answer = session.tabs.answer
    answer.action, answer.remaining = action, max(count, 1)
    answer.text = session.hidden.reveal(text, session.page.url)
    seen = [event for event in session.happenings if event["kind"] == "dialog"]
    return {"next": action, "count": answer.remaining, "seen": seen[-10:]}


@tool("resize(width=390, height=844)", returns="The size of the viewport before and after")
async def resize(
    session: BrowserSession, width: Annotated[int, "Width in pixels"], height: Annotated[int, "Height in pixels"]
) -> Data:
    """Change the size of the page's viewport."""
    if not (100 <= width <= 10000 and 100 <= height <= 10000):
        raise BadInputError(f"a viewport of {width} x {height} cannot be; give 100 to 10000 for each")
    before = session.page.viewport_size
    await session.page.set_viewport_size({"width": width, "height": height})
    size = await session.page.evaluate("() => ({ width: innerWidth, height: innerHeight })")
    return {"before": before, "after": size}
