"""Putting values into fields: text, choices, check marks, files."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, Element, Timeout, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError, ElementNotReadyError
from toolcrib.toolsets.browser.folders import for_reading
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import Match, acting, find
from toolcrib.toolsets.browser.tools.navigation import leading

tool = partial(browser_tool, category="interaction")
acts = partial(tool, safety_level=SafetyLevel.LOW_RISK)

Text = Annotated[str, "The text; {{name}} stands for the configured secret of that name"]


async def _value(session: BrowserSession, match: Match, *, cloak: bool = False) -> dict[str, Any]:
    function = "cloak" if cloak else "before"
    gone: dict[str, Any] = {"value": "", "checked": False}
    answer: dict[str, Any] = await session.ask(match.frame, function, {"handle": match.handle}, missing=gone)
    return answer


@acts(
    'type(selector="Search", text="toolcrib", press_enter=True)',
    'type(selector="#password", text="{{password}}")',
    returns="Where it was typed, the field's value before and after, and whether the page navigated",
    name="type",
    timeout_seconds=60,
)
async def type_text(
    session: BrowserSession,
    selector: Element,
    text: Text,
    clear: Annotated[bool, "Empty the field first"] = False,
    press_enter: Annotated[bool, "Press Enter at the end"] = False,
    delay: Annotated[float, "Pause between the keys, in milliseconds"] = 0,
    timeout: Timeout = 5000,
) -> Data:
    """Type text into an element key by key, as a person does; fill is faster if the page does not mind."""
    match = await find(session, selector, "fill", timeout)
    revealed = session.hidden.reveal(text, match.frame.url)
    before = await _value(session, match, cloak=session.hidden.in_text(text))
    async with leading(session, f"typing into the {match}") as journey, acting(session, "typed into", match):
        if clear:
            await match.locator.clear(timeout=max(timeout, 500))
        await match.locator.press_sequentially(
            revealed, delay=delay, timeout=max(timeout, 500) + len(text) * (delay + 20)
        )
        after = await _value(session, match)
        if press_enter:
            await match.locator.press("Enter", timeout=max(timeout, 500))
    return {
        "typed_into": str(match),
        "matched": match.as_dict(),
        "before": before["value"],
        "after": after["value"],
        "navigated": journey.navigated,
        "url": session.url,
    }


async def fill_field(
    session: BrowserSession, match: Match, text: str, timeout: float, verb: str = "filled"
) -> tuple[str, str]:
    """Put a text into a field; its value before and after."""
    revealed = session.hidden.reveal(text, match.frame.url)
    before = await _value(session, match, cloak=session.hidden.in_text(text))
    async with acting(session, verb, match):
        await match.locator.fill(revealed, timeout=max(timeout, 500))
    return str(before["value"]), str((await _value(session, match))["value"])


@acts(
    'fill(selector="Email", value="ada@example.com")',
    'fill(selector="#password", value="{{password}}")',
    returns="Which field was filled, and its value before and after",
)
async def fill(session: BrowserSession, selector: Element, value: Text, timeout: Timeout = 5000) -> Data:
    """Put a value into a text field, in place of what is there."""
    match = await find(session, selector, "fill", timeout)
    before, after = await fill_field(session, match, value, timeout)
    return {"filled": str(match), "matched": match.as_dict(), "before": before, "after": after}


@acts('clear_input(selector="Search")', returns="Which field was emptied, and its value before and after")
async def clear_input(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
    """Empty a text field."""
    match = await find(session, selector, "fill", timeout)
    before, after = await fill_field(session, match, "", timeout, "emptied")
    return {"cleared": str(match), "matched": match.as_dict(), "before": before, "after": after}


@acts(
    'select(selector="Country", value="Norway")',
    'select(selector="#sizes", value=["S", "M"])',
    returns="What was selected, and the selection before and after",
    category="form",
)
async def select(
    session: BrowserSession,
    selector: Element,
    value: Annotated[str | list[str], "The option's text or value; a list for several"],
    timeout: Timeout = 5000,
) -> Data:
    """Select one or more options of a drop-down list."""
    match = await find(session, selector, "select", timeout)
    wanted = [value] if isinstance(value, str) else value
    before, after = await select_options(session, match, wanted, timeout)
    return {"selected": wanted, "in": str(match), "matched": match.as_dict(), "before": before, "after": after}


_OPTIONS = """element => element.tagName === 'SELECT'
  ? [...element.options].map((option) => [option.value, option.label.trim(), option.selected]) : null"""


async def select_options(
    session: BrowserSession, match: Match, wanted: list[str], timeout: float
) -> tuple[list[str], list[str]]:
    """Select options by text or value; the texts selected before and after."""
    options = await match.locator.evaluate(_OPTIONS)
    if options is None:
        return await _pick_option(session, match, wanted, timeout)
    values = [_option_index(options, text, match) for text in wanted]
    async with acting(session, "selected from", match):
        await match.locator.select_option(index=values, timeout=max(timeout, 500), force=not match.visible)
    after = await match.locator.evaluate(_OPTIONS)
    return [label for _, label, on in options if on], [label for _, label, on in after if on]


def _option_index(options: list[list[Any]], wanted: str, match: Match) -> int:
    exact = [at for at, (value, label, _) in enumerate(options) if wanted in (value, label)]
    folded = wanted.strip().casefold()
    loose = [at for at, (value, label, _) in enumerate(options) if folded in (value.casefold(), label.casefold())]
    begun = [at for at, (_, label, _) in enumerate(options) if folded and label.casefold().startswith(folded)]
    if found := exact + loose + begun:
        return found[0]
    labels = [label for _, label, _ in options]
    raise BadInputError(
        f"the {match} has no option {wanted!r}; it has {', '.join(map(repr, labels[:20]))}",
        looked_for=wanted,
        nearest=labels[:20],
    )


async def _pick_option(
    session: BrowserSession, match: Match, wanted: list[str], timeout: float
) -> tuple[list[str], list[str]]:
    """A list made of other elements: open it and click the options."""
    read = "element => (element.value ?? element.textContent).trim()"
    before = await match.locator.evaluate(read)
    for text in wanted:
        async with acting(session, "opened", match):
            await match.locator.click(timeout=max(timeout, 500))
        option = await find(session, text, "click", timeout)
        async with acting(session, "selected", option):
            await option.locator.click(timeout=max(timeout, 500))
    return [before], [await match.locator.evaluate(read)]


@acts(
    'check(selector="I agree")',
    'check(selector="#newsletter", checked=False)',
    returns="The box, and whether it was checked before and is now",
)
async def check(
    session: BrowserSession,
    selector: Element,
    checked: Annotated[bool, "True to check, False to uncheck"] = True,
    timeout: Timeout = 5000,
) -> Data:
    """Check or uncheck a check box, or choose a radio button."""
    match = await find(session, selector, "check", timeout)
    before, after = await set_checked(session, match, checked, timeout)
    return {"checked": after, "in": str(match), "matched": match.as_dict(), "before": before, "after": after}


async def set_checked(session: BrowserSession, match: Match, checked: bool, timeout: float) -> tuple[bool, bool]:
    before = bool((await _value(session, match))["checked"])
    async with acting(session, "checked", match):
        if match.visible:
            await match.locator.set_checked(checked, timeout=max(timeout, 500))
        elif before != checked:  # hidden behind something prettier: what a person clicks is its label
            await match.locator.evaluate("element => (element.labels?.[0] ?? element).click()")
    after = bool((await _value(session, match))["checked"])
    if after != checked:
        state = "checked" if checked else "unchecked"
        raise ElementNotReadyError(f"the {match} was clicked and still is not {state}", matched=match.as_dict())
    return before, after


@tool(
    'upload_file(selector="Attach a file", files=["report.pdf"])',
    returns="The files given to the page, with their sizes",
    safety_level=SafetyLevel.HIGH_RISK,
    timeout_seconds=60,
)
async def upload_file(
    session: BrowserSession,
    selector: Element,
    files: Annotated[list[str], "Names of files in the session's upload folder"],
    timeout: Timeout = 5000,
) -> Data:
    """Give files to a file field, or to a button that asks for files."""
    paths = [for_reading(session.upload_folder, name) for name in files]
    match = await find(session, selector, "any", timeout)
    is_field = await match.locator.evaluate("element => element.type === 'file'")
    async with acting(session, "given a file", match):
        if is_field:
            await match.locator.set_input_files(paths, timeout=max(timeout, 500))
        else:
            async with session.page.expect_file_chooser(timeout=max(timeout, 500)) as choosing:
                await match.locator.click(timeout=max(timeout, 500))
            await (await choosing.value).set_files(paths)
    sizes = [{"file": name, "bytes": path.stat().st_size} for name, path in zip(files, paths, strict=True)]
    return {"uploaded": sizes, "to": str(match), "matched": match.as_dict()}
