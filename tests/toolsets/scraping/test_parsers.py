"""The parsers answer alike to the same selectors, on good pages and bad ones."""

from __future__ import annotations

from typing import Any

import pytest

from toolcrib.core.errors import ToolValidationError
from toolcrib.stacking import Page, Record, Request, StepContext
from toolcrib.toolsets.scraping import BRICKS
from toolcrib.toolsets.scraping.practice import books, broken, meta

PARSERS = ["beautifulsoup4", "selectolax", "parsel"]
ADDRESS = "http://shop.example/books/1"


def page(text: str | bytes, url: str = ADDRESS, **headers: str) -> Page:
    body = text if isinstance(text, bytes) else text.encode()
    return Page(Request(url), url, 200, body, {name.replace("_", "-"): value for name, value in headers.items()})


def read(name: str, config: dict[str, Any], given: Page) -> tuple[list[Record], list[Request]]:
    brick: Any = BRICKS[name](config)
    assert brick.missing() == []
    brick.open()
    context = StepContext()
    return list(brick.process(given, context)), context.followed


@pytest.mark.parametrize("name", PARSERS)
def test_rows_fields_attributes_lists_and_links(name: str) -> None:
    config = {
        "rows": "article.book",
        "selectors": {"id": "@id", "title": "h3 a", "link": "h3 a@href", "price": ".price", "tags": ["li.tag"]},
        "follow": "a.next@href",
        "url_field": "page",
    }
    records, followed = read(name, config, page(books(1)[1]))
    assert [record.data for record in records][1] == {
        "id": "b1",
        "title": "A Wizard of Earthsea",
        "link": "http://shop.example/book/1",
        "price": "6.25",
        "tags": ["novel", "no 1"],
        "page": ADDRESS,
    }
    assert [record.position for record in records] == [0, 1, 2, 3]
    assert len({record.key for record in records}) == 4
    assert [(request.url, request.depth) for request in followed] == [("http://shop.example/books/2", 1)]


@pytest.mark.parametrize("name", PARSERS)
def test_a_page_is_one_record_without_rows_and_none_where_nothing_is_found(name: str) -> None:
    config = {"selectors": {"title": "title", "missing": "h6"}}
    records, _ = read(name, config, page(books(2)[1]))
    assert [record.data for record in records] == [{"title": "Books, page 2", "missing": None}]
    assert read(name, {"selectors": {"missing": "h6", "all": ["h6"]}}, page(books(2)[1]))[0] == []
    assert read(name, config, page(""))[0] == []


@pytest.mark.parametrize("name", PARSERS)
def test_broken_html_is_read(name: str) -> None:
    records, _ = read(name, {"rows": ".item", "selectors": {"name": "b"}}, page(broken()[1]))
    assert [str(record.data["name"]).split()[0] for record in records] == ["first", "second"]


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "given",
    [
        page("<p>café</p>".encode("latin-1"), content_type="text/html; charset=ISO-8859-1"),
        page("<meta charset='windows-1252'><p>café</p>".encode("cp1252")),
        page(b"\xef\xbb\xbf" + "<p>café</p>".encode()),
        page("<p>café</p>", content_type="text/html; charset=no-such-charset"),
    ],
    ids=["header", "meta", "mark", "unknown"],
)
def test_the_text_is_decoded_as_the_page_says(name: str, given: Page) -> None:
    [record], _ = read(name, {"selectors": {"text": "p"}}, given)
    assert record.data == {"text": "café"}


@pytest.mark.parametrize("name", PARSERS)
def test_a_wrong_selector_is_refused_when_the_brick_opens(name: str) -> None:
    brick: Any = BRICKS[name]({"selectors": {"x": "p[["}})
    with pytest.raises(ToolValidationError, match="cannot read the selector"):
        brick.open()


def test_parsel_reads_xpath_too() -> None:
    config = {
        "rows": "//article[@class='book']",
        "selectors": {"title": "./h3/a/text()", "link": ".//a/@href", "id": "@id"},
    }
    records, _ = read("parsel", config, page(books(1)[1]))
    assert records[0].data == {"title": "The Left Hand of Darkness", "link": "/book/0", "id": "b0"}


def test_settings_are_checked_and_named() -> None:
    with pytest.raises(ToolValidationError, match="brick 'parsel' has no 'selectors'"):
        BRICKS["parsel"]()
    with pytest.raises(ToolValidationError, match="'selector' that does not exist"):
        BRICKS["parsel"]({"selectors": {"a": "b"}, "selector": "x"})


def test_extruct_reads_what_is_meant_for_machines() -> None:
    [record], _ = read("extruct", {}, page(meta()[1], "http://shop.example/meta"))
    assert record.data["url"] == "http://shop.example/meta"
    assert record.data["json-ld"][0]["author"]["name"] == "Octavia E. Butler"
    assert record.data["opengraph"][0]["og:title"] == "Kindred"
    assert read("extruct", {}, page("<p>nothing</p>"))[0] == []
