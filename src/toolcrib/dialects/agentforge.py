"""AgentForge's words: the fluent ``create_tool()``, rich metadata, events and prompts.

tool = (
    create_tool()
    .name("read-file")
    .description("Read the contents of a file")
    .category(ToolCategory.FILE_SYSTEM)
    .schema(ReadFileInput)
    .implement(read_file)
    .build()
)
await tool.execute({"path": "./README.md"})
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_core import to_jsonable_python
from typing_extensions import Unpack

from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import (
    InvalidArgumentsError,
    ToolcribError,
    ToolExistsError,
    ToolFailedError,
    ToolNotFoundError,
    ToolValidationError,
)
from toolcrib.core.names import check_kebab_name
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolExample, ToolSpec
from toolcrib.core.tool import Tool as CoreTool
from toolcrib.define import as_tool
from toolcrib.define.builder import Schema
from toolcrib.define.builder import ToolBuilder as CoreBuilder
from toolcrib.dialects.agentforge_events import EventHandler, RegistryEvent, Updated, adapted
from toolcrib.dialects.agentforge_metadata import ToolCategory, ToolMetadata, check_examples
from toolcrib.dialects.agentforge_prompt import PromptOptions, complete
from toolcrib.frameworks import Execute, to_structured_tool
from toolcrib.registry import ToolRegistry as CoreRegistry

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

__all__ = [
    "EventHandler",
    "InvalidInputError",
    "PromptOptions",
    "RegistryEvent",
    "Tool",
    "ToolBuilder",
    "ToolCategory",
    "ToolExample",
    "ToolExecutionError",
    "ToolExistsError",
    "ToolMetadata",
    "ToolRegistry",
    "ToolValidationError",
    "Updated",
    "create_tool",
]

_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
)


class ToolExecutionError(ToolFailedError):
    """The input was right, but the tool failed or passed its deadline; ``__cause__`` is what happened."""

    @classmethod
    def of(cls, name: str, message: str) -> Self:
        """What the core says, in these words. Which tool it was is said once."""
        error = cls(name, message.removeprefix(f"tool {name!r} failed: "))
        if repr(name) in message:
            error.args = (message,)
        return error


class InvalidInputError(InvalidArgumentsError, ToolValidationError):
    """Wrong input is a ToolValidationError in these words, and an InvalidArgumentsError in the core's."""


