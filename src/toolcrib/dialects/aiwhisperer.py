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
from toolcrib.formats.naming import collision
from toolcrib.formats.openai import NAMES
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
    def description(self) -> str:
        """What the tool does, for a model to choose by."""

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
        """Keywords for what the tool can do or is about, such as ``["file_io", "read"]``; empty if there are none."""
        return []

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """What a model is handed, as its provider takes it: ``files.read`` is ``files_read`` there, ``{}`` an object.

        Concrete, where the design has it abstract: a tool says what it is by its properties, and may say it otherwise.
        """
        return {
            "type": "function",
            "function": {
                "name": NAMES.apply(self.name),
                "description": self.description,
                "parameters": _object(self.parameters_schema),
            },
        }

    def get_ai_prompt_instructions(self) -> str:
        """What a system prompt should say about the tool. Concrete too: by default all that its properties tell."""
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
    """The one registry of a process. It discovers its tools when it is first asked for.

    What it holds is replaced whole, never changed in place: whoever reads sees it as it was or as it is.
    """

    _instance: ClassVar[Any] = None
    _loaded: ClassVar[Any] = None
    _creation: ClassVar[threading.RLock] = threading.RLock()
    _registered_tools: dict[str, AITool]
    _being_loaded: dict[str, AITool] | None

    def __new__(cls) -> Self:
        known = cls._instance
        if known is not None and known is cls._loaded:
            return cast(Self, known)
        # Plugins may ask for the registry while it loads them, so the lock is one that its holder may take again.
        with cls._creation:
            if cls._instance is None:
                folders = plugin_folders()
                registry = cls._instance = super().__new__(cls)
                registry._registered_tools, registry._being_loaded = {}, None
                try:
                    registry._load_tools(folders)
                except BaseException:
                    cls._instance = None
                    raise
                cls._loaded = registry
            return cast(Self, cls._instance)

    def _load_tools(self, folders: Iterable[Path]) -> None:
        """Installed plugins first, then the plugin folders; a broken one is a warning that names it.

        The tools that there were stay until all of the new ones are there. What another thread registers waits, and a
        plugin that registers something by itself does so among the new ones.
        """
        with self._creation:
            if self._being_loaded is not None:
                return  # a plugin asks for what is going on
            self._being_loaded = {}
            try:
                for found in find_plugins(GROUPS, folders, _warn).found:
                    self.register_tool(found.thing if isinstance(found.thing, AITool) else found.tool)
                self._registered_tools = self._being_loaded
            finally:
                self._being_loaded = None

    def register_tool(self, tool: AITool | Any) -> None:
        """Add a tool, of these or of any other kind. Of two with one name the first stays, and a warning is logged."""
        given: AITool = tool if isinstance(tool, AITool) else AITool.from_tool(as_tool(tool))
        name = given.to_spec().name
        with self._creation:
            known = self._registered_tools if self._being_loaded is None else self._being_loaded
            if name in known:
                log.warning("Tool '%s' already registered. Skipping duplicate.", name)
                return
            if self._being_loaded is None:
                self._registered_tools = {**known, name: given}
            else:
                known[name] = given
        log.info("Tool '%s' registered successfully.", name)

    def get_tool_by_name(self, name: str) -> AITool | None:
        """The tool of this name, or the one that a model calls by it: ``files_read`` finds ``files.read``."""
        tools = self._registered_tools
        found = tools.get(name)
        if found is None:
            return next((tool for own, tool in tools.items() if NAMES.apply(own) == name), None)
        return found

    def get_all_tools(self) -> list[AITool]:
        """Every tool, in order of registration."""
        return list(self._registered_tools.values())

    def get_all_tool_definitions(self) -> list[dict[str, Any]]:
        """OpenRouter's definitions of all tools, to be passed on as they are.

        Names that no provider takes become such as it does, also those of definitions that a tool writes itself.
        Raises ExportError if two tools would be one to the model.
        """
        definitions, exported = list[dict[str, Any]](), dict[str, str]()
        for tool in self.get_all_tools():
            name, definition = _passable(tool.get_openrouter_tool_definition())
            if name and exported.setdefault(name, tool.name) != tool.name:
                raise collision(exported[name], tool.name, name, "OpenRouter")
            definitions.append(definition)
        return definitions

    def get_all_ai_prompt_instructions(self) -> str:
        """What a system prompt should say about all tools, a paragraph or more each."""
        return "\n\n".join(tool.get_ai_prompt_instructions() for tool in self.get_all_tools())

    def get_filtered_tools(self, criteria: Mapping[str, Any]) -> list[AITool]:
        """The tools for which every criterion holds.

        ``tags`` asks for all of the tags given, and so does a list of any other attribute that is one; ``name_pattern``
        is a regular expression matched from the start of the name, and any other value is the one that the attribute
        must have.
        """
        tests = [_criterion(key, wanted) for key, wanted in criteria.items()]
        return [tool for tool in self.get_all_tools() if all(test(tool) for test in tests)]

    def reload_tools(self) -> None:
        """Forget every tool and discover anew: plugin files are read again as they are now.

        The old tools are there until the new ones are; if that fails they stay.
        """
        self._load_tools(plugin_folders())


def _warn(what: str, reason: str) -> None:
    log.warning("Failed to load tool %s: %s", what, reason)


def _passable(definition: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A definition that the provider takes, and its name there; a shape that we do not know stays."""
    function = definition.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return "", definition
    name = NAMES.apply(function["name"])
    taken = {**function, "name": name}
    if isinstance(function.get("parameters"), dict):
        taken["parameters"] = _object(function["parameters"])
    return name, {**definition, "function": taken}


def _object(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what providers ask of one of an object, also where there are no parameters."""
    return {"type": "object", "properties": {}, **schema}


_LISTS = (list, tuple, set, frozenset)
_MISSING = object()


def _criterion(key: str, wanted: Any) -> Callable[[AITool], bool]:
    if key in {"name_pattern", "tags"}:
        return criterion(key, wanted)
    return lambda tool: _holds(getattr(tool, key, _MISSING), wanted)


def _holds(value: Any, wanted: Any) -> bool:
    if isinstance(value, _LISTS):
        return all(one in value for one in (wanted if isinstance(wanted, _LISTS) else [wanted]))
    return bool(value == wanted)
