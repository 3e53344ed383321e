"""What the door hands out: the live tools of a registry, or those of a catalogue that something can run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from toolcrib.calling.blocking import in_thread
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.core.context import ToolContext
from toolcrib.core.result import ToolResult
from toolcrib.core.roles import Principal
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.registry import ToolRegistry

PAGE = 200


class Toolbox(Protocol):
    async def page(self, cursor: str | None, principal: Principal, /) -> tuple[list[ToolSpec], str | None]:
        """Some tools, and where the next page begins."""
        ...

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: Principal) -> ToolResult: ...


class RegistryToolbox:
    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def page(self, cursor: str | None, _principal: Principal) -> tuple[list[ToolSpec], str | None]:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        tools = self._registry.get_all()
        following = start + PAGE
        return [tool.spec for tool in tools[start:following]], str(following) if following < len(tools) else None

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: Principal) -> ToolResult:
        return await self._registry.execute(name, arguments, context=ToolContext(principal.name, roles=principal.roles))


_RUNNABLE = {"$or": [{f"binding.{way}": {"$ne": ""}} for way in Binding.model_fields]}


class CatalogueToolbox:
    """Tools whose binding says how to run them; the others are descriptions only."""

    def __init__(self, catalogue: Catalogue, calls: Calls) -> None:
        self._catalogue = catalogue
        self._calls = calls

    async def page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        seen = self._catalogue.as_seen_by(principal)
        page = await in_thread(seen.query, _RUNNABLE, limit=PAGE, cursor=cursor)
        return list(page), page.next_cursor

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: Principal) -> ToolResult:
        return await self._calls.execute(name, arguments, ToolContext(principal.name, roles=principal.roles))


class JoinedToolbox:
    """A registry's live tools first, then the catalogue's; of two tools of one name the live one counts."""

    def __init__(self, registry: ToolRegistry, catalogue: CatalogueToolbox) -> None:
        self._registry = registry
        self._live = RegistryToolbox(registry)
        self._kept = catalogue

    async def page(self, cursor: str | None, principal: Principal) -> tuple[list[ToolSpec], str | None]:
        part, _, inner = (cursor or "live:").partition(":")
        if part == "live":
            specs, following = await self._live.page(inner or None, principal)
            return specs, f"live:{following}" if following else "kept:"
        specs, following = await self._kept.page(inner or None, principal)
        return [spec for spec in specs if spec.name not in self._registry], f"kept:{following}" if following else None

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: Principal) -> ToolResult:
        toolbox: Toolbox = self._live if name in self._registry else self._kept
        return await toolbox.run(name, arguments, principal)
