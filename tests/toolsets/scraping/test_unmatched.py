"""A selector that matches nothing is told."""

from __future__ import annotations

import pytest

from toolcrib import ToolRegistry
from toolcrib.stacking import UnmatchedSelector
from toolcrib.toolsets.scraping import make_pipeline
from toolcrib.toolsets.scraping.practice import Site

PARSERS = ["beautifulsoup4", "selectolax", "parsel"]


@pytest.mark.parametrize("parser", PARSERS)
async def test_a_row_selector_that_matches_nothing_is_told(parser: str, site: Site) -> None:
    config = {"rows": "article.bok", "selectors": {"title": "h3"}, "follow": "a.next@href"}
    report = await make_pipeline("httpx", (parser, config)).run([f"{site.url}/books/1"])
    assert (report.ok, report.items) == (True, 0)
    assert report.unmatched == [UnmatchedSelector(parser, "rows", "article.bok", 3, 3)]
    assert str(report.unmatched[0]) == (
        f"step {parser!r}: the selector 'article.bok' of 'rows' matched nothing on any of 3 pages"
    )


@pytest.mark.parametrize("parser", PARSERS)
async def test_a_field_that_is_never_there_is_told_one_that_is_there_sometimes_is_not(parser: str, site: Site) -> None:
    selectors = {
        "title": "h3",
        "isbn": ".isbn",
        "tags": ["li.tug"],
        "link": "h3 a@hrf",
        "first": "h3 a[href='/book/0']",
    }
    config = {"rows": "article.book", "selectors": selectors, "follow": "a.next@href"}
    report = await make_pipeline("httpx", (parser, config)).run([f"{site.url}/books/1"])
    assert [(one.setting, one.selector, one.pages) for one in report.unmatched] == [
        ("selectors.isbn", ".isbn", 3),
        ("selectors.tags", "li.tug", 3),
        ("selectors.link", "h3 a@hrf", 3),
    ]


async def test_pages_without_rows_are_counted_beside_those_with(site: Site) -> None:
    config = {"rows": "article.book", "selectors": {"title": "h3"}}
    report = await make_pipeline("httpx", ("selectolax", config)).run([f"{site.url}/books/1", f"{site.url}/book/1"])
    assert [str(one) for one in report.unmatched] == [
        "step 'selectolax': the selector 'article.book' of 'rows' matched nothing on 1 of 2 pages"
    ]


async def test_what_matches_is_not_told(site: Site) -> None:
    config = {"selectors": {"title": "h1", "whole": ""}}
    report = await make_pipeline("httpx", ("parsel", config)).run([f"{site.url}/book/1"])
    assert report.unmatched == []


async def test_an_agent_hears_of_it(site: Site) -> None:
    registry = ToolRegistry()
    pipeline = make_pipeline("httpx", ("parsel", {"selectors": {"title": "h7"}}), name="read")
    registry.register(pipeline)
    result = await registry.execute("read", {"start": [f"{site.url}/book/1"]})
    assert result.data["unmatched"] == [
        "step 'parsel': the selector 'h7' of 'selectors.title' matched nothing on the one page that was read"
    ]
