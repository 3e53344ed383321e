from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.website import serve_site, served
from tests.toolsets.scraping.services import CaptchaService, ForwardProxy, ScraperService

from toolcrib.toolsets.scraping.practice import Site


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_site() as running:
        yield running


@pytest.fixture
def scraper_service() -> Iterator[ScraperService]:
    with served(ScraperService()) as running:
        yield running


@pytest.fixture
def captcha_service() -> Iterator[CaptchaService]:
    with served(CaptchaService()) as running:
        yield running


@pytest.fixture
def two_proxies() -> Iterator[tuple[ForwardProxy, ForwardProxy]]:
    with served(ForwardProxy()) as one, served(ForwardProxy()) as other:
        yield one, other
