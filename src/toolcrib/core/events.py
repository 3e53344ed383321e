"""What a registry tells those who listen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from toolcrib.core.tool import Tool

EventName = Literal["tool:registered", "tool:updated", "tool:removed", "registry:cleared"]


@dataclass(frozen=True, slots=True)
class ToolRegistered:
    event: ClassVar[EventName] = "tool:registered"
    tool: Tool


@dataclass(frozen=True, slots=True)
class ToolUpdated:
    event: ClassVar[EventName] = "tool:updated"
    name: str
    tool: Tool
    previous: Tool


@dataclass(frozen=True, slots=True)
class ToolRemoved:
    event: ClassVar[EventName] = "tool:removed"
    tool: Tool


@dataclass(frozen=True, slots=True)
class RegistryCleared:
    event: ClassVar[EventName] = "registry:cleared"


RegistryEvent = ToolRegistered | ToolUpdated | ToolRemoved | RegistryCleared
EVENT_NAMES: tuple[EventName, ...] = ("tool:registered", "tool:updated", "tool:removed", "registry:cleared")