class Tool(CoreTool):
    """A core tool that answers in these words; ``schema`` is the model or JSON Schema it was built with."""

    __slots__ = ("schema",)

    def __init__(self, *args: Any, schema: Schema | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.schema: Schema = self.spec.parameters if schema is None else schema

    @classmethod
    def of(cls, thing: Any, schema: Schema | None = None) -> Tool:
        """Anything that is a tool, as one of these."""
        tool = as_tool(thing)
        if isinstance(tool, Tool):
            return tool
        return cls(
            tool.spec,
            tool.function,
            tool.runner,
            context_parameter=tool.context_parameter,
            decode=tool.decode,
            schema=schema,
        )

    @property
    def metadata(self) -> ToolMetadata:
        return ToolMetadata.from_spec(self.spec)

    async def execute(
        self, arguments: Mapping[str, Any] | BaseModel | None = None, *, context: ToolContext = NO_CONTEXT
    ) -> Any:
        """Run with this input: names and values, or an instance of the model that the schema is.

        Raises ToolValidationError if it is wrong, ToolExecutionError if it fails.
        """
        if isinstance(arguments, BaseModel):
            arguments = self._read(arguments)
        try:
            return await super().execute(arguments, context=context)
        except ToolcribError as error:
            if isinstance(error, InvalidArgumentsError) and error.tool == self.name:
                raise InvalidInputError(error.message, tool=error.tool, argument=error.argument) from error
            raise ToolExecutionError.of(self.name, error.message) from error.__cause__ or error

    def _read(self, given: BaseModel) -> dict[str, Any]:
        """What was given of a model's fields, as JSON under the names that its schema has."""
        if isinstance(self.schema, type) and not isinstance(given, self.schema):
            expected, found = self.schema.__name__, type(given).__name__
            raise InvalidInputError(f"{self.name!r} takes a {expected} or a mapping, not a {found}", tool=self.name)
        values = given.model_dump(by_alias=True, exclude_unset=True, round_trip=True, warnings="none")
        return cast(dict[str, Any], to_jsonable_python(_revealed(values), fallback=repr))

    def to_langchain_tool(self, execute: Execute | None = None) -> StructuredTool:
        """LangChain's StructuredTool. Needs the extra ``langchain``. ``execute`` runs it in another way than here."""
        return to_structured_tool(self, execute and self._translated(execute))

    def _translated(self, execute: Execute) -> Execute:
        async def run(arguments: dict[str, Any]) -> Any:
            result = await execute(arguments)
            if not isinstance(result, ToolResult) or result.success:
                return result
            if result.error_code == InvalidArgumentsError.code:
                raise InvalidInputError(
                    result.error or "", tool=self.name, argument=result.metadata.get("argument", "")
                )
            raise ToolExecutionError.of(self.name, result.error or "it gave no reason")

        return run


def _revealed(value: Any) -> Any:
    """With secrets as they are: in JSON pydantic shows stars instead of them."""
    if isinstance(value, SecretStr | SecretBytes):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {name: _revealed(inner) for name, inner in value.items()}
    return list(map(_revealed, value)) if isinstance(value, list | tuple | set | frozenset) else value


class ToolBuilder(CoreBuilder):
    """Stricter than the core's: a kebab-case name, a category, a semantic version."""

    required = ("name", "description", "category", "schema", "implement")

    def build(self) -> Tool:
        if "name" in self._fields:
            check_kebab_name(self._fields["name"])
            check_examples(self._examples, self._fields["name"])
        return Tool.of(super().build(), self._schema)

    def _check_spec(self, spec: ToolSpec) -> None:
        if spec.category not in list(ToolCategory):
            known = ", ".join(map(repr, map(str, ToolCategory)))
            raise ToolValidationError(f".category({spec.category!r}) of tool {spec.name!r} must be one of {known}")
        if spec.version and not _SEMVER.fullmatch(spec.version):
            raise ToolValidationError(
                f".version({spec.version!r}) of tool {spec.name!r} is not a semantic version such as '1.0.0'"
            )
        super()._check_spec(spec)


def create_tool() -> ToolBuilder:
    return ToolBuilder()


class ToolRegistry:
    """Tools by name, with events. ``core`` is the registry beneath, for instance for ``core.execute(name, input)``."""

    def __init__(self) -> None:
        self.core = CoreRegistry()

    def register(self, tool: Any) -> None:
        """Add a tool; ToolExistsError if the name is taken."""
        self.register_many([tool])

    def register_many(self, tools: Iterable[Any]) -> None:
        """Add all of them or, if one is wrong or a name is taken, none."""
        given = [Tool.of(tool) for tool in tools]
        try:
            self.core.register_many(given)
        except ToolExistsError as error:
            if not self.core.has(error.name):  # it is in the list twice
                raise
            raise ToolExistsError(error.name, "give one another name, or replace it with update(name, tool)") from None

    def get(self, name: str) -> Tool | None:
        return Tool.of(self.core.get(name)) if self.core.has(name) else None

    def has(self, name: str) -> bool:
        return self.core.has(name)

    def remove(self, name: str) -> bool:
        """Whether there was such a tool; now there is none."""
        return self.core.remove(name)

    def update(self, name: str, tool: Any) -> bool:
        """Whether there was such a tool to replace. One of another name is refused with ToolValidationError."""
        if not self.core.has(name):
            return False
        try:
            self.core.update(name, Tool.of(tool))
        except ToolNotFoundError:  # removed a moment ago by somebody else
            return False
        return True

    def get_all(self) -> list[Tool]:
        return list(map(Tool.of, self.core.get_all()))

    def get_by_category(self, category: ToolCategory | str) -> list[Tool]:
        return list(map(Tool.of, self.core.get_by_category(str(category))))

    def get_by_tag(self, tag: str) -> list[Tool]:
        return list(map(Tool.of, self.core.get_by_tag(tag)))

    def search(self, query: str) -> list[Tool]:
        """The tools whose name, tags, category or description hold every word, the best first."""
        return list(map(Tool.of, self.core.search(query)))

    def clear(self) -> None:
        self.core.clear()

    def to_langchain_tools(self) -> list[StructuredTool]:
        """LangChain's StructuredTools, run with the registry's checks. Needs the extra ``langchain``."""
        return [tool.to_langchain_tool(partial(self.core.execute, tool.name)) for tool in self.get_all()]

    def generate_prompt(self, options: PromptOptions | None = None, /, **more: Unpack[PromptOptions]) -> str:
        """The tools as text for a prompt; the options come as a mapping, by name, or both.

        They are those of :func:`toolcrib.formats.generate_prompt`, but usage notes come with the examples unless
        ``include_notes`` says otherwise.
        """
        return self.core.generate_prompt(**complete({**(options or {}), **more}))

    def on(self, event: RegistryEvent | str, handler: EventHandler) -> None:
        """Call ``handler`` at an event, with as much of it as the handler takes; one that raises harms nobody.

        ``tool:registered`` and ``tool:removed`` give the tool, ``tool:updated`` the name and the tool (one argument
        gets both, as ``update.name`` and ``update.tool``), ``registry:cleared`` nothing.
        """
        self.core.on(str(event), adapted(handler))

    def off(self, event: RegistryEvent | str, handler: EventHandler) -> None:
        """Stop calling the handler. One that was never there is a no-op."""
        self.core.off(str(event), adapted(handler))

    def __contains__(self, name: object) -> bool:
        return name in self.core

    def __len__(self) -> int:
        return len(self.core)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.get_all())
