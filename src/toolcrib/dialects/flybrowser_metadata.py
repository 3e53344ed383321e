"""What a FlyBrowser tool says of itself, to and from ToolSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Self

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import copied
from toolcrib.core.safety import ModelCapability, SafetyLevel
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolExample, ToolSpec
from toolcrib.dialects.fields import as_word, fields_of


class ToolCategory(str, Enum):
    NAVIGATION = "navigation"
    INTERACTION = "interaction"
    EXTRACTION = "extraction"
    FORM = "form"
    SYSTEM = "system"
    UTILITY = "utility"

    def __str__(self) -> str:
        return self.value


_BROWSER_CATEGORIES = {"session": ToolCategory.SYSTEM, "search": ToolCategory.UTILITY}
"""Of the browser's tools, those that FlyBrowser does not have."""


def category_of(spec: ToolSpec) -> ToolCategory | str:
    """One of the six for every tool of the browser; a word of somebody's own stays as it is."""
    if spec.tool_type == "browser" and spec.category in _BROWSER_CATEGORIES:
        return _BROWSER_CATEGORIES[spec.category]
    return as_word(ToolCategory, spec.category)


@dataclass
class ToolParameter:
    """One parameter. ``type`` is JSON Schema's word; a ``default`` of None is no default."""

    name: str
    type: str
    description: str = ""
    required: bool = False
    default: Any = None
    enum: list[Any] | None = None
    items_type: str | None = None

    def to_json_schema(self) -> JsonSchema:
        said = {
            "description": self.description or None,
            "default": copied(self.default),
            "enum": None if self.enum is None else list(self.enum),
            "items": None if self.items_type is None else {"type": self.items_type},
        }
        return {"type": self.type, **{key: value for key, value in said.items() if value is not None}}

    @classmethod
    def from_json_schema(cls, name: str, schema: Any, required: bool) -> Self:
        """The nearest that a ToolParameter can say."""
        given: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
        items = given.get("items")
        return cls(
            name=name,
            type=given["type"] if isinstance(given.get("type"), str) else "",
            description=given.get("description", ""),
            required=required,
            default=copied(given.get("default")),
            enum=copied(given.get("enum")),
            items_type=items.get("type") if isinstance(items, Mapping) else None,
        )


@dataclass
class ToolMetadata:
    """The fields in FlyBrowser's order; all but the first two have a default.

    ``json_schema`` stands in for ``parameters`` if a tool from elsewhere has a schema that they cannot express.
    """

    name: str
    description: str
    category: ToolCategory | str = ToolCategory.UTILITY
    safety_level: SafetyLevel = SafetyLevel.SAFE
    parameters: list[ToolParameter] = field(default_factory=list)
    returns_description: str = ""
    examples: list[str] = field(default_factory=list)
    requires_page: bool = False
    timeout_seconds: float | None = 30.0
    is_terminal: bool = False
    required_capabilities: list[ModelCapability] = field(default_factory=list)
    optimal_capabilities: list[ModelCapability] = field(default_factory=list)
    json_schema: JsonSchema | None = field(default=None, kw_only=True, repr=False)

    def to_json_schema(self) -> JsonSchema:
        """The parameters as a JSON Schema; a new one each time."""
        if self.json_schema is not None:
            schema: JsonSchema = copied(self.json_schema)
            return schema
        return {
            "type": "object",
            "properties": {parameter.name: parameter.to_json_schema() for parameter in self.parameters},
            "required": [parameter.name for parameter in self.parameters if parameter.required],
        }

    def to_spec(self) -> ToolSpec:
        """The tool as a spec; ToolValidationError names what is wrong."""
        names = [parameter.name for parameter in self.parameters]
        for name in names:
            if names.count(name) > 1:
                raise ToolValidationError(f"tool {self.name!r} has two parameters called {name!r}")
        own = {name: getattr(self, name) for name in _IN_BOTH}
        own |= {name: [_text(each) for each in own[name]] for name in _CAPABILITIES}
        examples = [ToolExample(call=call) for call in self.examples]
        rest = {"category": _text(self.category), "parameters": self.to_json_schema(), "examples": examples}
        return ToolSpec.parse(own | rest)

    @classmethod
    def from_spec(cls, spec: ToolSpec) -> Self:
        """What these fields can hold of a spec."""
        properties = spec.parameters.get("properties", {})
        required = spec.parameters.get("required", ())
        own = fields_of(spec, _IN_BOTH)
        own |= {name: [as_word(ModelCapability, each) for each in own[name]] for name in _CAPABILITIES}
        metadata = cls(
            **own,
            category=category_of(spec),
            parameters=[
                ToolParameter.from_json_schema(name, schema, name in required) for name, schema in properties.items()
            ],
            examples=[_call(spec.name, example) for example in spec.examples],
        )
        if metadata.to_json_schema() != spec.parameters:
            metadata.json_schema = copied(spec.parameters)
        return metadata


_CAPABILITIES = ("required_capabilities", "optimal_capabilities")
_ELSEWHERE = {"category", "parameters", "examples", "json_schema"}
_IN_BOTH = tuple(each.name for each in fields(ToolMetadata) if each.name not in _ELSEWHERE)
"""The fields that a spec holds under the same name and in the same shape."""


def _text(word: str) -> str:
    return word.value if isinstance(word, Enum) else word


def _call(name: str, example: ToolExample) -> str:
    if example.call:
        return example.call
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in example.input.items())})"
