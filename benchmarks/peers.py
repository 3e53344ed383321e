"""One trivial tool, ``add(a, b)``, defined and called with each library, each in the way its documentation shows.

A peer is three functions: ``define(function)`` makes the library's tool, ``caller(tool)`` gives an async function of no
arguments that makes one call, and ``export(tools)`` gives the OpenAI definitions.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Peer:
    name: str
    module: str
    define_all: Callable[[list[Callable[..., Any]]], Any]
    caller: Callable[[Any, str], Awaitable[Call]]
    export: Callable[[Any], Any]


ARGUMENTS = {"a": 1, "b": 2}


def _toolcrib() -> Peer:
    from toolcrib import ToolRegistry, tool
    from toolcrib.adapters.audit.memory import MemoryAudit

    def define_all(functions: list[Callable[..., Any]]) -> Any:
        registry = ToolRegistry(audit=MemoryAudit())
        registry.register_many(tool(timeout_seconds=30)(function) for function in functions)
        return registry

    async def caller(registry: Any, name: str) -> Call:
        return lambda: registry.execute(name, ARGUMENTS)

    return Peer("toolcrib", "toolcrib", define_all, caller, lambda registry: registry.definitions("openai"))


def _pydantic_ai() -> Peer:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.usage import RunUsage

    def define_all(functions: list[Callable[..., Any]]) -> Any:
        toolset: Any = FunctionToolset()
        for function in functions:
            toolset.add_function(function)
        return toolset

    async def caller(toolset: Any, name: str) -> Call:
        context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        manager = await ToolManager(toolset).for_run_step(context)
        part = ToolCallPart(name, ARGUMENTS, "call-1")
        return lambda: manager.handle_call(part)

    def export(toolset: Any) -> Any:
        return [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": s.json_schema},
            }
            for t in toolset.tools.values()
            for s in [t.function_schema]
        ]

    return Peer("pydantic-ai ToolManager", "pydantic_ai", define_all, caller, export)


def _toolregistry() -> Peer:
    from toolregistry import ToolRegistry

    def define_all(functions: list[Callable[..., Any]]) -> Any:
        registry = ToolRegistry()
        for function in functions:
            registry.register(function)
        return registry

    async def caller(registry: Any, name: str) -> Call:
        return lambda: registry.ainvoke(name, ARGUMENTS)

    return Peer("toolregistry ainvoke", "toolregistry", define_all, caller, lambda registry: registry.get_schemas())


def _openai_agents() -> Peer:
    from agents import function_tool
    from agents.tool_context import ToolContext

    def define_all(functions: list[Callable[..., Any]]) -> Any:
        return {function.__name__: function_tool(function) for function in functions}

    async def caller(tools: Any, name: str) -> Call:
        context: Any = ToolContext(None, tool_name=name, tool_call_id="call-1", tool_arguments="{}")
        arguments = json.dumps(ARGUMENTS)
        return lambda: tools[name].on_invoke_tool(context, arguments)

    def export(tools: Any) -> Any:
        return [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": t.params_json_schema},
            }
            for t in tools.values()
        ]

    return Peer("openai-agents on_invoke_tool", "agents", define_all, caller, export)


def _langchain() -> Peer:
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    def define_all(functions: list[Callable[..., Any]]) -> Any:
        return {function.__name__: StructuredTool.from_function(coroutine=function) for function in functions}

    async def caller(tools: Any, name: str) -> Call:
        return lambda: tools[name].ainvoke(ARGUMENTS)

    def export(tools: Any) -> Any:
        return [convert_to_openai_tool(tool) for tool in tools.values()]

    return Peer("langchain-core ainvoke", "langchain_core.tools", define_all, caller, export)


def _fastmcp() -> Peer:
    import asyncio

    from fastmcp import FastMCP

    def define_all(functions: list[Callable[..., Any]]) -> Any:
        server = FastMCP("bench")
        for function in functions:
            server.tool(function)
        return server

    async def caller(server: Any, name: str) -> Call:
        return lambda: server.call_tool(name, ARGUMENTS)

    def export(server: Any) -> Any:
        tools = asyncio.run(server.list_tools())
        return [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in tools
        ]

    return Peer("fastmcp call_tool", "fastmcp", define_all, caller, export)


PEERS: dict[str, Callable[[], Peer]] = {
    "toolcrib": _toolcrib,
    "pydantic-ai": _pydantic_ai,
    "openai-agents": _openai_agents,
    "toolregistry": _toolregistry,
    "fastmcp": _fastmcp,
    "langchain-core": _langchain,
}
