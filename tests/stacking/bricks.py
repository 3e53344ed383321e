"""Small bricks for tests: a site in memory, a reader, a keeper."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from toolcrib.core.spec import ToolSpec
from toolcrib.stacking import BatchBrick, Brick, BrickConfig, Page, Record, Request, StepContext, Stored


class LivePage(Page):
    """A page that is counted while it is alive."""

    __slots__ = ()
    alive: ClassVar[int] = 0
    most: ClassVar[int] = 0

    def __init__(self, *fields: Any) -> None:
        super().__init__(*fields)
        LivePage.alive += 1
        LivePage.most = max(LivePage.most, LivePage.alive)

    def __del__(self) -> None:
        LivePage.alive -= 1

    @classmethod
    def reset(cls) -> None:
        gc.collect()
        LivePage.alive = LivePage.most = 0


def spec(name: str, tool_type: str, **fields: Any) -> ToolSpec:
    return ToolSpec(name=name, description=name, tool_type=tool_type, **fields)


class Fetch(Brick[Request, Page]):
    """Answers from ``answer``; notes what it was asked and how many were at work at once."""

    spec = spec("fetch", "http_client")
    takes = Request
    gives = Page
    asked: ClassVar[Counter[str]] = Counter()
    opened: ClassVar[int] = 0
    working: ClassVar[int] = 0
    busiest: ClassVar[int] = 0
    answer: ClassVar[Callable[[Request], tuple[int, str]]] = lambda request: (200, request.url)

    @classmethod
    def reset(cls, answer: Callable[[Request], tuple[int, str]] | None = None) -> None:
        cls.asked = Counter()
        cls.opened = cls.working = cls.busiest = 0
        cls.answer = staticmethod(answer) if answer else staticmethod(lambda request: (200, request.url))

    async def open(self) -> None:
        type(self).opened += 1

    async def close(self) -> None:
        type(self).opened -= 1

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        own = type(self)
        own.asked[item.url] += 1
        own.working += 1
        own.busiest = max(own.busiest, own.working)
        try:
            await asyncio.sleep(0)
            status, text = own.answer(item)
        finally:
            own.working -= 1
        return [LivePage(item, item.url, status, text.encode())]


class OtherFetch(Fetch):
    spec = spec("other-fetch", "http_client")
    asked: ClassVar[Counter[str]] = Counter()


class Read(Brick[Page, Record]):
    """A record for each word of a page; a word ``>x`` is followed to x instead."""

    spec = spec("read", "parser")
    takes = Page
    gives = Record

    def process(self, item: Page, context: StepContext, /) -> Sequence[Record]:
        words = item.text.split()
        for word in words:
            if word.startswith(">"):
                context.follow(item.request.follow(word[1:]))
            if word == "!":
                raise ValueError("this page cannot be read")
        kept = [word for word in words if not word.startswith(">")]
        return [Record({"word": word}, item.request.key, item.url, at) for at, word in enumerate(kept)]


class ReadInline(Read):
    """The same without a thread, for many pages."""

    spec = spec("read-inline", "parser")

    async def process(self, item: Page, context: StepContext, /) -> Sequence[Record]:  # type: ignore[override]
        return super().process(item, context)


class ReadWhenFree(ReadInline):
    """Waits until it may read; the run has noted the pages that are being read."""

    spec = spec("read-when-free", "parser")
    free: ClassVar[asyncio.Event]
    reading: ClassVar[set[str]] = set()

    async def process(self, item: Page, context: StepContext, /) -> Sequence[Record]:  # type: ignore[override]
        self.reading.add(item.url)
        await self.free.wait()
        return await super().process(item, context)

    @classmethod
    def reset(cls) -> None:
        cls.free, cls.reading = asyncio.Event(), set()


class Chatty(Read):
    """Says what it is doing, from its thread."""

    spec = spec("chatty", "parser")

    def process(self, item: Page, context: StepContext, /) -> Sequence[Record]:
        context.tell("reading slowly")
        return super().process(item, context)


class Keep(BatchBrick[Record, Stored]):
    class Config(BrickConfig):
        refuse: str = ""

    spec = spec("keep", "data_storage")
    takes = Record
    gives = Stored
    kept: ClassVar[list[str]] = []
    batches: ClassVar[list[int]] = []
    config: Config

    def open(self) -> None:
        type(self).kept = []
        type(self).batches = []

    def process_many(self, items: Sequence[Record], _context: StepContext, /) -> Sequence[Stored]:
        words = [str(item.data["word"]) for item in items]
        if self.config.refuse and self.config.refuse in words:
            raise OSError("the disk does not like this word")
        self.batches.append(len(items))
        self.kept.extend(words)
        return [Stored(item.key, "memory") for item in items]


class Through(Brick[Request, Request]):
    """Sends each request through another number, and hears what came of it."""

    spec = spec("through", "proxy_manager")
    takes = Request
    gives = Request
    heard: ClassVar[list[tuple[str, str]]] = []
    turn: ClassVar[int] = 0

    def process(self, item: Request, _context: StepContext, /) -> Sequence[Request]:
        type(self).turn += 1
        return [item.through(f"p{self.turn}")]

    def feedback(self, item: Request, kind: str) -> None:
        self.heard.append((item.proxy, kind))


class NeedsMuch(Brick[Request, Page]):
    spec = spec(
        "needs-much", "browser", required_config=("A_KEY",), pip_install_command="pip install much", package_name="much"
    )
    takes = Request
    gives = Page
    modules = ("much_that_is_not_there",)

    def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        raise AssertionError("it must not come to this")


BRICKS: dict[str, type[Brick[Any, Any]]] = {
    brick.spec.name: brick
    for brick in (Fetch, OtherFetch, Read, ReadInline, ReadWhenFree, Chatty, Keep, Through, NeedsMuch)
}
