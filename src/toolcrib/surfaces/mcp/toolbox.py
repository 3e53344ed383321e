"""What the door hands out: the live tools of a registry and the kept ones of a catalogue, called one way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolcrib.calling.blocking import in_thread
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.result import ToolResult
from toolcrib.core.roles import Principal
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.registry import ToolRegistry

PAGE = 200
_RUNNABLE = {"$or": [{f"binding.{way}": {"$ne": ""}} for way in Binding.model_fields]}
"""Tools whose binding says how to run them; the others are descriptions only."""


class Toolbox:
    """The registry's live tools first, then what the catalogue can run; of two tools of one name the live one counts.

    ``calls`` has the rules; the toolbox says which tool a name means.
    """

    def __init__(
        self, calls: Calls, *, registry: ToolRegistry | None = None, catalogue: Catalogue | None = None
    ) -> None:
        self._registry = ToolRegistry() if registry is None else registry
        self._catalogue = catalogue
        self._calls = replace(calls, resolve=self._resolve)

    def _resolve(self, name: str) -> Tool:
        try:
            return self._registry.get(name)
        except ToolNotFoundError:
            if self._catalogue is None:
                raise
        return self._catalogue.tool(name)

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: Principal) -> ToolResult:
        return await self._calls.execute(name, arguments, ToolContext(principal.name, roles=principal.roles))

    async def page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        """Some tools, as the policy lets the principal see them, and where the next page begins."""
        part, _, inner = (cursor or "").partition(":")
        live = self._registry.get_all()
        start = int(inner) if inner.isdecimal() else 0
        if part != "kept" and start < len(live):
            specs = [tool.spec for tool in live[start : start + PAGE]]
            if start + PAGE < len(live):
                return specs, f"live:{start + PAGE}"
            return specs, None if self._catalogue is None else "kept:"
        if self._catalogue is None:
            return [], None
        seen = self._catalogue.as_seen_by(principal)
        page = await in_thread(seen.query, _RUNNABLE, limit=PAGE, cursor=inner or None)
        specs = [spec for spec in page if spec.name not in self._registry]
        return specs, f"kept:{page.next_cursor}" if page.next_cursor else None
