"""What the door hands out: the live tools of a registry, or those of a catalogue that something can run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from toolcrib.calling.call import Guard, execute
from toolcrib.catalogue import Catalogue
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolcribError
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.registry import ToolRegistry

PAGE = 200


class Toolbox(Protocol):
    async def page(self, cursor: str | None) -> tuple[list[ToolSpec], str | None]:
        """Some tools, and where the next page begins."""
        ...

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: str) -> ToolResult: ...


class RegistryToolbox:
    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def page(self, cursor: str | None) -> tuple[list[ToolSpec], str | None]:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        tools = self._registry.get_all()
        following = start + PAGE
        return [tool.spec for tool in tools[start:following]], str(following) if following < len(tools) else None

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: str) -> ToolResult:
        return await self._registry.execute(name, arguments, context=ToolContext(principal))


_RUNNABLE = {"$or": [{f"binding.{way}": {"$ne": ""}} for way in Binding.model_fields]}


class CatalogueToolbox:
    """Tools whose binding says how to run them; the others are descriptions only."""

    def __init__(self, catalogue: Catalogue, guard: Guard) -> None:
        self._catalogue = catalogue
        self._guard = guard

    async def page(self, cursor: str | None) -> tuple[list[ToolSpec], str | None]:
        page = await asyncio.to_thread(self._catalogue.query, _RUNNABLE, limit=PAGE, cursor=cursor)
        return list(page), page.next_cursor

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: str) -> ToolResult:
        try:
            tool = await asyncio.to_thread(self._catalogue.tool, name)
        except ToolcribError as error:
            return ToolResult(False, error=error.message, error_code=error.code)
        return await execute(lambda _: tool, self._guard, name, arguments, ToolContext(principal))


class JoinedToolbox:
    """A registry's live tools first, then the catalogue's; of two tools of one name the live one counts."""

    def __init__(self, registry: ToolRegistry, catalogue: CatalogueToolbox) -> None:
        self._registry = registry
        self._live = RegistryToolbox(registry)
        self._kept = catalogue

    async def page(self, cursor: str | None) -> tuple[list[ToolSpec], str | None]:
        part, _, inner = (cursor or "live:").partition(":")
        if part == "live":
            specs, following = await self._live.page(inner or None)
            return specs, f"live:{following}" if following else "kept:"
        specs, following = await self._kept.page(inner or None)
        return [spec for spec in specs if spec.name not in self._registry], f"kept:{following}" if following else None

    async def run(self, name: str, arguments: Mapping[str, Any] | None, principal: str) -> ToolResult:
        toolbox: Toolbox = self._live if name in self._registry else self._kept
        return await toolbox.run(name, arguments, principal)
