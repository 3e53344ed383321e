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
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import TYPE_CHECKING, Any

from toolcrib.calling.call import Approve
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolFailedError, ToolValidationError
from toolcrib.core.result import ToolResult as CoreResult
from toolcrib.core.safety import ModelCapability, SafetyLevel
from toolcrib.core.tool import Tool
from toolcrib.define import as_tool
from toolcrib.define.base import Executable
from toolcrib.define.callables import is_async_callable
from toolcrib.define.function import running, ways_to_run
from toolcrib.dialects.flybrowser_metadata import ToolCategory, ToolMetadata, ToolParameter, category_of
from toolcrib.dialects.flybrowser_result import ToolResult
from toolcrib.registry import ToolRegistry as CoreRegistry
from toolcrib.registry.answering import Answer, Answers

if TYPE_CHECKING:
    from toolcrib.dialects.flybrowser_agent import AgentResponse, FlyBrowser, ReActAgent

__all__ = [
    "AgentResponse",
    "BaseTool",
    "FlyBrowser",
    "ModelCapability",
    "PageController",
    "ReActAgent",
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
    "extract": "extract_text",
    "get_content": "get_page_content",
}
"""Names that later versions gave to the browser tools. They work if no tool bears them itself."""

PageController = Any
"""What tools work on: Playwright's page, or whatever a registry was given in its place."""

log = logging.getLogger("toolcrib.flybrowser")
_CONTEXT = "_toolcrib_context"
"""The parameter in which a tool's context comes: no parameter of a tool is called that."""
_LENT: ContextVar[Any] = ContextVar("toolcrib_flybrowser_page", default=None)


def __getattr__(name: str) -> Any:
    """The browser is loaded when it is first asked for: who only wants the tools' words does without."""
    if name not in ("AgentResponse", "FlyBrowser", "ReActAgent"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from toolcrib.dialects import flybrowser_agent

    return getattr(flybrowser_agent, name)


class BaseTool(Executable):
    """A tool is a class: ``metadata`` says what it is, ``execute`` runs it, ``self.page`` is what it works on."""

    metadata: ToolMetadata

    def __init__(self, page_controller: PageController | None = None) -> None:
        self.page = page_controller

    @property
    def page(self) -> PageController:
        """What the tool was made for, or else the page of the call: in a browser the current tab."""
        own = vars(self).get("_page")
        return _LENT.get() if own is None else own

    @page.setter
    def page(self, page_controller: PageController) -> None:
        vars(self)["_page"] = page_controller

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
        return ToolResult.of_core(value if isinstance(value, CoreResult) else CoreResult.of(value))

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
        with _lent(kwargs.pop(_CONTEXT)):
            return await _ready(make()).execute(**kwargs)

    def run(**kwargs: Any) -> Any:
        with _lent(kwargs.pop(_CONTEXT)):
            return _ready(make()).execute(**kwargs)

    return running(spec, run_async if is_async_callable(cls.execute) else run, context_parameter=_CONTEXT)


@contextmanager
def _lent(context: ToolContext) -> Iterator[None]:
    """The page that the call brings is that of every tool without one of its own."""
    token = _LENT.set(context.values.get("page"))
    try:
        yield
    finally:
        _LENT.reset(token)


def _ready(tool: BaseTool) -> BaseTool:
    if tool.metadata.requires_page and tool.page is None:
        raise ToolFailedError(tool.metadata.name, "it works on a page and has none; give it a page_controller")
    return tool


class ToolRegistry:
    """Tool classes, made when they are asked for, and instances, as they are.

    ``page_controller`` is the page of the classes that :meth:`execute` makes. What is more dangerous than
    ``highest_safety_level`` runs only if ``approve(spec, params)`` says so. ``core`` is the registry beneath: one that
    is given has its tools here too, under its own rules.
    """

    def __init__(
        self,
        page_controller: PageController | None = None,
        *,
        highest_safety_level: SafetyLevel | str = SafetyLevel.HIGH_RISK,
        approve: Approve | None = None,
        core: CoreRegistry | None = None,
    ) -> None:
        self.page_controller = page_controller
        if core is None:
            core = CoreRegistry(highest_safety_level=highest_safety_level, approve=approve)
        self.core = core
        self._classes: dict[str, type[BaseTool]] = {}
        self._instances: dict[str, BaseTool] = {}

    def register(self, tool_class: type[BaseTool], *, replace: bool = False) -> None:
        """Add a class. ToolValidationError if it has no metadata, ToolExistsError if its name is taken.

        With ``replace`` it takes the place of the tool that has the name.
        """
        _check_class(tool_class)
        metadata = _metadata_of(tool_class)
        self.core.register(_core_tool(tool_class, metadata, lambda: self._made(tool_class)), replace=replace)
        self._instances.pop(metadata.name, None)
        self._classes[metadata.name] = tool_class

    def register_instance(self, tool_instance: Any, *, replace: bool = False) -> None:
        """Add a tool that exists: one of these, or any other that Toolcrib knows."""
        tool = tool_instance if isinstance(tool_instance, BaseTool) else _OtherTool(as_tool(tool_instance))
        name = self.core.register(tool, replace=replace).name
        self._classes.pop(name, None)
        self._instances[name] = tool

    def get_tool(self, name: str, **kwargs: Any) -> BaseTool:
        """The tool: an instance as it is, a class made with ``kwargs``. ToolNotFoundError, a KeyError, for no tool."""
        name = self._resolved(name)
        if name in self._instances:
            return self._instances[name]
        if name in self._classes:
            return self._made(self._classes[name], **kwargs)
        return _OtherTool(self.core.get(name))

    def list_tools(self) -> list[str]:
        """The names, in order of registration."""
        return list(self.core.names())

    def get_by_category(self, category: ToolCategory | str) -> list[BaseTool]:
        """The tools of the category. Each of the browser's is in one of the six."""
        return [self.get_tool(tool.name) for tool in self.core if category_of(tool.spec) == category]

    def get_filtered_registry(
        self, capabilities: Iterable[ModelCapability | str], warn_suboptimal: bool = False
    ) -> ToolRegistry:
        """The tools that a model with these capabilities can use; ``core.left_out`` says why not the others.

        ``warn_suboptimal`` logs a warning for each tool that would work better with more.
        """
        filtered: ToolRegistry = copy(self)
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
        return ToolResult.of_core(await self.core.execute(self._resolved(name), params))

    async def execute_call(self, format: str, call: Any, *, context: ToolContext = NO_CONTEXT) -> Answer:
        """Run a call as a model makes it: the answer in its provider's words, with ``is_terminal`` and ``result``."""
        return await self.core.execute_call(format, call, context=context)

    async def execute_calls(self, message: Any, *, context: ToolContext = NO_CONTEXT) -> Answers:
        """Run the calls of a model's message: what is appended to the conversation, with ``is_terminal``."""
        return await self.core.execute_calls(message, context=context)

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
