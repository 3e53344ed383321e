"""What an AgentForge tool says of itself, to and from ToolSpec."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from toolcrib.core.spec import ToolExample, ToolSpec


class ToolCategory(StrEnum):
    FILE_SYSTEM = "file-system"
    WEB = "web"
    CODE = "code"
    DATABASE = "database"
    API = "api"
    UTILITY = "utility"
    CUSTOM = "custom"


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
        object.__setattr__(self, "category", _category(self.category))
        object.__setattr__(self, "examples", [ToolExample.model_validate(example) for example in self.examples])

    def to_spec(self, **fields: Any) -> ToolSpec:
        """A spec of this and whatever other fields are given, such as ``parameters``."""
        own = {name: value for name, value in vars(self).items() if value is not None}
        return ToolSpec.parse({**fields, **own, "category": str(self.category)})

    @classmethod
    def from_spec(cls, spec: ToolSpec) -> Self:
        return cls(
            name=spec.name,
            description=spec.description,
            category=spec.category,
            display_name=spec.display_name,
            tags=list(spec.tags),
            examples=list(spec.examples),
            usage_notes=spec.usage_notes,
            limitations=list(spec.limitations),
            version=spec.version,
            author=spec.author,
            deprecated=spec.deprecated,
            replaced_by=spec.replaced_by,
        )


def _category(category: str) -> ToolCategory | str:
    return ToolCategory(category) if category in list(ToolCategory) else category
