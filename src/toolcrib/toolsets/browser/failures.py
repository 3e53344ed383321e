"""What can go wrong in a browser, said so that the caller knows what to do next.

``retryable`` says whether the same call can help later, ``recoverable`` whether the task can go on some other way.
"""

from __future__ import annotations

import re
from typing import Any

from toolcrib import MissingDependencyError, ToolcribError, ToolFailedError, ToolResult


def playwright_error() -> type[Exception]:
    """The base of what Playwright raises; it is imported when first needed, since the specs are there without it."""
    try:
        from playwright.async_api import Error
    except ImportError:
        raise MissingDependencyError("Playwright", extra="browser") from None
    return Error


class BrowserError(ToolcribError):
    """Something went wrong in the browser. ``details`` go into the metadata of the result."""

    code = "browser_failed"
    answer = ToolFailedError.answer
    recoverable = True

    def __init_subclass__(cls, *, code: str, retryable: bool = False) -> None:
        cls.code, cls.retryable = code, retryable

    def __init__(self, message: str, *, retryable: bool | None = None, **details: Any) -> None:
        super().__init__(message)
        self.can_retry = type(self).retryable if retryable is None else retryable
        self.details = details

    def as_result(self) -> ToolResult:
        return ToolResult.failure_result(
            self.message, self.code, retryable=self.can_retry, recoverable=self.recoverable, **self.details
        )


class ElementNotFoundError(BrowserError, code="element_not_found", retryable=True):
    """Nothing on the page is what was asked for."""


class ElementNotReadyError(BrowserError, code="element_not_ready", retryable=True):
    """It is there, but hidden, covered or disabled."""


class NavigationError(BrowserError, code="navigation_failed", retryable=True):
    """The address did not open."""


class DomainDeniedError(BrowserError, code="domain_denied"):
    """The address rules say no."""


class PageTimeoutError(BrowserError, code="timeout", retryable=True):
    """The page did not do it in time."""


class BrowserCrashedError(BrowserError, code="browser_crashed", retryable=True):
    """The browser or the tab died."""


class PathDeniedError(BrowserError, code="path_denied"):
    """A file is outside the session's folders."""


class SecretDeniedError(BrowserError, code="secret_denied"):
    """A secret has no business on this page."""


class NotConfiguredError(BrowserError, code="missing_config"):
    """The session was not given what the tool needs."""


class BadInputError(BrowserError, code="invalid_arguments"):
    """An argument has a value that it cannot have."""


_OBSTACLES = (
    (re.compile(r"(<[^>]{1,80}>).{0,80}intercepts pointer events", re.DOTALL), "it is covered by {}"),
    (re.compile(r"element is (not visible|not enabled|not editable|outside of the viewport|not stable)"), "it is {}"),
    (re.compile(r"(did not find some options)"), "it has no such option"),
)
_DONE = re.compile(r"^ *- click action done$", re.MULTILINE)
"""A line of its own: in Playwright's log what a page says never begins one."""
_UNREACHABLE = re.compile(r"net::(ERR_\w+)")
_GONE = ("Target closed", "has been closed", "Browser closed", "browser has disconnected", "Connection closed")


def obstacle(text: str) -> str:
    """What stood in the way, read off Playwright's log of its attempts."""
    for pattern, sentence in _OBSTACLES:
        if found := pattern.search(text):
            return sentence.format(found.group(1))
    return ""


def is_late(error: Exception) -> bool:
    """Whether Playwright gave up because the time was over."""
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    return isinstance(error, PlaywrightTimeoutError)


def is_done(error: Exception) -> bool:
    """Whether the click itself took place: what did not come in time is the page that it leads to."""
    return is_late(error) and _DONE.search(str(error)) is not None


def translated(error: Exception, doing: str) -> BrowserError:
    """Playwright's error as one of ours; ``doing`` names the call."""
    text = str(error)
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    if reason := _UNREACHABLE.search(text):
        return NavigationError(f"{doing}: the address did not open ({reason.group(1)})", reason=reason.group(1))
    if found := obstacle(text):
        return ElementNotReadyError(f"{doing}: the element is there, but {found}", obstacle=found)
    if "crashed" in first:
        return BrowserCrashedError(f"{doing}: the tab crashed; the next call opens a new one")
    if any(sign in first for sign in _GONE):
        return BrowserError(f"{doing}: the tab was closed in the middle of the call", retryable=True)
    if is_late(error):
        return PageTimeoutError(f"{doing}: the page did not get there in time ({_shortened(first)})")
    return BrowserError(f"{doing}: {_shortened(first)}")


def _shortened(line: str) -> str:
    return re.sub(r"^(Page|Locator|Frame|Mouse|Keyboard|BrowserContext)\.\w+: ", "", line)[:300]
