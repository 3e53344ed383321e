"""FlyBrowser's words: ``BaseTool`` classes with ``metadata``, made for a page, answering with ``ToolResult``.

class Shout(BaseTool):
    metadata = ToolMetadata(
        name="shout",
        description="Say it loudly",
        parameters=[ToolParameter(name="text", type="string", required=True)],
    )

    async def execute(self, text: str, **kwargs) -> ToolResult:
        return ToolResult.success_result(text.upper())
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolcrib.calling.call import Approve
from toolcrib.core.errors import InvalidArgumentsError, ToolFailedError, ToolNotFoundError, ToolValidationError
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import ModelCapability, SafetyLevel
from toolcrib.core.tool import Tool
from toolcrib.define import as_tool
from toolcrib.define.base import Executable
from toolcrib.define.callables import is_async_callable
from toolcrib.define.function import running, ways_to_run
from toolcrib.dialects.flybrowser_metadata import ToolCategory, ToolMetadata, ToolParameter
from toolcrib.registry import ToolRegistry as CoreRegistry

__all__ = [
    "BaseTool",
    "ModelCapability",
    "SafetyLevel",
    "ToolCategory",
    "ToolMetadata",
    "ToolParameter",
    "ToolRegistry",
    "ToolResult",
]

ALIASES = {
    "navigate": "goto",
    "go_back": "back",
    "go_forward": "forward",
    "type_text": "type",
    "select_option": "select",
    "check_checkbox": "check",
    "search_human": "search",
    "search_api": "search",
    "search_rank": "search",
}
"""Names that later versions gave to the browser tools. They work if no tool bears them itself."""

log = logging.getLogger("toolcrib.flybrowser")


class BaseTool(Executable):
    """A tool is a class: ``metadata`` says what it is, ``execute`` runs it, ``self.page`` is what it works on."""

    metadata: ToolMetadata

    def __init__(self, page_controller: Any = None) -> None:
        self.page = page_controller

    def validate_parameters(self, params: Mapping[str, Any]) -> tuple[bool, str | None]:
        """Whether the parameters fit the tool's JSON Schema and, if not, what is wrong with them."""
        try:
            self.__toolcrib_tool__().validate(params)
        except InvalidArgumentsError as error:
            return False, error.message
        return True, None

    def __toolcrib_tool__(self) -> Tool:
        return _core_tool(type(self), _metadata_of(self), lambda: self)


class _OtherTool(BaseTool):
    """Any other tool, as one of these."""

    def __init__(self, tool: Tool) -> None:
        super().__init__()
        self.tool = tool
        self.metadata = ToolMetadata.from_spec(tool.spec)

    async def execute(self, **kwargs: Any) -> ToolResult:
        value = await self.tool.execute(kwargs)
        return value if isinstance(value, ToolResult) else ToolResult.success_result(value)

    def __toolcrib_tool__(self) -> Tool:
        return self.tool


def _metadata_of(tool: BaseTool | type[BaseTool]) -> ToolMetadata:
    metadata = getattr(tool, "metadata", None)
    if isinstance(metadata, ToolMetadata):
        return metadata
    name = tool.__name__ if isinstance(tool, type) else type(tool).__name__
    if metadata is None:
        raise ToolValidationError(f"class {name!r} has no metadata; give it 'metadata = ToolMetadata(...)'")
    raise ToolValidationError(f"the metadata of class {name!r} must be a ToolMetadata, not {metadata!r:.60}")


def _check_class(given: object) -> None:
    if not (isinstance(given, type) and issubclass(given, BaseTool)):
        raise ToolValidationError(f"{given!r:.60} is not a BaseTool class; for an object use register_instance()")
    if abstract := sorted(given.__abstractmethods__):
        raise ToolValidationError(f"class {given.__name__!r} does not implement {', '.join(abstract)}")


def _core_tool(cls: type[BaseTool], metadata: ToolMetadata, make: Callable[[], BaseTool]) -> Tool:
    """A tool of the core that runs what ``make`` gives it at each call."""
    spec = metadata.to_spec().model_copy(update=ways_to_run(cls.execute))

    async def run_async(**kwargs: Any) -> Any:
        return await _ready(make()).execute(**kwargs)

    def run(**kwargs: Any) -> Any:
        return _ready(make()).execute(**kwargs)

    return running(spec, run_async if is_async_callable(cls.execute) else run)


