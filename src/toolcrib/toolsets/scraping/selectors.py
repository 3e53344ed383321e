"""One way to say what to read from a page, whichever library reads it.

========================  ==================================================
``"h1"``                  the text of the first element that matches
``"a.more@href"``         an attribute of it; addresses are made absolute
``["li.tag"]``            the list of all that match
``""`` or ``"@id"``       the row itself, its text or its attribute
========================  ==================================================
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from urllib.parse import urljoin

from pydantic import Field

from toolcrib import ToolValidationError
from toolcrib.stacking import Brick, BrickConfig, Page, Record, Request, StepContext, UnmatchedSelector
from toolcrib.toolsets.scraping.specs import Names

Node = TypeVar("Node")

_NOWHERE = Request("about:blank")

_ROWS = None
"""Stands for the row selector where field names are counted."""
_ADDRESSES = frozenset({"href", "src", "action", "data-src"})


class ParserConfig(BrickConfig):
    selectors: dict[str, str | Annotated[list[str], Field(min_length=1, max_length=1)]] = Field(
        min_length=1, description="field names and where their values are"
    )
    rows: str = Field("", description="selects the elements that are a record each; the page is one record without it")
    follow: Names = Field((), description="links to follow, such as 'a.next@href'")
    url_field: str = Field("", description="a field to hold the page's address")


@dataclass(frozen=True, slots=True)
class Selector:
    path: str
    attribute: str
    many: bool

    @classmethod
    def parse(cls, written: str | Sequence[str]) -> Selector:
        many = not isinstance(written, str)
        text = written if isinstance(written, str) else written[0]
        # An '@' inside brackets or an XPath belongs to the path.
        path, at, attribute = text.rpartition("@")
        if not at or not attribute.replace("-", "").replace("_", "").replace(":", "").isalnum() or path.endswith("/"):
            path, attribute = text, ""
        return cls(path.strip(), attribute.strip(), many)


class Tally:
    """On how many pages each setting has matched; steps count in several threads at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.pages = 0
        self.matched: Counter[str | None] = Counter()

    def add(self, matched: Collection[str | None]) -> None:
        with self._lock:
            self.pages += 1
            self.matched.update(matched)


class ParserBrick(Brick[Page, Record], Generic[Node]):
    """Reads records from pages by selectors. A record of which no field was found is left out."""

    Config: ClassVar[type[BrickConfig]] = ParserConfig
    example: ClassVar[Mapping[str, Any]] = {"selectors": {"title": "title"}}
    takes = Page
    gives = Record

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tally = Tally()

    def open(self) -> None:
        config = self.config
        self._fields = {name: Selector.parse(written) for name, written in config.selectors.items()}
        self._follow = [Selector.parse(written) for written in config.follow]
        for path in (config.rows, *(one.path for one in (*self._fields.values(), *self._follow))):
            if path:
                self._try(path)

    def process(self, item: Page, context: StepContext, /) -> Iterable[Record]:
        root = self.root(item)
        for selector in self._follow:
            for address in self._values(root, Selector(selector.path, selector.attribute or "href", True), item):
                context.follow(item.request.follow(address, item.url))
        matched: set[str | None] = set()
        records = list(self._records(root, item, matched))
        self._tally.add(matched)
        return records

    def unmatched(self) -> Sequence[UnmatchedSelector]:
        """The row selector if it matched nothing on some page, and the field selectors that never matched in a row."""
        config, tally, tool = self.config, self._tally, self.spec.name
        read = tally.matched[_ROWS]
        told = [UnmatchedSelector(tool, "rows", config.rows, tally.pages - read, tally.pages)] if config.rows else []
        for name, written in config.selectors.items():
            if not tally.matched[name]:
                selector = written if isinstance(written, str) else written[0]
                told.append(UnmatchedSelector(tool, f"selectors.{name}", selector, read, read))
        return [one for one in told if one.pages]

    @abstractmethod
    def root(self, page: Page) -> Node:
        """The page, parsed."""

    @abstractmethod
    def select(self, node: Node, path: str) -> Sequence[Node]:
        """What matches below a node; an error if the path is not a selector."""

    @abstractmethod
    def text(self, node: Node) -> str: ...

    @abstractmethod
    def attribute(self, node: Node, name: str) -> str | None: ...

    def _records(self, root: Node, page: Page, matched: set[str | None]) -> Iterator[Record]:
        """The records of a page; the fields that were found are noted in ``matched``."""
        own = {self.config.url_field: page.url} if self.config.url_field else {}
        nodes = self.select(root, self.config.rows) if self.config.rows else [root]
        for position, node in enumerate(nodes):
            found = {name: self._value(node, selector, page) for name, selector in self._fields.items()}
            matched.add(_ROWS)
            matched.update(name for name, value in found.items() if value not in (None, []))
            if any(value not in (None, [], "") for value in found.values()):
                yield Record({**found, **own}, page.request.key, page.url, position)

    def _value(self, node: Node, selector: Selector, page: Page) -> str | list[str] | None:
        values = self._values(node, selector, page)
        return list(values) if selector.many else next(values, None)

    def _values(self, node: Node, selector: Selector, page: Page) -> Iterator[str]:
        for found in self.select(node, selector.path) if selector.path else [node]:
            if not selector.attribute:
                yield " ".join(self.text(found).split())
                continue
            value = self.attribute(found, selector.attribute)
            if value is not None:
                yield urljoin(page.url, value.strip()) if selector.attribute in _ADDRESSES else value

    def _try(self, path: str) -> None:
        empty = self.root(Page(request=_NOWHERE, url="", status=200, body=b"<html><body></body></html>"))
        try:
            self.select(empty, path)
        except Exception as error:  # noqa: BLE001  each library has its own way to refuse a selector
            raise ToolValidationError(f"brick {self.spec.name!r} cannot read the selector {path!r}: {error}") from None
