"""What an AgentForge tool says of itself, to and from ToolSpec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolExample, ToolSpec
from toolcrib.dialects.fields import as_word, fields_of


class ToolCategory(StrEnum):
    FILE_SYSTEM = "file-system"
    WEB = "web"
    CODE = "code"
    DATABASE = "database"
    API = "api"
    UTILITY = "utility"
    CUSTOM = "custom"


def check_examples(examples: Iterable[ToolExample | Mapping[str, Any]], tool: str) -> None:
    """Each says what it shows and with which input; ToolValidationError names one that does not."""
    for number, example in enumerate(examples, 1):
        given = example.model_dump(exclude_unset=True) if isinstance(example, ToolExample) else example
        if not isinstance(given, Mapping):
            raise ToolValidationError(f"the examples of tool {tool!r}: number {number} is no object, but {given!r:.60}")
        missing = [repr(name) for name in ("description", "input") if given.get(name) in (None, "")]
        if missing:
            lacks = " and ".join(missing)
            raise ToolValidationError(f"the examples of tool {tool!r}: number {number} lacks its {lacks}")


@dataclass(frozen=True)
class ToolMetadata:
    """What a tool says of itself. Text that is absent is None; an empty one counts as absent."""

    name: str
    description: str
    category: ToolCategory | str
    display_name: str | None = None
    tags: list[str] = field(default_factory=list)
    examples: list[ToolExample] = field(default_factory=list)
    usage_notes: str | None = None
    limitations: list[str] = field(default_factory=list)
    version: str | None = None
    author: str | None = None
    deprecated: bool = False
    replaced_by: str | None = None

    def __post_init__(self) -> None:
        for name in ("display_name", "usage_notes", "version", "author", "replaced_by"):
            object.__setattr__(self, name, getattr(self, name) or None)
        object.__setattr__(self, "category", as_word(ToolCategory, self.category))
        given: list[Any] = list(self.examples)  # a caller may well give mappings
        check_examples((example for example in given if not isinstance(example, ToolExample)), self.name)
        object.__setattr__(self, "examples", [ToolExample.model_validate(example) for example in self.examples])

    def to_spec(self, **fields: Any) -> ToolSpec:
        """A spec of this and whatever other fields are given, such as ``parameters``."""
        own = {name: value for name, value in vars(self).items() if value is not None}
        return ToolSpec.parse({**fields, **own, "category": str(self.category)})

    @classmethod
    def from_spec(cls, spec: ToolSpec) -> Self:
        return cls(**fields_of(spec, cls.__dataclass_fields__))
