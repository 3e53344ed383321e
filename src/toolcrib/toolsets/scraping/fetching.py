"""What the bricks that fetch have in common: settings, a guarded way out, failures in the pipeline's own words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar
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
    """If address rules are in force, every connection goes through a guard that holds them: each redirect too.

    A request that names a proxy of its own goes there, and the rules judge its host alone.
    """

    Config: ClassVar[type[BrickConfig]] = FetchConfig
    takes = Request
    gives = Page
    _guard: GuardProxy | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._refusals: dict[str, str] = {}

    async def open(self) -> None:
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
        self._refusals[urlsplit(url).hostname or ""] = reason

    @contextmanager
    def told_plainly(self, request: Request, timeouts: type[Exception], errors: type[Exception]) -> Iterator[None]:
        """As the function of that name; if the guard refused, the error is DeniedError."""
        try:
            with told_plainly(self.spec.name, request, self.config.timeout, timeouts, errors):
                yield
        except UnavailableError:
            if refusal := self._refusals.get(urlsplit(request.url).hostname or ""):
                raise DeniedError(f"{request.url} was not fetched: {refusal}", rule="egress") from None
            raise

    @asynccontextmanager
    async def limit_time(
        self, request: Request, timeouts: type[Exception], errors: type[Exception]
    ) -> AsyncIterator[None]:
        """As told_plainly, within the time that the settings give."""
        with self.told_plainly(request, timeouts, errors):
            async with asyncio.timeout(self.config.timeout):
                yield

    def page(self, request: Request, url: str, status: int, headers: Mapping[str, str | None], body: bytes) -> Page:
        """The answer, unless it is too large or comes from the guard."""
        self.check_size(len(body), request.url)
        plain = {name.lower(): value or "" for name, value in headers.items()}
        if refusal := refusal_in(plain):
            raise DeniedError(f"{url} was not fetched: {refusal}", rule="egress")
        return Page(request, url, status, body, plain, self.spec.name)

    def check_size(self, size: int, url: str) -> None:
        limit = self.config.max_bytes
        if size > limit:
            raise ToolFailedError(self.spec.name, f"{url} is larger than the {limit} bytes of 'max_bytes'")


@contextmanager
def told_plainly(
    tool: str, request: Request, seconds: float, timeouts: type[Exception], errors: type[Exception]
) -> Iterator[None]:
    """A library's own exceptions become ToolTimeoutError and UnavailableError."""
    try:
        yield
    except (timeouts, TimeoutError):
        raise ToolTimeoutError(tool, seconds) from None
    except errors as error:
        raise UnavailableError(
            f"{request.url} did not answer {tool!r}: {str(error) or type(error).__name__}"
        ) from error
