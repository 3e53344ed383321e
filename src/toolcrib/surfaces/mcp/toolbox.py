"""What the door hands out: the live tools of a registry and the kept ones of a catalogue, called one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.core.context import ToolContext
from toolcrib.core.result import ToolResult
from toolcrib.core.roles import Principal
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.registry import ToolRegistry

PAGE = 200
_RUNNABLE = {"$or": [{f"binding.{way}": {"$ne": ""}} for way in Binding.model_fields]}
"""Tools whose binding says how to run them; the others are descriptions only."""


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

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: Principal) -> ToolResult:
        return await self._calls.execute(name, arguments, ToolContext.of(principal))

    async def page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        """Some tools, as the policy lets the principal see them, and where the next page begins."""
        part, _, inner = (cursor or "kept:").partition(":")
        specs: list[ToolSpec] = []
        if part == "kept" and self._catalogue is not None:
            seen = self._catalogue.as_seen_by(principal)
            page = await in_thread(READS, seen.query, _RUNNABLE, limit=PAGE, cursor=inner or None)
            specs += page
            if page.next_cursor:
                return specs, f"kept:{page.next_cursor}"
            inner = ""  # the live ones begin where the kept ones end
        start = int(inner) if inner.isdecimal() else 0
        live = [tool.spec for tool in self._registry]
        specs += await self._not_kept(live[start : start + PAGE])
        return specs, f"live:{start + PAGE}" if start + PAGE < len(live) else None

    async def _not_kept(self, live: list[ToolSpec]) -> list[ToolSpec]:
        if self._catalogue is None or not live:
            return live
        of_those_names = {"$and": [_RUNNABLE, {"name": {"$in": [spec.name for spec in live]}}]}
        kept = {spec.name for spec in await in_thread(READS, self._catalogue.query, of_those_names)}
        return [spec for spec in live if spec.name not in kept]
