"""Our own search among the tools of a registry, as tools that a model calls: ``search_tools`` and ``call_tool``.

Nothing is found that the caller may not run: each tool is asked about as its call would be. So nobody is refused the
search itself. A call by ``call_tool`` is the call of the tool that it names and of nothing else: that one is
authorised, approved, validated, goes through the layers, has its own deadline and is on record.
"""

from __future__ import annotations

import asyncio
import threading
from collections import ChainMap
from collections.abc import AsyncIterator, Collection, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.calling.call import Calls, Unguarded
from toolcrib.calling.inline import run_async_inline
from toolcrib.core.content import ToolReferences
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError, shown
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.formats import Asked, signatures
from toolcrib.formats.deferring import CALL_SPEC, MOST_FOUND, USUALLY_FOUND, is_own, search_spec
from toolcrib.formats.naming import CALL_TOOL, SEARCH_TOOLS
from toolcrib.formats.nulls import without_nulls
from toolcrib.formats.provider import arguments_of

_ASKED_AT_ONCE = 10
_PARAMETERS = CALL_SPEC.parameters["properties"].keys()


class ToolSearch:
    """What a registry offers to a model that is not told of all its tools."""

    _calls: Calls
    _tools: dict[str, Tool]
    _offered: dict[str, Tool]
    _lock: threading.RLock

    if TYPE_CHECKING:

        def get(self, name: str) -> Tool: ...

        def search(self, text: str, limit: int | None = None, *, any_word: bool = False) -> list[Tool]: ...

        def execute(
            self, name: str, arguments: Mapping[str, Any] | None = None, *, context: ToolContext = ...
        ) -> Coroutine[Any, Any, ToolResult]: ...

    def search_tool(self, limit: int = USUALLY_FOUND) -> Tool:
        """A tool that finds the tools of this registry for a model: ``search_tools(query, limit)``.

        Anthropic's models get references, OpenAI's definitions, if they were handed deferred tools; everybody else gets
        signatures, to be called with :meth:`call_tool`. It finds what its caller may run.
        """
        spec = search_spec(_checked(limit))
        return Unguarded(spec, self._search_tools, run_async_inline, context_parameter="context")

    def call_tool(self) -> Tool:
        """A tool that calls those that :meth:`search_tool` found: ``call_tool(name, arguments)``."""
        return Unguarded(CALL_SPEC, self._call_tool, run_async_inline, context_parameter="context")

    def searching_here(self, tool: Tool) -> Tool:
        """The tool itself; of another registry's search and call the ones of this registry."""
        if not isinstance(tool, Unguarded) or not is_own(tool.spec):
            return tool
        if tool.name == CALL_TOOL:
            return self.call_tool()
        return self.search_tool(tool.spec.parameters["properties"]["limit"]["default"])

    def _offer(self, names: Collection[str]) -> None:
        """From now on calls of the search are answered: it was handed over. What is registered stays as it is."""
        made = {SEARCH_TOOLS: self.search_tool, CALL_TOOL: self.call_tool}
        with self._lock:
            missing = [name for name in made if name in names and name not in ChainMap(self._tools, self._offered)]
            if missing:
                self._offered = {**self._offered, **{name: made[name]() for name in missing}}

    def _resolve(self, name: str) -> Tool:
        """The tool that a call means."""
        try:
            return self._tools[name]
        except KeyError:
            if name in self._offered:
                return self._offered[name]
        except TypeError:  # a model may call anything, even something that cannot be a name
            pass
        return self.get(name)

    async def _search_tools(self, query: str, limit: int, context: ToolContext) -> ToolReferences:
        found: list[Tool] = []
        async for tool in self._allowed(self.search(query, any_word=True), context):
            found.append(tool)
            if len(found) == limit:
                break
        if not found:
            return ToolReferences((), f"No tool was found for {shown(query)}; search again in other words.")
        specs = tuple(tool.spec for tool in found)
        return ToolReferences(specs, signatures(specs))

    async def _call_tool(
        self, name: str, context: ToolContext, arguments: Mapping[str, Any] | None = None
    ) -> ToolResult:
        if self._is_own(name):
            raise InvalidArgumentsError(
                f"{CALL_TOOL} calls the tools that {SEARCH_TOOLS} finds, not {name!r}; call that by itself",
                tool=CALL_TOOL,
                argument="name",
            )
        return await self._calls.execute(name, arguments, context)

    async def _execute_named(self, asked: Mapping[str, Any] | None, context: ToolContext) -> ToolResult:
        """``call_tool``: if it names a tool, that one's call takes its place."""
        own = self._tools.get(CALL_TOOL) or self._offered.get(CALL_TOOL)
        if isinstance(own, Unguarded) and isinstance(asked, Mapping) and asked.keys() <= _PARAMETERS:
            name = asked.get("name")
            if isinstance(name, str) and not self._is_own(name):
                given = asked.get("arguments")
                return await self._calls.execute(
                    name, partial(_given, given) if name in self._tools else given, context
                )
        return await self._calls.execute(CALL_TOOL, asked, context)

    def _is_own(self, name: str) -> bool:
        tool = self._tools.get(name) or self._offered.get(name)
        return isinstance(tool, Unguarded) and is_own(tool.spec)

    async def _allowed(self, tools: list[Tool], context: ToolContext) -> AsyncIterator[Tool]:
        """Those that the caller may run, in order."""
        for start in range(0, len(tools), _ASKED_AT_ONCE):
            there = [tool for tool in tools[start : start + _ASKED_AT_ONCE] if not is_own(tool.spec)]
            answers = await asyncio.gather(*(self._calls.allows(tool.spec, context) for tool in there))
            for tool, allowed in zip(there, answers, strict=True):
                if allowed:
                    yield tool


def _given(arguments: Any, spec: ToolSpec) -> dict[str, Any]:
    """What a tool is called with: an object, or the JSON text of one, which some models write instead.

    As in a call of the tool itself, a null may stand for what is not given.
    """
    return without_nulls(spec.parameters, arguments_of(Asked(spec.name, arguments, ""), CALL_TOOL))


def _checked(limit: object) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_FOUND:
        raise ToolValidationError(f"limit is a whole number from 1 to {MOST_FOUND}, not {shown(limit)}")
    return limit
