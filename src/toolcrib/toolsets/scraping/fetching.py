"""What the bricks that fetch have in common: settings, a guarded way out, failures in the pipeline's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from toolcrib import DeniedError, ToolFailedError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import Brick, BrickConfig, Page, Request
from toolcrib.toolsets.browser.guard import GuardProxy, refusal_in

USER_AGENT = "Mozilla/5.0 (compatible; Toolcrib)"


class FetchConfig(BrickConfig):
    timeout: float = Field(30.0, gt=0, le=600, description="seconds for a whole answer")
    headers: dict[str, str] = Field(default_factory=dict, description="sent with every request")
    user_agent: str = USER_AGENT
    max_bytes: int = Field(20_000_000, gt=0, description="a larger answer is a failure")
    verify: bool = Field(True, description="check certificates")

    def headers_for(self, request: Request) -> dict[str, str]:
        return {"User-Agent": self.user_agent, **self.headers, **request.headers}


class FetchBrick(Brick[Request, Page]):
    """Where address rules are in force, every connection goes through a guard that holds them: each redirect too.

    A request that names a proxy of its own goes there, and the rules judge its host alone.
    """

    _guard: GuardProxy | None = None

    async def open(self) -> None:
        self.refusals: dict[str, str] = {}
        if self.addresses:
            self._guard = GuardProxy(self.addresses, self._note)
            await self._guard.start()

    async def close(self) -> None:
        if self._guard is not None:
            await self._guard.close()

    def way_out(self, request: Request) -> str:
        """The proxy to use, or ''."""
        return request.proxy or (self._guard.address if self._guard else "")

    def _note(self, url: str, reason: str) -> None:
        """A client is told only that a tunnel was refused; its error is explained from here."""
        self.refusals[urlsplit(url).hostname or ""] = reason


def page(tool: str, request: Request, url: str, status: int, headers: Mapping[str, str], body: bytes) -> Page:
    plain = {name.lower(): value for name, value in headers.items()}
    if refusal := refusal_in(plain):
        raise DeniedError(f"{url} was not fetched: {refusal}", rule="egress")
    return Page(request, url, status, body, plain, tool)


def check_size(tool: str, config: FetchConfig, size: int, url: str) -> None:
    if size > config.max_bytes:
        raise ToolFailedError(tool, f"{url} is larger than the {config.max_bytes} bytes of 'max_bytes'")


@contextmanager
def told_plainly(
    brick: Brick[Any, Any], request: Request, seconds: float, timeouts: type[Exception], errors: type[Exception]
) -> Iterator[None]:
    """A library's own exceptions become ToolTimeoutError, UnavailableError and, if the guard refused, DeniedError."""
    try:
        yield
    except (timeouts, TimeoutError):
        raise ToolTimeoutError(brick.spec.name, seconds) from None
    except errors as error:
        if refusal := brick.refusals.get(urlsplit(request.url).hostname or "") if isinstance(brick, FetchBrick) else "":
            raise DeniedError(f"{request.url} was not fetched: {refusal}", rule="egress") from None
        raise UnavailableError(
            f"{request.url} did not answer {brick.spec.name!r}: {str(error) or type(error).__name__}"
        ) from error
