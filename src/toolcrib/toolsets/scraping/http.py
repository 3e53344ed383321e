"""Plain HTTP clients: ``httpx`` on the event loop, ``requests`` in threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pydantic import Field

from toolcrib import MissingDependencyError, ToolcribError, ToolTimeoutError
from toolcrib.stacking import Page, Request, StepContext
from toolcrib.toolsets.scraping.fetching import FetchBrick, FetchConfig
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    import httpx
    import requests
    from requests.cookies import RequestsCookieJar

_KEPT_CONNECTIONS = 64
_PIECE = 65536


class HttpxBrick(FetchBrick):
    """One client for direct requests and one for each proxy, each with its own connections and cookies."""

    class Config(FetchConfig):
        http2: bool = Field(False, description="use HTTP/2 if the server does; needs the package h2")
        max_redirects: int = Field(20, ge=0, description="so many redirects one after the other")

    spec = scraping_spec("httpx")
    modules = ("httpx",)
    config: Config

    def missing(self) -> list[ToolcribError]:
        h2 = [MissingDependencyError("h2, which 'http2' needs,", "pip install h2")]
        return super().missing() + (h2 if self.config.http2 and find_spec("h2") is None else [])

    async def open(self) -> None:
        await super().open()
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        await super().close()

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        import httpx

        body = bytearray()
        async with (
            self.limit_time(item.url, httpx.TimeoutException, httpx.HTTPError),
            self._client(await self.way_out(item)).stream(
                item.method, item.url, headers=self.config.headers_for(item), content=item.body or None
            ) as response,
        ):
            async for piece in response.aiter_bytes():
                body += piece
                self.check_size(len(body), item.url)
        return [self.page(item, str(response.url), response.status_code, response.headers, bytes(body))]

    def _client(self, proxy: str) -> httpx.AsyncClient:
        client = self._clients.get(proxy)
        if client is None:
            import httpx

            client = self._clients[proxy] = self.http_client(
                proxy,
                self.config.max_redirects,
                http2=self.config.http2,
                cookies=self.config.cookies,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS),
            )
        return client


class RequestsBrick(FetchBrick):
    """A session for each thread, all with the same cookies."""

    spec = scraping_spec("requests")
    modules = ("requests",)
    config: FetchConfig

    async def open(self) -> None:
        import requests

        await super().open()
        self._own = threading.local()
        self._sessions: list[requests.Session] = []
        self._cookies: RequestsCookieJar = requests.Session().cookies
        self._cookies.update(self.config.cookies)

    async def close(self) -> None:
        for session in self._sessions:
            session.close()
        await super().close()

    def process(self, item: Request, context: StepContext, /) -> Sequence[Page]:
        import requests

        config = self.config
        deadline = time.monotonic() + config.timeout
        proxy = asyncio.run(self.way_out(item))
        with (
            self.told_plainly(item.url, requests.Timeout, requests.RequestException),
            self._session().request(
                item.method,
                item.url,
                headers=config.headers_for(item),
                data=item.body or None,
                timeout=config.timeout,
                stream=True,
                verify=config.verify,
                proxies={"http": proxy, "https": proxy} if proxy else {},
            ) as response,
        ):
            body = bytearray()
            for piece in response.iter_content(_PIECE):
                body += piece
                self.check_size(len(body), item.url)
                if time.monotonic() > deadline or context.cancelled:
                    raise ToolTimeoutError(self.spec.name, config.timeout)
        return [self.page(item, response.url, response.status_code, response.headers, bytes(body))]

    def _session(self) -> requests.Session:
        import requests

        session: requests.Session | None = getattr(self._own, "session", None)
        if session is None:
            session = self._own.session = requests.Session()
            session.trust_env = False
            session.cookies = self._cookies
            self._sessions.append(session)
        return session
