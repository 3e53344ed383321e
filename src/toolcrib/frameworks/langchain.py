"""Tools as LangChain's StructuredTool. ``langchain_core`` is imported when the first tool is handed over."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.formats.schemas import object_schema

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

Execute = Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]


def to_structured_tool(tool: Tool, execute: Execute | None = None) -> StructuredTool:
    """``tool`` for LangChain, with its JSON Schema, its description, its checks and its deadline.

    ``execute`` runs it in another way than ``tool.execute`` does, such as with a registry's checks. Both ``invoke`` and
    ``ainvoke`` work; ``invoke`` uses an event loop of its own, so a tool that belongs to a running loop wants
    ``ainvoke``. What goes wrong is raised.
    """
    run: Execute = execute or tool.execute

    async def call(arguments: dict[str, Any]) -> Any:
        outcome = await run(arguments)
        if not isinstance(outcome, ToolResult):
            return outcome
        if not outcome.success:
            raise outcome.to_error()
        return outcome.data

    spec = tool.spec
    return _structured_tool()(
        name=spec.name,
        description=spec.description,
        args_schema=object_schema(spec, [], "LangChain"),
        func=lambda arguments: _now(call(arguments)),
        coroutine=call,
        tags=list(spec.tags) or None,
        return_direct=spec.is_terminal,
    )


def _now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    # A loop is running in this thread and waits for us, so the tool gets one in another thread, under the same rules.
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(contextvars.copy_context().run, asyncio.run, coroutine).result()


@cache
def _structured_tool() -> type[StructuredTool]:
    try:
        from langchain_core.tools import StructuredTool
    except ImportError:
        raise MissingDependencyError("langchain-core", extra="langchain") from None

    class ToolcribStructuredTool(StructuredTool):
        """Takes the arguments whole, so that a tool may have parameters called ``config`` or ``run_manager``."""

        def _run(self, /, **arguments: Any) -> Any:  # type: ignore[override]
            assert self.func is not None
            return self.func(arguments)

        async def _arun(self, /, **arguments: Any) -> Any:  # type: ignore[override]
            assert self.coroutine is not None
            return await self.coroutine(arguments)

    return ToolcribStructuredTool
