"""One run of a pipeline.

Each request is walked through all stages by a task of its own, and only so many tasks are alive at once: that bounds
the memory, whatever the number of pages. A request is done when everything that came of it is; then the journal says
so. Requests found on the way go into the journal and wait there, not in memory.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from toolcrib.core.backoff import backoff
from toolcrib.core.errors import ToolFailedError
from toolcrib.stacking.definition import PipelineDefinition
from toolcrib.stacking.items import Item, Page, Request
from toolcrib.stacking.journal import Journal
from toolcrib.stacking.politeness import ASKED_AGAIN, Politeness, Stopped, Unwelcome
from toolcrib.stacking.recovery import REFUSED, ROBOTS, Failure, Recovery, failure_from, failure_of
from toolcrib.stacking.reports import FailedRequest, Progress, RunReport, Selecting
from toolcrib.stacking.step import Step

_KEPT_FAILURES = 100
_CHUNK = 256


class StepFailed(Exception):  # noqa: N818  a signal inside the engine, never seen outside
    def __init__(self, tool: str, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.tool = tool
        self.failure = failure


@dataclass(slots=True)
class Stage:
    """A step, the request-rewriting steps that stand directly before it, and those that can stand in for it.

    A retry runs the rewriting steps again, so that it goes out through another proxy.
    """

    main: Step
    rewriters: list[Step] = field(default_factory=list)
    substitutes: dict[str, list[Step]] = field(default_factory=dict)
    accepted: frozenset[int] = frozenset()


class Run:
    def __init__(
        self,
        stages: Sequence[Stage],
        journal: Journal,
        recovery: Recovery,
        limits: PipelineDefinition,
        refusal: Callable[[str], str],
        on_progress: Callable[[Progress], None] | None,
        on_item: Callable[[Item], None] | None,
        stop: asyncio.Event | None,
    ) -> None:
        self.report = RunReport(skipped=journal.done_before)
        self._stages = stages
        self._fetching = next((n for n, stage in enumerate(stages) if issubclass(stage.main.brick.gives, Page)), -1)
        self._journal = journal
        self._recovery = recovery
        self._limits = limits
        self._refusal = refusal
        self._on_progress = on_progress
        self._on_item = on_item
        self._stop = stop or asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._drawing: asyncio.Task[Request | None] | None = None
        self._stopping: asyncio.Task[Any] | None = None
        self._kept_away = 0
        self._politeness = Politeness(limits, self._stop, self._note)
        if on_progress is not None:
            for step in self._steps():
                step.on_note = self._note

    async def __call__(self, start: AsyncIterator[Request] | Iterator[Request]) -> RunReport:
        begun = time.perf_counter()
        self._stopping = asyncio.create_task(self._stop.wait())
        try:
            while not self._stop.is_set():
                await self._fill(start)
                if not self._tasks and self._drawing is None:
                    break
                await self._settle()
            while self._tasks:
                await self._settle()
        finally:
            await self._abandon()
            bricks = {id(step.brick): step.brick for step in self._steps()}.values()
            self.report.unmatched = [each for one in bricks if isinstance(one, Selecting) for each in one.unmatched()]
            self.report.seconds = time.perf_counter() - begun
        if self._stop.is_set():
            self.report.outcome = "stopped"
        return self.report

    def _steps(self) -> Iterator[Step]:
        for stage in self._stages:
            yield from (stage.main, *stage.rewriters, *chain(*stage.substitutes.values()))

    async def _fill(self, start: AsyncIterator[Request] | Iterator[Request]) -> None:
        """Begin what can begin: pages that wait for their reading, then requests that were found, then the start."""
        while len(self._tasks) < 2 * self._limits.concurrency and not self._stop.is_set():
            if (work := self._journal.take()) is not None:
                self._tasks.add(asyncio.create_task(self._serve(*work)))
                continue
            request = None if self._is_full else await self._draw(start)
            if request is None:
                return
            self._admit(request)

    async def _draw(self, start: AsyncIterator[Request] | Iterator[Request]) -> Request | None:
        """The next start address, or None if there is none, or none yet from a source that takes its time."""
        if not isinstance(start, AsyncIterator):
            return next(start, None)
        if self._drawing is None:
            self._drawing = asyncio.ensure_future(anext(start, None))
            await asyncio.sleep(0)
        if not self._drawing.done():
            return None
        request, self._drawing = self._drawing.result(), None
        return request

    @property
    def _is_full(self) -> bool:
        return self._limits.max_pages is not None and self._journal.known >= self._limits.max_pages

    def _admit(self, request: Request) -> None:
        limits = self._limits
        too_deep = limits.max_depth is not None and request.depth > limits.max_depth
        if not self._is_full and not too_deep:
            self._journal.add(request)

    async def _settle(self) -> None:
        """Wait until something is over: a request, the drawing of the next one, or the patience of who stops us."""
        others: set[asyncio.Task[Any]] = {task for task in (self._drawing, self._stopping) if task and not task.done()}
        finished, _ = await asyncio.wait(self._tasks | others, return_when=asyncio.FIRST_COMPLETED)
        self._journal.sync()
        for task in self._tasks & finished:
            self._tasks.discard(task)
            task.result()

    async def _abandon(self) -> None:
        left: set[asyncio.Task[Any]] = {task for task in (self._drawing, self._stopping) if task} | self._tasks
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _serve(self, request: Request, page: Page | None) -> None:
        """Everything that comes of one request."""
        try:
            self._check(request.url)
            if page is None:
                await self._flow(0, [request])
            else:
                await self._flow(self._fetching + 1, [page])
        except Stopped:
            return
        except StepFailed as error:
            self._failed(request, error)
        else:
            self._journal.done(request)
            self.report.done += 1
            self._tell(request.url, ok=True)

    def _check(self, url: str) -> None:
        if refusal := self._refusal(url):
            raise StepFailed("", Failure(REFUSED, f"{url} was not fetched: {refusal}"))

    def _failed(self, request: Request, error: StepFailed) -> None:
        failure = error.failure
        self._journal.failed(request, failure.reason)
        self.report.failed += 1
        self._kept_away += failure.kind == ROBOTS
        if len(self.report.failures) < _KEPT_FAILURES:
            self.report.failures.append(FailedRequest(request.url, error.tool, failure.kind, failure.reason))
        self._tell(request.url, ok=False)
        most = self._limits.max_failures
        if most is not None and self.report.failed - self._kept_away > most:
            raise ToolFailedError(
                error.tool or "pipeline", f"more than {most} requests failed, the last with: {failure.reason}"
            )

    def _tell(self, url: str, *, ok: bool, tool: str = "", note: str = "") -> None:
        if self._on_progress is not None:
            report = self.report
            in_flight = max(len(self._tasks) - 1, 0)
            known = self._journal.known
            self._on_progress(Progress(report.done, report.failed, in_flight, known, url, ok, tool, note))

    def _note(self, tool: str, url: str, note: str) -> None:
        self._tell(url, ok=True, tool=tool, note=note)

    async def _flow(self, index: int, items: Sequence[Item]) -> None:
        if index == len(self._stages):
            self.report.items += len(items)
            if self._on_item is not None:
                for item in items:
                    self._on_item(item)
            return
        stage = self._stages[index]
        if stage.main.is_batched:
            for chunk in _chunks(items, _CHUNK):
                await self._flow(index + 1, await self._put(stage, chunk))
            return
        for chunk in _chunks(items, self._limits.concurrency):
            if len(chunk) == 1:
                await self._one(index, chunk[0])
            else:
                await _all([self._one(index, item) for item in chunk])

    async def _put(self, stage: Stage, items: Sequence[Item]) -> Sequence[Item]:
        try:
            return await stage.main.put(items)
        except Exception as error:  # a brick is anybody's code; its failure is a result of the run
            stage.main.statistics.failed += len(items)
            raise StepFailed(stage.main.statistics.tool, failure_from(error)) from error

    async def _one(self, index: int, item: Item) -> None:
        given = await self._with_remedies(self._stages[index], item)
        if index == self._fetching:
            for page in given:
                if isinstance(page, Page):
                    self._check(page.url)
                    self._journal.fetched(page)
        await self._flow(index + 1, given)

    async def _with_remedies(self, stage: Stage, item: Item) -> Sequence[Item]:
        """Try, try again when the host says so, and as the error handling says, try with others."""
        step, tried, retries, asked = stage.main, {id(stage.main)}, 0, 0
        while True:
            outcome = await self._attempt(stage, step, item)
            if not isinstance(outcome, Failure):
                return outcome
            if outcome.wait is not None and asked < ASKED_AGAIN:
                asked += 1
                step.statistics.retries += 1
                continue
            kind = "" if outcome.kind == ROBOTS else self._recovery.match(outcome.kind)
            remedy = self._recovery.remedies.get(kind)
            if remedy is not None and retries < remedy.retry_count:
                await asyncio.sleep(backoff(retries, remedy.delay_seconds))
                retries += 1
                step.statistics.retries += 1
                continue
            others = stage.substitutes.get(kind, ())
            following = next((other for other in others if id(other) not in tried), None)
            if following is None:
                stage.main.statistics.failed += 1
                raise StepFailed(step.statistics.tool, outcome)
            step, retries = following, 0
            tried.add(id(following))
            stage.main.statistics.substituted += 1

    async def _attempt(self, stage: Stage, step: Step, item: Item) -> Sequence[Item] | Failure:
        rewritten: Item = item
        passed: list[tuple[Step, Item]] = []
        outcome: Sequence[Item] | Failure
        try:
            for rewriter in stage.rewriters:
                given, _ = await rewriter(rewritten)
                if not given:
                    return []
                rewritten = given[0]
                passed.append((rewriter, rewritten))
            outcome, followed = await self._take_turn(stage, step, rewritten)
        except Stopped:
            raise
        except Unwelcome as unwelcome:
            outcome = unwelcome.failure
        except Exception as error:  # noqa: BLE001  a brick is anybody's code; its failure is a result of the run
            outcome = failure_from(error)
        else:
            if not isinstance(outcome, Failure):
                for request in followed:
                    self._admit(request)
        kind = outcome.kind if isinstance(outcome, Failure) else ""
        for rewriter, told in passed:
            rewriter.brick.feedback(told, kind)
        return outcome

    async def _take_turn(self, stage: Stage, step: Step, item: Item) -> tuple[Sequence[Item] | Failure, list[Request]]:
        """What the step gives, or the failure that its page tells; a page is asked for when its host may be asked."""
        if isinstance(item, Request) and issubclass(step.brick.gives, Page):
            given, followed, wait = await self._politeness.ask(step, item)
        else:
            (given, followed), wait = await step(item), None
        failure = failure_of(given, stage.accepted)
        return (given if failure is None else replace(failure, wait=wait)), followed


def _chunks(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for position in range(0, len(items), size):
        yield items[position : position + size]


async def _all(works: Sequence[Coroutine[None, None, None]]) -> None:
    """Do all of them to their end, then raise what the first one raised, if one did."""
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
