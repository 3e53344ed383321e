"""The tools of a registry in other people's agent frameworks, under the registry's rules; and theirs in a registry."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.calling.usage import UNKNOWN
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.frameworks import Offer, framework, framework_of, offers, text_told
from toolcrib.registry.usage import TokenCounts

if TYPE_CHECKING:
    from agents import FunctionTool as AgentsTool
    from langchain_core.tools import BaseTool as LangChainTool
    from langchain_core.tools import StructuredTool
    from llama_index.core.tools import BaseTool as LlamaIndexTool
    from pydantic_ai import Tool as PydanticTool
    from pydantic_ai.toolsets import AbstractToolset


class Frameworks:
    """Each framework's own package is imported when it is asked for; each has an extra of its name.

    The tools that are handed out run with ``context``, and with the id under which the model called.
    """

    _tokens: TokenCounts
    _tools: dict[str, Tool]

    if TYPE_CHECKING:

        def get_all(self) -> list[Tool]: ...

        def _add(self, tools: list[Tool]) -> None: ...

        def _execute_for_model(
            self, name: str, arguments: Mapping[str, Any], context: ToolContext
        ) -> Coroutine[Any, Any, ToolResult]: ...

    # Out

    def to_langchain_tools(self, *, context: ToolContext = NO_CONTEXT) -> list[StructuredTool]:
        """The tools that there are now, as LangChain's StructuredTools. Needs the extra ``langchain``.

        What goes wrong is told to the model; progress and items reach the callbacks of the run.
        """
        return self._exported("langchain", "LangChain", context)  # type: ignore[no-any-return]

    def to_pydantic_ai(self, *, context: ToolContext = NO_CONTEXT, id: str | None = None) -> AbstractToolset[Any]:
        """This registry as a toolset of pydantic-ai. Needs the extra ``pydantic-ai``.

        The toolset lives: a tool that is registered later is there at the agent's next step. Wrong arguments are told
        as a ModelRetry, any other failure as a ToolFailed. ``id`` is the toolset's own.
        """
        return self._exported("pydantic_ai", "pydantic-ai", context, id=id)  # type: ignore[no-any-return]

    def to_openai_agents(self, *, context: ToolContext = NO_CONTEXT) -> list[Any]:
        """The tools that there are now, as FunctionTools of OpenAI's Agents SDK. Needs the extra ``openai-agents``.

        Typed as ``Any``, for its agents want a list of tools of every kind, and a list of one kind is none.
        """
        return self._exported("openai_agents", "the OpenAI Agents SDK", context)  # type: ignore[no-any-return]

    def to_llama_index(self, *, context: ToolContext = NO_CONTEXT) -> list[Any]:
        """The tools that there are now, as LlamaIndex's FunctionTools. Needs the extra ``llama-index``.

        Typed as ``Any``, for its agents want a list of tools and functions, and a list of tools is none.
        """
        return self._exported("llama_index", "LlamaIndex", context)  # type: ignore[no-any-return]

    def _exported(self, name: str, title: str, context: ToolContext, **options: Any) -> Any:
        offered: Callable[[], list[Offer]] = partial(self._offers, title, context)
        return framework(name).export(offered, **options)

    def _offers(self, title: str, context: ToolContext) -> list[Offer]:
        return offers(self.get_all(), self._run_offered, title, context)

    async def _run_offered(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        result = await self._execute_for_model(name, arguments, context)
        self._tokens.answered([name if name in self._tools else UNKNOWN], [{"content": text_told(result, name)}])
        return result

    # In: all of them are added, or none

    def add_langchain(self, tools: Iterable[LangChainTool]) -> list[Tool]:
        """Add tools of LangChain, such as functions with its ``@tool``."""
        return self._adopt("langchain", tools)

    def add_pydantic_ai(
        self,
        tools: AbstractToolset[Any] | Iterable[PydanticTool[Any] | AbstractToolset[Any] | Callable[..., Any]],
        *,
        deps: Any = None,
    ) -> list[Tool]:
        """Add the tools of a pydantic-ai toolset as they are now, its ``Tool`` objects, or functions with a RunContext.

        A tool that takes a RunContext gets one with ``deps`` and the call's id; it has no model and no history.
        """
        return self._adopt("pydantic_ai", tools, deps=deps)

    def add_openai_agents(self, tools: Iterable[AgentsTool], *, run_context: Any = None) -> list[Tool]:
        """Add function tools of OpenAI's Agents SDK. One that takes a ToolContext finds ``run_context`` in it."""
        return self._adopt("openai_agents", tools, run_context=run_context)

    def add_llama_index(self, tools: Iterable[LlamaIndexTool]) -> list[Tool]:
        """Add tools of LlamaIndex."""
        return self._adopt("llama_index", tools)

    def _adopt(self, name: str, theirs: Any, **options: Any) -> list[Tool]:
        if framework_of(theirs) is not None or not isinstance(theirs, Iterable):
            theirs = [theirs]  # one is meant, also if it can be iterated, as LangChain's can
        tools: list[Tool] = framework(name).adopt(theirs, **options)
        self._add(tools)
        return tools
