"""Fetching where plain clients are turned away: ``curl_cffi`` looks like a browser, ``scraperapi`` sends others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from toolcrib import DeniedError
from toolcrib.stacking import Page, Request, StepContext
from toolcrib.toolsets.scraping.fetching import FetchBrick, FetchConfig
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    from curl_cffi.requests import AsyncSession


_REFUSALS = {401: "does not accept the SCRAPERAPI_KEY", 403: "says that the credits of the SCRAPERAPI_KEY are used up"}


class CurlBrick(FetchBrick):
    """Every answer comes over a connection that a browser could have made. Brings its own User-Agent."""

    class Config(FetchConfig):
        impersonate: str = Field("chrome", description="the browser to look like, such as 'chrome' or 'safari'")
        user_agent: str = Field("", description="instead of the browser's own; robots.txt is obeyed under its name")

        def headers_for(self, request: Request) -> dict[str, str]:
            own = {"User-Agent": self.user_agent} if self.user_agent else {}
            return {**own, **self.headers, **request.headers}

    spec = scraping_spec("curl_cffi")
    modules = ("curl_cffi",)
    config: Config

    async def open(self) -> None:
        from curl_cffi.requests import AsyncSession

        await super().open()
        self._session: AsyncSession[Any] = AsyncSession(
            trust_env=False, max_clients=100, cookies=dict(self.config.cookies)
        )

    async def close(self) -> None:
        await self._session.close()
        await super().close()

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        from curl_cffi.requests.exceptions import RequestException, Timeout

        config = self.config
        method: Any = item.method
        impersonate: Any = config.impersonate
        async with self.limit_time(item.url, Timeout, RequestException):
            response = await self._session.request(
                method,
                item.url,
                headers=config.headers_for(item),
                data=item.body or None,
                impersonate=impersonate,
                timeout=config.timeout,
                verify=config.verify,
                proxy=await self.way_out(item) or None,
            )
        return [self.page(item, response.url, response.status_code, response.headers, response.content)]


class ScraperApiBrick(FetchBrick):
    """One call to the service for each request; the service's own refusals are told apart from the site's."""

    class Config(FetchConfig):
        endpoint: str = Field("https://api.scraperapi.com/", description="where the service answers")
        timeout: float = Field(70.0, gt=0, le=600, description="the service itself tries for up to 70 seconds")
        render: bool = Field(False, description="run the page's JavaScript")
        country_code: str = Field("", description="the country to ask from, such as 'nl'")
        premium: bool = Field(False, description="through the proxies of homes and telephones")

    spec = scraping_spec("scraperapi")
    private = ("max_bytes", "endpoint")
    modules = ("httpx",)
    config: Config

    async def open(self) -> None:
        import httpx

        self._key = self.secret("SCRAPERAPI_KEY")
        await super().open()
        self._client = httpx.AsyncClient(
            timeout=self.config.timeout, verify=self.config.verify, trust_env=False, proxy=self.guarded or None
        )

    async def close(self) -> None:
        await self._client.aclose()
        await super().close()

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        import httpx

        config = self.config
        async with self.limit_time(config.endpoint, httpx.TimeoutException, httpx.HTTPError):
            response = await self._client.request(
                item.method,
                config.endpoint,
                params=self._parameters(item),
                headers=self._sent(item),
                content=item.body or None,
            )
        url = response.headers.get("sa-final-url", item.url)
        page = self.page(item, url, response.status_code, response.headers, response.content)
        if page.status in _REFUSALS:
            raise DeniedError(f"the service behind 'scraperapi' {_REFUSALS[page.status]}", rule="scraperapi")
        return [page]

    async def fetch_robots(self, request: Request, /) -> Page:
        """Through the service too: the site would not answer us."""
        [page] = await self.process(request, StepContext())
        return page

    def _sent(self, request: Request) -> dict[str, str]:
        """What the service is to hand on."""
        cookies = "; ".join(f"{name}={value}" for name, value in self.config.cookies.items())
        return {**({"Cookie": cookies} if cookies else {}), **self.config.headers, **request.headers}

    def _parameters(self, request: Request) -> dict[str, str]:
        config = self.config
        chosen = {"render": config.render, "premium": config.premium, "keep_headers": bool(self._sent(request))}
        parameters = {"api_key": self._key, "url": request.url, "country_code": config.country_code}
        return {name: value for name, value in parameters.items() if value} | {
            name: "true" for name, wanted in chosen.items() if wanted
        }
