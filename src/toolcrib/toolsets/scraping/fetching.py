"""What the bricks that connect have in common: a guarded way out, failures in the pipeline's own words, settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import Field

from toolcrib import AddressRules, DeniedError, ToolFailedError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import Brick, BrickConfig, Item, Page, Request
from toolcrib.toolsets.browser.guard import GuardProxy, refusal_in

USER_AGENT = "Mozilla/5.0 (compatible; Toolcrib)"
_PROXY_PORTS = {"http": 80, "https": 443, "socks4": 1080, "socks4a": 1080, "socks5": 1080, "socks5h": 1080}

In = TypeVar("In", bound=Item)
Out = TypeVar("Out", bound=Item)


class ConnectingBrick(Brick[In, Out]):
    """If address rules are in force, every connection goes through a guard that holds them: each redirect too."""

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

    @property
    def guarded(self) -> str:
        """The guard's address, to be used as the proxy; '' if no rules are in force."""
        return self._guard.address if self._guard else ""

    def _note(self, url: str, reason: str) -> None:
        """A client is told only that a tunnel was refused; its error is explained from here."""
        self._refusals[urlsplit(url).hostname or ""] = reason

    @contextmanager
    def told_plainly(self, url: str, timeouts: type[Exception], errors: type[Exception]) -> Iterator[None]:
        """A library's own exceptions become ToolTimeoutError and UnavailableError; DeniedError if the guard refused."""
        try:
            yield
        except (timeouts, TimeoutError):
            raise ToolTimeoutError(self.spec.name, self.config.timeout) from None
        except errors as error:
            if refusal := self._refusals.get(urlsplit(url).hostname or ""):
                raise DeniedError(f"{url} was not fetched: {refusal}", rule="egress") from None
            reason = str(error) or type(error).__name__
            raise UnavailableError(f"{url} did not answer {self.spec.name!r}: {reason}") from error

    @asynccontextmanager
    async def limit_time(self, url: str, timeouts: type[Exception], errors: type[Exception]) -> AsyncIterator[None]:
        """As told_plainly, within the time that the settings give."""
        with self.told_plainly(url, timeouts, errors):
            async with asyncio.timeout(self.config.timeout):
                yield


class FetchConfig(BrickConfig):
    timeout: float = Field(30.0, gt=0, le=600, description="seconds for a whole answer")
    headers: dict[str, str] = Field(default_factory=dict, description="sent with every request")
    user_agent: str = USER_AGENT
    max_bytes: int = Field(20_000_000, gt=0, description="a larger answer is a failure")
    verify: bool = Field(True, description="check certificates")

    def headers_for(self, request: Request) -> dict[str, str]:
        return {"User-Agent": self.user_agent, **self.headers, **request.headers}


class FetchBrick(ConnectingBrick[Request, Page]):
    """A request that names a proxy of its own goes there: the rules judge that proxy, and the request's host alone."""

    Config: ClassVar[type[BrickConfig]] = FetchConfig
    private: ClassVar[tuple[str, ...]] = ("max_bytes",)
    takes = Request
    gives = Page

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._pinned: dict[str, str] = {}

    async def way_out(self, request: Request) -> str:
        """The proxy to use, or ''. One of the request's own is looked up and judged once."""
        proxy = request.proxy
        if not proxy or not self.addresses:
            return proxy or self.guarded
        if proxy not in self._pinned:
            try:
                self._pinned[proxy] = await _pinned(proxy, self.addresses, verify=self.config.verify)
            except DeniedError as error:
                raise DeniedError(f"{request.url} was not fetched: its proxy {error.message}", rule="egress") from None
            except OSError as error:
                raise UnavailableError(f"the proxy of {request.url} cannot be looked up: {error}") from None
        return self._pinned[proxy]

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


async def _pinned(proxy: str, rules: AddressRules, *, verify: bool) -> str:
    """The proxy at the address that was judged; by its name if it has to prove that with a certificate."""
    try:
        parts = urlsplit(proxy)
        usual = _PROXY_PORTS[parts.scheme]
        host, port = parts.hostname or "", parts.port or usual
    except (ValueError, KeyError):
        raise DeniedError("is not an address such as 'http://host:8080'") from None
    addresses = await rules.resolve(host, port, asyncio.get_running_loop().getaddrinfo)
    where = host if parts.scheme == "https" and verify else min(addresses, key=lambda address: ":" in address)
    login, at, _ = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{quote(login, safe=':%')}{at}{f'[{where}]' if ':' in where else where}:{port}"
