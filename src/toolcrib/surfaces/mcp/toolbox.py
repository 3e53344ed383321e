"""What the door hands out: the live tools of a registry and the kept ones of a catalogue, called one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.core.context import ToolContext
from toolcrib.core.json import write_json
from toolcrib.core.result import ToolResult
from toolcrib.core.roles import Principal
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.registry import ToolRegistry

PAGE = 200
_LENGTH = 1_000_000
"""When a page has as much it ends: the SDK writes it in one step, for which every other request waits."""
_HELD = 10
"""So many whole tools are read at a time."""
_LONGEST_NUMBER = 10
_RUNNABLE = {"$or": [{f"binding.{way}": {"$ne": ""}} for way in Binding.model_fields]}
"""Tools whose binding says how to run them; the others are descriptions only."""


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


class Toolbox:
    """What the catalogue can run, then the registry's live tools; of two of one name the kept one counts.

    ``calls`` runs them: which tool a name means is for its ``resolve`` to say, in the same order.
    """

    def __init__(
        self, calls: Calls, *, registry: ToolRegistry | None = None, catalogue: Catalogue | None = None
    ) -> None:
        self._calls = calls
        self._registry = ToolRegistry() if registry is None else registry
        self._catalogue = catalogue

    async def run(
        self, name: str, arguments: Mapping[str, Any] | None, principal: Principal, call_id: str = ""
    ) -> ToolResult:
        return await self._calls.execute(name, arguments, ToolContext.of(principal).asked_as(call_id))

    async def page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        """Some tools, as the policy lets the principal see them, and where the next page begins."""
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
