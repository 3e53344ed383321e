"""The parsers: ``beautifulsoup4``, ``selectolax`` and ``parsel``, and ``extruct`` for what is meant for machines."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from toolcrib import MissingDependencyError, ToolcribError
from toolcrib.stacking import Brick, BrickConfig, Page, Record, StepContext
from toolcrib.toolsets.scraping.selectors import ParserBrick, ParserConfig
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    from bs4 import Tag
    from parsel import Selector
    from selectolax.lexbor import LexborNode

Syntax = Literal["json-ld", "microdata", "opengraph", "microformat", "rdfa", "dublincore"]


class BeautifulSoupBrick(ParserBrick["Tag"]):
    class Config(ParserConfig):
        features: Literal["lxml", "html.parser", "html5lib"] = Field("lxml", description="the parser underneath")

    spec = scraping_spec("beautifulsoup4")
    modules = ("bs4",)
    config: Config

    def missing(self) -> list[ToolcribError]:
        needed = self.config.features
        absent = needed != "html.parser" and find_spec(needed) is None
        install = f"pip install {needed}"
        return super().missing() + ([MissingDependencyError(f"{needed}, a parser,", install)] if absent else [])

    def root(self, page: Page) -> Tag:
        from bs4 import BeautifulSoup

        return BeautifulSoup(page.text, self.config.features)

    def select(self, node: Tag, path: str) -> Sequence[Tag]:
        return node.select(path)

    def text(self, node: Tag) -> str:
        return node.get_text(" ")

    def attribute(self, node: Tag, name: str) -> str | None:
        value = node.get(name)
        return " ".join(value) if isinstance(value, list) else value


class SelectolaxBrick(ParserBrick["LexborNode"]):
    spec = scraping_spec("selectolax")
    quick = True
    modules = ("selectolax",)

    def root(self, page: Page) -> LexborNode:
        from selectolax.lexbor import LexborHTMLParser

        root = LexborHTMLParser(page.text or "<html></html>").root
        assert root is not None
        return root

    def select(self, node: LexborNode, path: str) -> Sequence[LexborNode]:
        return node.css(path)

    def text(self, node: LexborNode) -> str:
        return node.text(separator=" ")

    def attribute(self, node: LexborNode, name: str) -> str | None:
        return node.attributes.get(name)


class ParselBrick(ParserBrick["Selector"]):
    """Also takes XPath: a selector that begins with ``/``, ``./`` or ``(``."""

    spec = scraping_spec("parsel")
    modules = ("parsel",)

    def root(self, page: Page) -> Selector:
        from parsel import Selector

        return Selector(page.text or "<html></html>", type="html")

    def select(self, node: Selector, path: str) -> Sequence[Selector]:
        return node.xpath(path) if path.startswith(("/", "./", "(")) else node.css(path)

    def text(self, node: Selector) -> str:
        if isinstance(node.root, str):  # the path itself ended in a text or an attribute
            return node.root
        return " ".join(node.xpath(".//text()").getall())

    def attribute(self, node: Selector, name: str) -> str | None:
        return node.attrib.get(name)


class ExtructBrick(Brick[Page, Record]):
    """One record for each page that has any, with what was found under the name of its syntax."""

    class Config(BrickConfig):
        syntaxes: tuple[Syntax, ...] = Field(("json-ld", "microdata", "opengraph"), description="what to look for")
        uniform: bool = Field(True, description="tell all syntaxes in the shape of JSON-LD")

    spec = scraping_spec("extruct")
    takes = Page
    gives = Record
    modules = ("extruct",)
    config: Config

    def process(self, item: Page, _context: StepContext, /) -> Sequence[Record]:
        import extruct

        found: dict[str, Any] = extruct.extract(
            item.text,
            base_url=item.url,
            syntaxes=list(self.config.syntaxes),
            uniform=self.config.uniform,
            errors="ignore",
        )
        kept = {syntax: values for syntax, values in found.items() if values}
        return [Record({"url": item.url, **kept}, item.request.key, item.url)] if kept else []
