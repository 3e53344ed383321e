"""Scraping: bricks for real tools, from the request to the stored row, and their specs.

pipeline = load_pipeline("books.json")
pipeline.check().raise_first()
report = asyncio.run(pipeline.run())
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolcrib.stacking import Brick, InstalledBricks, Pipeline, Secrets, SpecsOf, read_definition
from toolcrib.toolsets.scraping.antibot import CurlBrick, ScraperApiBrick
from toolcrib.toolsets.scraping.browser import PlaywrightBrick
from toolcrib.toolsets.scraping.captcha import AntiCaptchaBrick
from toolcrib.toolsets.scraping.framework import ScrapyBrick
from toolcrib.toolsets.scraping.http import HttpxBrick, RequestsBrick
from toolcrib.toolsets.scraping.parsers import BeautifulSoupBrick, ExtructBrick, ParselBrick, SelectolaxBrick
from toolcrib.toolsets.scraping.proxies import ProxyListBrick
from toolcrib.toolsets.scraping.retired import RetiredBrick
from toolcrib.toolsets.scraping.specs import scraping_specs
from toolcrib.toolsets.scraping.tables import ParquetBrick, SqliteBrick
from toolcrib.toolsets.scraping.textfiles import CsvBrick, JsonLinesBrick
from toolcrib.toolsets.scraping.webdriver import SeleniumBrick

__all__ = ["BRICKS", "load_pipeline", "make_pipeline", "scraping_specs", "shipped_bricks"]

BRICKS: Mapping[str, type[Brick[Any, Any]]] = MappingProxyType(
    {
        brick.spec.name: brick
        for brick in (
            HttpxBrick,
            RequestsBrick,
            PlaywrightBrick,
            SeleniumBrick,
            ScrapyBrick,
            CurlBrick,
            ScraperApiBrick,
            ProxyListBrick,
            AntiCaptchaBrick,
            BeautifulSoupBrick,
            SelectolaxBrick,
            ParselBrick,
            ExtructBrick,
            JsonLinesBrick,
            CsvBrick,
            SqliteBrick,
            ParquetBrick,
            RetiredBrick.of("undetected-chromedriver"),
            RetiredBrick.of("cloudscraper"),
        )
    }
)
"""Every brick that ships, by the name of its spec; the last ones only say what to use instead."""


def shipped_bricks(chromium: str = "") -> dict[str, type[Brick[Any, Any]]]:
    """Every brick that ships; ``chromium`` is the browser for steps that do not name one."""
    return {**BRICKS, "playwright": PlaywrightBrick.using(chromium)}


def load_pipeline(
    path: str | Path,
    *,
    bricks: Mapping[str, type[Brick[Any, Any]]] | None = None,
    secrets: Secrets | Mapping[str, str] | None = None,
    specs_of: SpecsOf | None = None,
    chromium: str = "",
) -> Pipeline:
    """The pipeline in a JSON or TOML file, made of the bricks that ship, others given, and installed ones.

    ``chromium`` is the browser for steps that do not name one.
    """
    known = InstalledBricks({**shipped_bricks(chromium), **(bricks or {})})
    return Pipeline(read_definition(path), known, secrets=secrets, specs_of=specs_of)


def make_pipeline(
    *steps: str | tuple[str, Mapping[str, Any]], secrets: Secrets | Mapping[str, str] | None = None, **settings: Any
) -> Pipeline:
    """``make_pipeline("httpx", ("parsel", {...}), ("jsonlines", {...}), start=[...])``"""
    return Pipeline.of(*steps, bricks=InstalledBricks(BRICKS), secrets=secrets, **settings)