def _ready(tool: BaseTool) -> BaseTool:
    if tool.metadata.requires_page and tool.page is None:
        raise ToolFailedError(tool.metadata.name, "it works on a page and has none; give it a page_controller")
    return tool


class ToolRegistry:
    """Tool classes, made when they are asked for, and instances, as they are.

    ``page_controller`` is the page of the classes that :meth:`execute` makes. What is more dangerous than
    ``highest_safety_level`` runs only if ``approve(spec, params)`` says so. ``core`` is the registry beneath.
    """

    def __init__(
        self,
        page_controller: Any = None,
        *,
        highest_safety_level: SafetyLevel | str = SafetyLevel.HIGH_RISK,
        approve: Approve | None = None,
    ) -> None:
        self.page_controller = page_controller
        self.core = CoreRegistry(highest_safety_level=highest_safety_level, approve=approve)
        self._classes: dict[str, type[BaseTool]] = {}
        self._instances: dict[str, BaseTool] = {}

    def register(self, tool_class: type[BaseTool]) -> None:
        """Add a class. ToolValidationError if it has no metadata, ToolExistsError if its name is taken."""
        _check_class(tool_class)
        metadata = _metadata_of(tool_class)
        self.core.register(_core_tool(tool_class, metadata, lambda: self._made(tool_class)))
        self._classes[metadata.name] = tool_class

    def register_instance(self, tool_instance: Any) -> None:
        """Add a tool that exists: one of these, or any other that Toolcrib knows."""
        tool = tool_instance if isinstance(tool_instance, BaseTool) else _OtherTool(as_tool(tool_instance))
        self._instances[self.core.register(tool).name] = tool

    def get_tool(self, name: str, **kwargs: Any) -> BaseTool:
        """The tool: an instance as it is, a class made with ``kwargs``. ToolNotFoundError, a KeyError, for no tool."""
        name = self._resolved(name)
        if name in self._instances:
            return self._instances[name]
        if name in self._classes:
            return self._made(self._classes[name], **kwargs)
        raise ToolNotFoundError(name, self.core.names())

    def list_tools(self) -> list[str]:
        """The names, in order of registration."""
        return list(self.core.names())

    def get_by_category(self, category: ToolCategory | str) -> list[BaseTool]:
        wanted = category.value if isinstance(category, ToolCategory) else category
        return [self.get_tool(tool.name) for tool in self.core.get_by_category(wanted)]

    def get_filtered_registry(
        self, capabilities: Iterable[ModelCapability | str], warn_suboptimal: bool = False
    ) -> ToolRegistry:
        """The tools that a model with these capabilities can use; ``core.left_out`` says why not the others.

        ``warn_suboptimal`` logs a warning for each tool that would work better with more.
        """
        filtered = ToolRegistry(self.page_controller)
        filtered.core = self.core.for_model(str(capability) for capability in capabilities)
        filtered._classes = {name: cls for name, cls in self._classes.items() if name in filtered.core}
        filtered._instances = {name: tool for name, tool in self._instances.items() if name in filtered.core}
        if warn_suboptimal:
            for name, remark in filtered.core.suboptimal.items():
                log.warning("tool %r %s", name, remark)
        return filtered

    filter = get_filtered_registry

    def definitions(self, format: str = "openai") -> list[dict[str, Any]]:
        return self.core.definitions(format)

    def generate_prompt(self, **options: Any) -> str:
        return self.core.generate_prompt(**options)

    async def execute(self, name: str, params: Mapping[str, Any] | None = None) -> ToolResult:
        """Get the tool, check the parameters, run it within its timeout. Never raises: the result says it all."""
        return await self.core.execute(self._resolved(name), params)

    def _made(self, tool_class: type[BaseTool], **kwargs: Any) -> BaseTool:
        if self.page_controller is not None:
            kwargs.setdefault("page_controller", self.page_controller)
        return tool_class(**kwargs)

    def _resolved(self, name: str) -> str:
        return name if name in self.core else ALIASES.get(name, name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._resolved(name) in self.core

    def __len__(self) -> int:
        return len(self.core)

    def __iter__(self) -> Iterator[str]:
        return iter(self.list_tools())
