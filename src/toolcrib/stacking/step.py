"""A brick at work: how many items at once, in threads or on the loop, in batches or one by one, and counted."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from toolcrib.calling.blocking import in_thread_of
from toolcrib.stacking.brick import BatchBrick, Brick, StepContext
from toolcrib.stacking.items import Item, Page, Request


@dataclass(slots=True)
class StepStatistics:
    """What a step did. ``seconds`` is the time its brick was at work, added up over all that ran at once."""

    tool: str
    taken: int = 0
    given: int = 0
    failed: int = 0
    retries: int = 0
    substituted: int = 0
    seconds: float = 0.0


class Step:
    """Runs one brick with a bounded number of items at once. Opens it when the first item comes, or before."""

    on_note: Callable[[str, str, str], None] | None = None
    """Hears what the brick tells: its name, the item's address, the text."""

    def __init__(self, brick: Brick[Any, Any], concurrency: int, cancelled: Callable[[], bool]) -> None:
        self.brick = brick
        self.concurrency = 1 if isinstance(brick, BatchBrick) else concurrency
        self.statistics = StepStatistics(brick.spec.name)
        self._cancelled = cancelled
        self._places = asyncio.Semaphore(self.concurrency)
        self._opening = asyncio.Lock()
        self._opened = False
        self._threads: ThreadPoolExecutor | None = None
        self._batches = _Batches(self._run_batch) if isinstance(brick, BatchBrick) else None

    @property
    def is_batched(self) -> bool:
        return self._batches is not None

    async def open(self) -> None:
        async with self._opening:
            if self._opened:
                return
            if self.is_batched or not (self.brick.is_async or self.brick.quick):
                self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix=self.brick.spec.name)
            await self._lifecycle(self.brick.open)
            self._opened = True

    async def close(self) -> None:
        try:
            if self._batches is not None:
                await self._batches.finish()
            if self._opened:
                self._opened = False
                await self._lifecycle(self.brick.close)
        finally:
            if self._threads is not None:
                self._threads.shutdown(wait=False, cancel_futures=True)

    async def __call__(self, item: Item) -> tuple[list[Item], list[Request]]:
        """What the brick gives for an item, and the requests it wants followed."""
        if not self._opened:
            await self.open()
        context = self._context(item)
        async with self._places:
            begun = time.perf_counter()
            self.statistics.taken += 1
            try:
                if self.brick.is_async:
                    given = list(await cast(Awaitable[Iterable[Item]], self.brick.process(item, context)))
                elif self._threads is None:
                    given = list(cast(Iterable[Item], self.brick.process(item, context)))
                else:
                    given = await in_thread_of(
                        self._threads, lambda: list(cast(Iterable[Item], self.brick.process(item, context)))
                    )
            finally:
                self.statistics.seconds += time.perf_counter() - begun
        self.statistics.given += len(given)
        return given, context.followed

    async def put(self, items: Sequence[Item]) -> list[Item]:
        """The same for many items of a batched brick."""
        assert self._batches is not None
        if not self._opened:
            await self.open()
        return await self._batches.put(items)

    async def _run_batch(self, items: Sequence[Item]) -> list[Item]:
        brick = cast("BatchBrick[Any, Any]", self.brick)
        assert self._threads is not None
        begun = time.perf_counter()
        self.statistics.taken += len(items)
        try:
            given = await in_thread_of(
                self._threads, lambda: list(brick.process_many(items, StepContext(self._cancelled)))
            )
        finally:
            self.statistics.seconds += time.perf_counter() - begun
        self.statistics.given += len(given)
        return given

    def _context(self, item: Item) -> StepContext:
        if self.on_note is None:
            return StepContext(self._cancelled)
        hear = partial(self.on_note, self.statistics.tool, item.url if isinstance(item, Request | Page) else "")
        loop = asyncio.get_running_loop()

        def tell(text: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody watches any more
                loop.call_soon_threadsafe(hear, text)

        return StepContext(self._cancelled, tell)

    async def _lifecycle(self, function: Callable[[], Awaitable[None] | None]) -> None:
        if inspect.iscoroutinefunction(function):
            await function()
        elif self._threads is not None:
            await in_thread_of(self._threads, function)
        else:
            function()


class _Batches:
    """Group commit: while one batch is written, what arrives waits and makes the next one."""

    def __init__(self, write: Callable[[Sequence[Item]], Awaitable[list[Item]]]) -> None:
        self._write = write
        self._waiting: list[tuple[Sequence[Item], asyncio.Future[list[Item]]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def put(self, items: Sequence[Item]) -> list[Item]:
        result: asyncio.Future[list[Item]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, result))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._drain())
        return await result

    async def finish(self) -> None:
        if self._writer is not None:
            await self._writer

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                given = await self._write([item for items, _ in batch for item in items])
            except Exception as error:  # noqa: BLE001  whatever a brick raises belongs to those who wait for it
                await self._one_by_one(batch, error)
                continue
            position = 0
            for items, result in batch:
                _settle(result, given[position : position + len(items)])
                position += len(items)

    async def _one_by_one(
        self, batch: list[tuple[Sequence[Item], asyncio.Future[list[Item]]]], error: Exception
    ) -> None:
        """One bad item fails those who brought it, not the whole batch."""
        for items, result in batch:
            if len(batch) == 1:
                _settle(result, error)
                continue
            try:
                _settle(result, await self._write(items))
            except Exception as own_error:  # noqa: BLE001  as above
                _settle(result, own_error)


def _settle(result: asyncio.Future[list[Item]], outcome: list[Item] | Exception) -> None:
    if result.done():
        return
    if isinstance(outcome, Exception):
        result.set_exception(outcome)
    else:
        result.set_result(outcome)
