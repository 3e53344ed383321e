"""Pipeline: bricks in a row, checked before they run, run with bounded memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.calling.call import Calls
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import InvalidArgumentsError, ToolFailedError, ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import make_tool
from toolcrib.stacking.brick import AnyBrick, Secrets, as_secrets
from toolcrib.stacking.checking import PipelineReport, check_bricks, stands_in
from toolcrib.stacking.definition import PipelineDefinition, StepDefinition
from toolcrib.stacking.engine import Run, Stage
from toolcrib.stacking.items import Item, Record, Request
from toolcrib.stacking.journal import Journal
from toolcrib.stacking.recovery import Recovery
from toolcrib.stacking.reports import Progress, RunReport
from toolcrib.stacking.step import Step

Bricks = Mapping[str, type[AnyBrick]]
SpecsOf = Callable[[Iterable[str]], Mapping[str, ToolSpec]]
"""Those of the named tools that a catalogue keeps, as ``catalogue.specs_of``."""
Start = Iterable[str | Request] | AsyncIterable[str | Request]

_TOOL_RECORDS = 1000


class Pipeline:
    """Made from a definition and the bricks it names. ``check()`` says whether it can run, ``run()`` runs it.

    A pipeline can run many times, also at once; each run makes its own bricks. With ``specs_of`` it consults a
    catalogue: what that does not hold, does not stack by its entries or says another mode of, is refused.
    """

    def __init__(
        self,
        definition: PipelineDefinition,
        bricks: Bricks,
        *,
        secrets: Secrets | Mapping[str, str] | None = None,
        specs_of: SpecsOf | None = None,
    ) -> None:
        self.definition = definition
        self.recovery = Recovery.parse(definition.error_handling)
        self._bricks = bricks
        self._secrets = as_secrets(secrets)
        self._hosts = AddressRules(definition.allow_hosts)
        self._specs_of = specs_of
        self._make()  # an unknown brick or a wrong setting shows here

    @classmethod
    def of(
        cls,
        *steps: str | tuple[str, Mapping[str, Any]],
        bricks: Bricks,
        secrets: Secrets | Mapping[str, str] | None = None,
        specs_of: SpecsOf | None = None,
        **settings: Any,
    ) -> Pipeline:
        """``Pipeline.of("httpx", ("parsel", {...}), ...)``; the settings are the other fields of a pipeline file."""
        written = [{"tool": one} if isinstance(one, str) else {"tool": one[0], "config": dict(one[1])} for one in steps]
        return cls(PipelineDefinition.parse({"steps": written, **settings}), bricks, secrets=secrets, specs_of=specs_of)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs of the steps, in order."""
        return tuple(self._bricks[step.tool].spec for step in self.definition.ordered_steps)

    def check(self) -> PipelineReport:
        """Judge the pairs, the item types that meet, the packages and the keys. Only reads."""
        bricks, substitutes = self._make()
        return self._check(bricks, substitutes, self._kept(bricks, substitutes))

    async def run(
        self,
        start: Start | None = None,
        *,
        journal: str | Path | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        on_item: Callable[[Item], None] | None = None,
        allow: Callable[[str], bool] | None = None,
        stop: asyncio.Event | None = None,
        calls: Calls | None = None,
    ) -> RunReport:
        """Fetch, read and store from ``start``, or from the addresses of the definition.

        Raises before anything is fetched if ``check()`` finds a problem. With a ``journal`` a run that was
        killed is taken up where it ended. ``on_item`` receives what comes out at the end. An address is fetched if
        the definition's ``allow_hosts``, the address rules in force and ``allow`` let it. Setting ``stop`` ends the
        run after the requests under way; cancelling ends it at once. With ``calls`` the tools of the steps are asked
        for, approved and recorded as any call is.
        """
        bricks, substitutes = self._make()
        kept = await in_thread(READS, self._kept, bricks, substitutes)  # a catalogue may be far away
        self._check(bricks, substitutes, kept).raise_first()
        async with AsyncExitStack() as closers:
            if calls is not None:
                own = {brick.spec.name: brick.spec for brick in (*bricks, *(brick for _, brick in substitutes))}
                await closers.enter_async_context(calls.admitted(list((own | dict(kept or {})).values())))
            addresses = _requests(self._start(start))
            ending = threading.Event()
            stages, steps = self._stages(bricks, substitutes, ending.is_set)
            where = journal or self.definition.journal
            notes = closers.enter_context(closing(Journal(Path(where) if where else None, self.definition.digest)))
            refusal = self._refusal(allow)
            run = Run(stages, notes, self.recovery, self.definition, refusal, on_progress, on_item, stop)
            run.report.steps = [step.statistics for step in steps]
            for step in reversed(steps):
                closers.push_async_callback(step.close)
            closers.callback(ending.set)
            for step in steps[: len(bricks)]:
                await step.open()
            return await run(addresses)

    async def collect(self, start: Start | None = None, **options: Any) -> list[Item]:
        """What comes out at the end, as a list; RunReport failures raise. For small runs."""
        items: list[Item] = []
        report = await self.run(start, on_item=items.append, **options)
        if report.failures:
            first = report.failures[0]
            raise ToolFailedError(self.name, f"{report.failed} requests failed, the first with: {first.reason}")
        return items

    def as_tool(
        self, name: str = "", description: str = "", *, allow: Callable[[str], bool] | None = None, **fields: Any
    ) -> Tool:
        """The pipeline as a tool that takes ``start`` addresses and returns counts, failures and records.

        Who calls the tool chooses the addresses: ``allow``, the definition's ``allow_hosts`` and, in a service, the
        settings keep them within bounds.
        """

        async def run_pipeline(start: list[str] | None = None) -> dict[str, Any]:
            records: list[dict[str, Any]] = []

            def keep(item: Item) -> None:
                if isinstance(item, Record) and len(records) < _TOOL_RECORDS:
                    records.append(dict(item.data))

            report = await self.run(start, on_item=keep, allow=allow)
            return {
                "done": report.done,
                "failed": report.failed,
                "skipped": report.skipped,
                "items": report.items,
                "records": records,
                "failures": [{"url": one.url, "kind": one.kind, "reason": one.reason} for one in report.failures],
                "unmatched": [str(one) for one in report.unmatched],
            }

        known = {
            "name": name or self.name,
            "description": description or self.definition.description or f"Run the pipeline {self._shown()}.",
            "tool_type": "pipeline",
            "capabilities": tuple(dict.fromkeys(each for spec in self.specs for each in spec.capabilities)),
            "required_config": tuple(dict.fromkeys(key for spec in self.specs for key in spec.required_config)),
            "metadata": {"pipeline": {"steps": [{"tool": step.tool} for step in self.definition.ordered_steps]}},
        }
        return make_tool(run_pipeline, **(known | fields))

    def __toolcrib_tool__(self) -> Tool:
        return self.as_tool()

    def __repr__(self) -> str:
        return f"<Pipeline {self.name!r}: {self._shown()}>"

    def _shown(self) -> str:
        return " > ".join(step.tool for step in self.definition.ordered_steps)

    def _start(self, start: Start | None) -> Start:
        chosen = self.definition.start if start is None else start
        if isinstance(chosen, str):
            return [chosen]
        if isinstance(chosen, Sequence) and not chosen:
            raise InvalidArgumentsError(
                f"pipeline {self.name!r} has no address to begin with; give 'start' in its file or to the run"
            )
        return chosen

    def _brick(self, tool: str, config: Mapping[str, Any]) -> AnyBrick:
        if tool not in self._bricks:
            raise ToolNotFoundError(tool, self._bricks)
        return self._bricks[tool](config, secrets=self._secrets)

    def _make(self) -> tuple[list[AnyBrick], list[tuple[str, AnyBrick]]]:
        bricks = [self._brick(step.tool, step.config) for step in self.definition.ordered_steps]
        substitutes = [(kind, self._brick(one.tool, one.config)) for kind, one in self.recovery.substitutes]
        return bricks, substitutes

    def _kept(
        self, bricks: Sequence[AnyBrick], substitutes: Sequence[tuple[str, AnyBrick]]
    ) -> Mapping[str, ToolSpec] | None:
        """What the catalogue knows of the tools, by name; None if there is none to consult."""
        names = [brick.spec.name for brick in (*bricks, *(brick for _, brick in substitutes))]
        return None if self._specs_of is None else self._specs_of(names)

    def _check(
        self,
        bricks: Sequence[AnyBrick],
        substitutes: Sequence[tuple[str, AnyBrick]],
        kept: Mapping[str, ToolSpec] | None,
    ) -> PipelineReport:
        others = [brick for _, brick in substitutes]
        return check_bricks(self.name, bricks, others, kept, strict=self.definition.strict)

    def _refusal(self, allow: Callable[[str], bool] | None) -> Callable[[str], str]:
        """A function that says why an address may not be fetched; empty if it may."""
        rules = AddressRules.in_force()

        def refusal(url: str) -> str:
            said = self._hosts.refusal_of_url(url) or rules.refusal_of_url(url)
            return said or ("" if allow is None or allow(url) else "'allow' says no")

        return refusal

    def _stages(
        self, bricks: Sequence[AnyBrick], substitutes: Sequence[tuple[str, AnyBrick]], cancelled: Callable[[], bool]
    ) -> tuple[list[Stage], list[Step]]:
        """The stages, and every step in them: first those of the row, then the substitutes."""
        default = self.definition.concurrency
        others = [(kind, Step(brick, default, cancelled)) for kind, brick in substitutes]
        written = list(zip(bricks, self.definition.ordered_steps, strict=True))
        row = [Step(brick, said.concurrency or default, cancelled) for brick, said in written]
        stages: list[Stage] = []
        rewriters: list[Step] = []
        for step, (brick, said) in zip(row, written, strict=True):
            if brick.takes is Request and brick.gives is Request and step is not row[-1]:
                rewriters.append(step)
            else:
                stages.append(_stage(step, rewriters, others, said))
                rewriters = []
        return stages, row + [step for _, step in others]


def _stage(step: Step, rewriters: list[Step], others: Sequence[tuple[str, Step]], said: StepDefinition) -> Stage:
    by_kind: dict[str, list[Step]] = {}
    for kind, other in others:
        if stands_in(other.brick, step.brick):
            by_kind.setdefault(kind, []).append(other)
    return Stage(step, rewriters, by_kind, frozenset(said.accept_status))


def _requests(start: Start) -> AsyncIterator[Request] | Iterator[Request]:
    if isinstance(start, AsyncIterable):
        return (_request(one) async for one in start)
    return (_request(one) for one in start)


def _request(one: str | Request) -> Request:
    return Request(one) if isinstance(one, str) else one
