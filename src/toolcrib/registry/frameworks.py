"""The tools of a registry in other people's agent frameworks, under the registry's rules; and theirs in a registry."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.progress import Listener
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.frameworks.offer import Offer, offers

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool


class Frameworks:
    """Each framework's own package is imported when it is asked for; each has an extra of its name."""

    if TYPE_CHECKING:

        def get_all(self) -> list[Tool]: ...

        def _execute_for_model(
            self, name: str, arguments: Mapping[str, Any], context: ToolContext
        ) -> Coroutine[Any, Any, ToolResult]: ...

    def to_langchain_tools(self) -> list[StructuredTool]:
        """LangChain's StructuredTools. Needs the extra ``langchain``."""
        from toolcrib.frameworks.langchain import to_structured_tool

        return [to_structured_tool(tool, partial(self._run_for_langchain, tool.name)) for tool in self.get_all()]

    def _run_for_langchain(self, name: str, arguments: Mapping[str, Any]) -> Coroutine[Any, Any, ToolResult]:
        return self._run_for_framework(name, arguments, None)

    def _offers(self, framework: str) -> list[Offer]:
        return offers(self.get_all(), self._run_for_framework, framework)

    def _run_for_framework(
        self, name: str, arguments: Mapping[str, Any], listener: Listener | None
    ) -> Coroutine[Any, Any, ToolResult]:
        context = NO_CONTEXT if listener is None else NO_CONTEXT.heard_by(listener)
        return self._execute_for_model(name, arguments, context)
