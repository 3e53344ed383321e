"""Whole forms."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, Timeout, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError, ElementNotFoundError, ElementNotReadyError
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import Match, acting, find, find_named, told
from toolcrib.toolsets.browser.tools.fields import fill_field, select_options, set_checked
from toolcrib.toolsets.browser.tools.navigation import leading

tool = partial(browser_tool, category="form")

Form = Annotated[str, "The form: a CSS selector, a handle, or its name; empty for the only or first one"]


@tool(
    "get_form()",
    'get_form(selector="#checkout")',
    returns="Each form with its fields: label, name, type, value (no passwords), options, what is required or wrong",
)
async def get_form(session: BrowserSession, selector: Form = "", timeout: Timeout = 5000) -> Data:
    """List the fields of the page's forms."""
    target = await find_named(session, selector, timeout)
    frames = [target.frame] if target else session.page.frames
    forms = []
    for frame in frames:
        found = await session.ask(frame, "forms", {"target": target.handle if target else ""}, missing={"forms": []})
        forms += found["forms"]
    if not forms:
        raise ElementNotFoundError(f"{session.page.url} has no form and no fields", looked_for=selector or "a form")
    return {"forms": forms, "matched": told(target)}


@tool(
    'fill_form(fields={"Email": "ada@example.com", "Country": "Norway", "I agree": true})',
    'fill_form(fields={"user": "ada", "password": "{{password}}"}, submit=True)',
    returns="Each field with what was matched and its value before and after; if submit was asked for, what came of it",
    safety_level=SafetyLevel.MEDIUM_RISK,
    timeout_seconds=120,
)
async def fill_form(
    session: BrowserSession,
    fields: Annotated[
        dict[str, str | bool | float | list[str]], "A value for each field, named by its label, name or placeholder"
    ],
    submit: Annotated[bool, "Send the form afterwards"] = False,
    timeout: Timeout = 5000,
) -> Data:
    """Fill in several fields of a form: texts, lists, check boxes and radio buttons."""
    filled: list[dict[str, Any]] = []
    for name, value in fields.items():
        try:
            match = await _field(session, name, value, timeout)
            before, after = await _set(session, match, value, timeout)
        except (BadInputError, ElementNotFoundError, ElementNotReadyError) as error:
            done = ", ".join(repr(entry["field"]) for entry in filled) or "none"
            error.args = (f"field {name!r}: {error.message}; filled before it: {done}",)
            error.details["filled"] = filled
            raise
        filled.append({"field": name, "matched": match.as_dict(), "before": before, "after": after})
    result: dict[str, Any] = {"filled": filled, "matched": [entry["matched"] for entry in filled]}
    if submit:
        result["submitted"] = await send(session, filled[-1]["matched"]["handle"] if filled else "", timeout)
    return result


async def _field(session: BrowserSession, name: str, value: Any, timeout: float) -> Match:
    """A radio group is named by its question, and the value tells which of its buttons is meant."""
    if isinstance(value, str) and not name.lstrip().startswith(("#", ".", "[")):
        for frame in session.page.frames:
            handle = await session.ask(frame, "radio", {"name": name, "value": value}, missing="")
            if handle:
                return await find(session, handle, "check", timeout)
    return await find(session, name, "field", timeout)


async def _set(session: BrowserSession, match: Match, value: Any, timeout: float) -> tuple[Any, Any]:
    role = match.found["role"]
    if role in ("checkbox", "radio", "switch"):
        wanted = value if isinstance(value, bool) else True if role == "radio" else _truth(match, value)
        return await set_checked(session, match, wanted, timeout)
    if match.found["tag"] == "select" or role == "listbox":
        wanted_options = [str(item) for item in value] if isinstance(value, list) else [_text(value)]
        return await select_options(session, match, wanted_options, timeout)
    return await fill_field(session, match, _text(value), timeout)


def _truth(match: Match, value: Any) -> bool:
    text = str(value).strip().casefold()
    if text in ("true", "yes", "on", "1", "checked"):
        return True
    if text in ("false", "no", "off", "0", "unchecked", ""):
        return False
    raise BadInputError(f"the {match} is a check box: give true or false, not {value!r}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


async def send(session: BrowserSession, target: str, timeout: float) -> Data:
    """Send a form as a person does: with its button, so that the page's own checks run."""
    match = await find_named(session, target, timeout)
    frame = match.frame if match else session.page.main_frame
    answer = await session.ask(frame, "submitter", {"target": match.handle if match else ""})
    if answer["form"] is None:
        raise ElementNotFoundError(f"{session.page.url} has no form to submit", looked_for=target or "a form")
    form = Match(frame, {"by": "form", "matches": 1, "visible": True, **answer["form"]})
    async with leading(session, "submitting the form") as journey:
        if answer["button"] is not None:
            pressed = Match(frame, {"by": "form", "matches": 1, "visible": True, **answer["button"]})
            async with acting(session, "pressed", pressed):
                await pressed.locator.click(timeout=max(timeout, 500))
        else:
            await form.locator.evaluate("form => form.requestSubmit()")
        if answer["problems"] and not journey.navigated:
            raise ElementNotReadyError(
                f"the form was not sent, because it is not valid: {'; '.join(answer['problems'])}",
                retryable=False,
                problems=answer["problems"],
            )
    return {
        "submitted": str(form),
        "matched": form.as_dict(),
        "navigated": journey.navigated,
        "url": session.url,
        "title": await session.page.title(),
    }


@tool(
    "submit()",
    'submit(selector="#login")',
    returns="The form that was sent, whether the page navigated, and the address and title now",
    safety_level=SafetyLevel.MEDIUM_RISK,
    timeout_seconds=60,
)
async def submit(session: BrowserSession, selector: Form = "", timeout: Timeout = 5000) -> Data:
    """Send a form."""
    return await send(session, selector, timeout)
