"""AIWhisperer's words: ``AITool`` and the one ``ToolRegistry`` that discovers them.

class ReadFile(AITool):
    name = "read_file"
    description = "Read a file."
    parameters_schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

    async def execute(self, **kwargs):
        return Path(kwargs["path"]).read_text()
"""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from toolcrib.bootstrap import plugin_folders
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import as_tool
from toolcrib.define.base import Executable
from toolcrib.define.function import running, ways_to_run
from toolcrib.formats import tool_instructions
from toolcrib.registry.discovery import find_plugins
from toolcrib.registry.selection import criterion

__all__ = ["AITool", "ToolRegistry"]

GROUPS = ("aiwhisperer.tools", "toolcrib.tools")

log = logging.getLogger("toolcrib.aiwhisperer")


class AITool(Executable):
    """Name, description, parameters and ``execute`` are required; the rest has a default."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Unique among the tools of a registry."""

    @property
    @abstractmethod
    def description(self) -> str: ...

    @property
    @abstractmethod
    def parameters_schema(self) -> dict[str, Any]:
        """JSON Schema of an object."""

    @property
    def category(self) -> str | None:
        """A broad category such as "File System"; None if there is none."""
        return None

    @property
    def tags(self) -> list[str]:
        return []

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self.parameters_schema},
        }

    def get_ai_prompt_instructions(self) -> str:
        """What a system prompt should say about the tool: by default all that its properties tell."""
        return tool_instructions(self.to_spec())

    def to_spec(self) -> ToolSpec:
        """The tool as a spec; ToolValidationError names the property that is wrong."""
        return ToolSpec.parse(
            {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters_schema,
                "category": self.category or "",
                "tags": self.tags or (),
                **ways_to_run(self.execute),
            }
        )

    @staticmethod
    def from_tool(tool: Tool) -> AITool:
        """Any other tool, as one of these."""
        return _OtherTool(tool)

    def __toolcrib_tool__(self) -> Tool:
        return running(self.to_spec(), self.execute)


class _OtherTool(AITool):
    name: Any = property(lambda self: self.tool.name)
    description: Any = property(lambda self: self.tool.description)
    parameters_schema: Any = property(lambda self: self.tool.spec.parameters)
    category: Any = property(lambda self: self.tool.spec.category or None)
    tags: Any = property(lambda self: list(self.tool.spec.tags))

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    def to_spec(self) -> ToolSpec:
        return self.tool.spec

    async def execute(self, **kwargs: Any) -> Any:
        return await self.tool.execute(kwargs)

    def __toolcrib_tool__(self) -> Tool:
        return self.tool

    def __getattr__(self, attribute: str) -> Any:
        """Filters may ask for any field of the spec."""
        if attribute != "tool" and attribute in ToolSpec.model_fields:
            return getattr(self.tool.spec, attribute)
        raise AttributeError(attribute)


class ToolRegistry:
    """The one registry of a process. It discovers its tools when it is first asked for."""

    _instance: ClassVar[Any] = None
    _creation: ClassVar[threading.RLock] = threading.RLock()
    _registered_tools: dict[str, AITool]

    def __new__(cls) -> Self:
        # Plugins may ask for the registry while it loads them, so the lock is one that its holder may take again.
        with cls._creation:
            if cls._instance is None:
                folders = plugin_folders()
                registry = cls._instance = super().__new__(cls)
                registry._registered_tools = {}
                registry._load_tools(folders)
            return cast(Self, cls._instance)

    def _load_tools(self, folders: Iterable[Path]) -> None:
        """Installed plugins first, then the plugin folders; a broken one is a warning that names it."""
        for found in find_plugins(GROUPS, folders).found:
            self.register_tool(found.thing if isinstance(found.thing, AITool) else found.tool)

    def register_tool(self, tool: AITool | Any) -> None:
        """Add a tool, of these or of any other kind. Of two with one name the first stays, and a warning is logged."""
        given: AITool = tool if isinstance(tool, AITool) else AITool.from_tool(as_tool(tool))
        name = given.to_spec().name
        with self._creation:
            if name in self._registered_tools:
                log.warning("Tool '%s' already registered. Skipping duplicate.", name)
                return
            self._registered_tools[name] = given
        log.info("Tool '%s' registered successfully.", name)

    def get_tool_by_name(self, name: str) -> AITool | None:
        return self._registered_tools.get(name)

    def get_all_tools(self) -> list[AITool]:
        with self._creation:
            return list(self._registered_tools.values())

    def get_all_tool_definitions(self) -> list[dict[str, Any]]:
        """OpenRouter's definitions of all tools."""
        return [tool.get_openrouter_tool_definition() for tool in self.get_all_tools()]

    def get_all_ai_prompt_instructions(self) -> str:
        return "\n\n".join(tool.get_ai_prompt_instructions() for tool in self.get_all_tools())

    def get_filtered_tools(self, criteria: Mapping[str, Any]) -> list[AITool]:
        """The tools for which every criterion holds.

        ``tags`` asks for all of the tags given, ``name_pattern`` is a regular expression matched from the start of the
        name, and any other key is an attribute that must have the value given.
        """
        tests = [_criterion(key, wanted) for key, wanted in criteria.items()]
        return [tool for tool in self.get_all_tools() if all(test(tool) for test in tests)]

    def reload_tools(self) -> None:
        """Forget every tool and discover anew: plugin files are read again as they are now."""
        folders = plugin_folders()
        with self._creation:
            self._registered_tools.clear()
            self._load_tools(folders)


_MISSING = object()


def _criterion(key: str, wanted: Any) -> Callable[[AITool], bool]:
    if key in {"name_pattern", "tags"}:
        return criterion(key, wanted)
    return lambda tool: bool(getattr(tool, key, _MISSING) == wanted)
