"""What the door hands out: the live tools of a registry and the kept ones of a catalogue, called one way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.core.content import without_media
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolcribError
from toolcrib.core.json import as_json, write_json
from toolcrib.core.result import ToolResult
from toolcrib.core.roles import Principal
from toolcrib.core.schema import OutputCheck
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.formats import render_result
from toolcrib.formats.mcp import holds_media, structured
from toolcrib.formats.naming import READ_RESULT
from toolcrib.registry import ToolRegistry
from toolcrib.registry.large_results import LargeResults, takes_all
from toolcrib.settings import Settings

PAGE = 200
_LENGTH = 1_000_000
"""When a page has as much it ends: the SDK writes it in one step, for which every other request waits."""
_HELD = 10
"""So many whole tools are read at a time."""
_LONGEST_NUMBER = 10
_RUNNABLE = {"$or": [{f"binding.{way}": {"$gt": ""}} for way in Binding.model_fields]}
"""Tools whose binding says how to run them; the others are descriptions only. Old records lack the newer ways."""


def large_results(settings: Settings, processes: int = 1) -> LargeResults | None:
    """What shortens results, as the settings say. Of several processes none knows the handles of the others."""
    return LargeResults(settings.max_result_characters) if settings.max_result_characters and processes < 2 else None


def _kept_page(seen: CatalogueReader, after: str | None) -> tuple[list[ToolSpec], bool]:
    """Some tools, and whether more follow: however large they are, a client gets on from page to page."""
    specs: list[ToolSpec] = []
    length = 0
    for entry in seen.entries(_RUNNABLE, after=after, page=_HELD):
        if len(specs) == PAGE or length > _LENGTH:
            return specs, True
        specs.append(entry.spec)
        length += len(write_json([entry.spec.description, entry.spec.parameters, entry.spec.returns]))
    return specs, False


@dataclass(slots=True)
class ToolCall:
    """One call, and its result as the protocol has it. ``admitted`` says that no rule has a say.

    To read more of a result that its caller was given is part of the call that gave it.
    """

    _calls: Calls
    _name: str
    _arguments: Mapping[str, Any] | None
    _large: LargeResults | None
    admitted: bool = False
    _spec: ToolSpec | None = None

    async def execute(self, context: ToolContext) -> ToolResult:
        if self.admitted:
            context = replace(context, limits=None)
        return await self._calls.execute(self._name, self._given, context)

    def _given(self, spec: ToolSpec) -> Mapping[str, Any]:
        self._spec = spec
        return {} if self._arguments is None else self._arguments

    def render(self, result: ToolResult, context: ToolContext) -> dict[str, Any]:
        """For the model what is not too long; for programs what the tool's schema says."""
        spec = self._spec
        excerpt = None if self._large is None else self._large.excerpt(result, spec, context, takes_all)
        answer = render_result("mcp", "", result if excerpt is None else excerpt.result)
        value = result.data if excerpt is None or excerpt.value is None else excerpt.value
        if excerpt is not None:
            answer.pop("structuredContent", None)  # of the text that a model reads
        if spec is None or not spec.returns or not result.success or "structuredContent" in answer:
            return answer
        if not holds_media(spec.returns):
            answer["structuredContent"] = structured(as_json(_fitting(spec, without_media(value), result.data)))
        return answer


def _fitting(spec: ToolSpec, short: Any, whole: Any) -> Any:
    """What is short of a result if the tool's schema takes it: a client refuses what does not fit. Else all of it."""
    try:
        OutputCheck(spec.returns, spec.name)(short)
    except ToolcribError:
        return whole
    return short


class Toolbox:
    """What the catalogue can run, then the registry's live tools; of two of one name the kept one counts.

    ``calls`` runs them: which tool a name means is for its ``resolve`` to say, in the same order. With ``large``
    results that are too long are shortened, and the tool that reads the rest is there before any other of its name.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        registry: ToolRegistry | None = None,
        catalogue: Catalogue | None = None,
        large: LargeResults | None = None,
    ) -> None:
        self._calls = calls
        self._registry = ToolRegistry() if registry is None else registry
        self._catalogue = catalogue
        self._large = large

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> ToolCall:
        large = self._large
        if large is None or name != READ_RESULT:
            return ToolCall(self._calls, name, arguments, large)
        reader = large.reader
        return ToolCall(Calls(lambda _: reader, recorder=self._calls.recorder), name, arguments, large, admitted=True)

    async def page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        """Some tools, as the policy lets the principal see them, and where the next page begins."""
        specs, following = await self._page(cursor, principal)
        if self._large is None:
            return specs, following
        specs = [spec for spec in specs if spec.name != READ_RESULT]
        return specs if following else [*specs, self._large.reader.spec], following

    async def _page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        part, _, inner = (cursor or "kept:").partition(":")
        specs: list[ToolSpec] = []
        if part == "kept" and self._catalogue is not None:
            seen = self._catalogue.as_seen_by(principal)
            specs, more = await in_thread(READS, _kept_page, seen, inner or None)
            if more:
                return specs, f"kept:{specs[-1].name}"
            inner = ""  # the live ones begin where the kept ones end
        start = int(inner) if inner.isdecimal() and len(inner) < _LONGEST_NUMBER else 0
        live = [tool.spec for tool in self._registry]
        specs += await self._not_kept(live[start : start + PAGE])
        return specs, f"live:{start + PAGE}" if start + PAGE < len(live) else None

    async def _not_kept(self, live: list[ToolSpec]) -> list[ToolSpec]:
        if self._catalogue is None or not live:
            return live
        of_those_names = {"$and": [_RUNNABLE, {"name": {"$in": [spec.name for spec in live]}}]}
        kept = {spec.name for spec in await in_thread(READS, self._catalogue.query, of_those_names)}
        return [spec for spec in live if spec.name not in kept]
