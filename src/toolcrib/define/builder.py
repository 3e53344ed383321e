"""``create_tool()``: a tool step by step. ``build()`` checks every step and names what is wrong or missing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Self

from pydantic import BaseModel, TypeAdapter, ValidationError

from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError
from toolcrib.core.spec import ToolExample, ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define.annotations import Generator
from toolcrib.define.decoding import complaints, validated
from toolcrib.define.function import running, ways_to_run
from toolcrib.define.parameters import context_parameter

_log = logging.getLogger("toolcrib")

Schema = type[BaseModel] | Mapping[str, Any]


class ToolBuilder:
    """The steps may come in any order; ``name``, ``description``, ``schema`` and ``implement`` are required."""

    required: tuple[str, ...] = ("name", "description", "schema", "implement")

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._examples: list[Any] = []
        self._schema: Schema | None = None
        self._function: Callable[..., Any] | None = None

    def name(self, name: str) -> Self:
        return self._set("name", name)

    def display_name(self, display_name: str) -> Self:
        return self._set("display_name", display_name)

    def description(self, description: str) -> Self:
        return self._set("description", description)

    def category(self, category: str) -> Self:
        return self._set("category", category)

    def tags(self, tags: Iterable[str]) -> Self:
        return self._set("tags", _listed(tags))

    def schema(self, schema: Schema) -> Self:
        """The arguments: a pydantic model, or a JSON Schema of an object."""
        self._schema = schema
        return self

    def example(self, example: ToolExample | Mapping[str, Any]) -> Self:
        self._examples.append(dict(example) if isinstance(example, Mapping) else example)
        return self

    def usage_notes(self, notes: str) -> Self:
        return self._set("usage_notes", notes)

    def limitations(self, limitations: Iterable[str]) -> Self:
        return self._set("limitations", _listed(limitations))

    def version(self, version: str) -> Self:
        return self._set("version", version)

    def author(self, author: str) -> Self:
        return self._set("author", author)

    def deprecated(self, replaced_by: str = "") -> Self:
        self._set("deprecated", True)
        return self._set("replaced_by", replaced_by)

    def timeout_seconds(self, seconds: float) -> Self:
        return self._set("timeout_seconds", seconds)

    def implement(self, function: Callable[..., Any]) -> Self:
        """The code: a function, sync or async, called with the arguments by name; a ToolContext is filled in."""
        self._function = function
        return self

    def build(self) -> Tool:
        """The tool, or ToolValidationError that names the step that is wrong or missing."""
        self._check_steps()
        assert self._schema is not None and self._function is not None
        name = str(self._fields["name"])
        given = {"parameters": _json_schema(self._schema, name), "examples": self._examples}
        spec = ToolSpec.parse(ways_to_run(self._function) | self._fields | given)
        self._check_spec(spec)
        decode = _ModelDecoder(self._schema, name) if isinstance(self._schema, type) else None
        context = context_parameter(self._function, name)
        return running(spec, self._function, context_parameter=context, decode=decode)

    def _check_steps(self) -> None:
        given = {step for step, value in self._fields.items() if value not in ("", None)}
        given |= {"schema"} if self._schema is not None else set()
        given |= {"implement"} if self._function is not None else set()
        for step in self.required:
            if step not in given:
                known = f" of tool {self._fields['name']!r}" if self._fields.get("name") else ""
                raise ToolValidationError(f"the builder{known} lacks .{step}(...); it is required before .build()")
        if not callable(self._function):
            raise ToolValidationError(f".implement() of tool {self._fields['name']!r} needs a function")

    def _check_spec(self, spec: ToolSpec) -> None:
        """What a stricter builder adds. Here: parameters that a model would have to guess are worth a warning."""
        for name, schema in spec.parameters.get("properties", {}).items():
            if not (isinstance(schema, dict) and schema.get("description")):
                _log.warning("parameter %r of tool %r has no description", name, spec.name)

    def _set(self, field: str, value: Any) -> Self:
        self._fields[field] = value
        return self


def create_tool() -> ToolBuilder:
    return ToolBuilder()


def _listed(given: Any) -> Any:
    """A text alone as a list of one; what is neither stays as it is, to be refused with the tool's name."""
    return [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else given


def _json_schema(schema: Schema, tool: str) -> dict[str, Any]:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema(schema_generator=Generator)
    if isinstance(schema, Mapping):
        return dict(schema)
    raise ToolValidationError(f".schema() of tool {tool!r} needs a pydantic model or a JSON Schema, not {schema!r:.60}")


class _ModelDecoder:
    """Runs a pydantic model's own validators, and calls the function with its typed values by name."""

    def __init__(self, model: type[BaseModel], tool: str) -> None:
        self._model = model
        self._tool = tool

    @property
    def typed(self) -> Collection[str]:
        """The arguments whose values are made here with all that is in them, defaults too."""
        return set(_json_schema(self._model, self._tool).get("properties", ()))

    @cached_property
    def _adapter(self) -> TypeAdapter[BaseModel]:
        return TypeAdapter(self._model)

    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            model = validated(self._adapter, arguments, self._tool)
        except ValidationError as error:
            raise InvalidArgumentsError.of(complaints(error, self._tool, given=arguments), tool=self._tool) from None
        return {name: getattr(model, name) for name in type(model).model_fields} | (model.model_extra or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._model, self._tool)
