"""``scrapy``: Scrapy's engine with its downloader middlewares, on our own event loop and without a Twisted reactor."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from toolcrib import UnavailableError
from toolcrib.stacking import Page, Request, StepContext
from toolcrib.toolsets.scraping.fetching import FetchBrick, FetchConfig
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

_MUST_STOP_SECONDS = 5.0
_MANY = 1000


class ScrapyBrick(FetchBrick):
    """One crawler for the run, with Scrapy's cookies, redirects, compression and, if they are wanted, its retries.

    Which pages are asked for, how many at once and how often is the run's affair: what Scrapy has for that is off.
    """

    class Config(FetchConfig):
        retries: int = Field(0, ge=0, le=20, description="so often Scrapy itself tries a page again, within 'timeout'")
        max_redirects: int = Field(20, ge=0, description="so many redirects one after the other")

    spec = scraping_spec("scrapy")
    modules = ("scrapy",)
    config: Config

    async def open(self) -> None:
        await super().open()
        try:
            await asyncio.to_thread(importlib.import_module, "scrapy.crawler")  # it takes a second
            await self._begin()
        except BaseException:
            await super().close()
            raise

    async def close(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_MUST_STOP_SECONDS):
                await self._crawler.stop_async()
                await self._crawl
        self._crawl.cancel()
        await super().close()

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        import scrapy
        from scrapy.exceptions import DownloadCancelledError, DownloadTimeoutError

        config = self.config
        cookies: list[Any] = [{"name": name, "value": value, "path": "/"} for name, value in config.cookies.items()]
        asked = scrapy.Request(
            item.url,
            method=item.method,
            headers=config.headers_for(item),
            body=item.body or None,
            cookies=cookies,
            dont_filter=True,
            meta={"proxy": await self.way_out(item) or None},  # None: not what the environment says
        )
        assert self._crawler.engine is not None
        response: Response | None = None
        async with self.limit_time(item.url, DownloadTimeoutError, Exception):
            with contextlib.suppress(DownloadCancelledError):
                response = await self._crawler.engine.download_async(asked)
        if response is None:  # it is why Scrapy gives up in the middle
            self.check_size(config.max_bytes + 1, item.url)
            return []
        headers = {str(name): str(value) for name, value in response.headers.to_unicode_dict().items()}
        return [self.page(item, response.url, response.status, headers, response.body)]

    async def _begin(self) -> None:
        from scrapy import Spider, signals
        from scrapy.crawler import AsyncCrawlerRunner
        from scrapy.exceptions import DontCloseSpider

        _keep_to_itself()
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        class Waiting(Spider):
            name = "toolcrib"

            async def start(self) -> AsyncIterator[Any]:
                ready.set_result(None)
                for nothing in list[Any]():
                    yield nothing

        def stay(**_: object) -> None:
            raise DontCloseSpider

        runner = AsyncCrawlerRunner(self._settings())
        self._crawler: Crawler = runner.create_crawler(Waiting)
        self._crawler.signals.connect(stay, signals.spider_idle, weak=False)
        try:
            self._crawl = runner.crawl(self._crawler)
        except RuntimeError as error:  # somebody else's reactor
            raise UnavailableError(f"'scrapy' cannot run in this program: {error}") from None
        await asyncio.wait({self._crawl, ready}, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            reason = self._crawl.exception() if not self._crawl.cancelled() else None
            raise UnavailableError(f"'scrapy' did not start: {reason}")

    def _settings(self) -> dict[str, Any]:
        config = self.config
        return {
            "TWISTED_REACTOR_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "EXTENSIONS_BASE": {},  # one of them listens at a port
            "ROBOTSTXT_OBEY": False,
            "USER_AGENT": config.user_agent,
            "CONCURRENT_REQUESTS": _MANY,
            "CONCURRENT_REQUESTS_PER_DOMAIN": _MANY,
            "DOWNLOAD_DELAY": 0,
            "DOWNLOAD_TIMEOUT": config.timeout,
            "DOWNLOAD_MAXSIZE": config.max_bytes,
            "DOWNLOAD_WARNSIZE": 0,
            "DOWNLOAD_VERIFY_CERTIFICATES": config.verify,
            "RETRY_ENABLED": config.retries > 0,
            "RETRY_TIMES": config.retries,
            "REDIRECT_MAX_TIMES": config.max_redirects,
        }


def _keep_to_itself() -> None:
    """Scrapy is not to print, nor to ask the network for the list of public suffixes: the one it brings will do."""
    from scrapy.downloadermiddlewares import cookies
    from tldextract import TLDExtract

    extract = TLDExtract(include_psl_private_domains=True, suffix_list_urls=(), cache_dir=None)
    setattr(cookies, "_split_domain", extract)  # noqa: B010  it offers no other way
    logger = logging.getLogger("scrapy")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
