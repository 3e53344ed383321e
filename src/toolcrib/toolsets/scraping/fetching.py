"""What the bricks that connect have in common: a guarded way out, failures in the pipeline's own words, settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import quote, urlsplit

from pydantic import Field

from toolcrib import AddressRules, DeniedError, ToolFailedError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import Brick, BrickConfig, Item, Page, Request
from toolcrib.toolsets.browser.guard import GuardProxy, refusal_in
from toolcrib.toolsets.scraping.robots import MOST_BYTES, RobotsTxt, name_of

if TYPE_CHECKING:
    import httpx

USER_AGENT = "Mozilla/5.0 (compatible; Toolcrib)"
_ROBOTS_REDIRECTS = 5
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
    cookies: dict[str, str] = Field(default_factory=dict, description="sent with every request, beside the host's own")
    user_agent: str = Field(USER_AGENT, description="who asks; robots.txt is obeyed under the name in it")
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
        self._robots_clients: dict[str, httpx.AsyncClient] = {}

    async def close(self) -> None:
        for client in self._robots_clients.values():
            await client.aclose()
        await super().close()

    async def way_out(self, request: Request) -> str:
        """The proxy to use, or ''. One of the request's own is looked up and judged once.

        Every client comes here first. A file of this machine, or a page of a browser's own, is no page to fetch: no
        guard would see it.
        """
        if not request.url.lower().startswith(("http://", "https://")):
            said = "it is not a web address; give one that begins with http:// or https://"
            raise DeniedError(f"{request.url!r} was not fetched: {said}", rule="egress")
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

    @property
    def robots_name(self) -> str:
        """The name by which a robots.txt speaks of this brick."""
        return name_of(self.config.user_agent)

    async def fetch_robots(self, request: Request, /) -> Page:
        """The answer to a request for a robots.txt, by the way that pages come too. One that goes round is empty."""
        import httpx

        body = bytearray()
        async with self.limit_time(request.url, httpx.TimeoutException, httpx.HTTPError):
            try:
                async with self._robots_client(await self.way_out(request)).stream("GET", request.url) as response:
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) >= MOST_BYTES:
                            break
            except httpx.TooManyRedirects:
                return Page(request, request.url, 404, b"")
        return self.page(request, str(response.url), response.status_code, response.headers, bytes(body[:MOST_BYTES]))

    def read_robots(self, page: Page, /) -> RobotsTxt:
        return RobotsTxt(page.body.decode("utf-8-sig", "replace"), self.robots_name)

    def _robots_client(self, proxy: str) -> httpx.AsyncClient:
        if proxy not in self._robots_clients:
            self._robots_clients[proxy] = self.http_client(proxy, _ROBOTS_REDIRECTS)
        return self._robots_clients[proxy]

    def http_client(self, proxy: str, redirects: int, **options: Any) -> httpx.AsyncClient:
        """A client that goes out through ``proxy`` alone and knows nothing of the environment."""
        import httpx

        return httpx.AsyncClient(
            follow_redirects=True,
            max_redirects=redirects,
            timeout=self.config.timeout,
            verify=self.config.verify,
            proxy=proxy or None,
            trust_env=False,
            headers={"User-Agent": self.config.user_agent or USER_AGENT},
            **options,
        )

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
