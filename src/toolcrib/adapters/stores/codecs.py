"""How a tool stands in a catalogue file: one entry of the list, to and from the stored document."""

from __future__ import annotations

from typing import Any, Protocol

from toolcrib.core.spec import ToolSpec
from toolcrib.formats.toolmetadata import ToolMetadata


class Codec(Protocol):
    def encode(self, document: dict[str, Any]) -> dict[str, Any]:
        """The entry for a document."""
        ...

    def decode(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The document of an entry, every field present. Raises ToolValidationError if the entry is wrong."""
        ...


class SpecCodec:
    """An entry is a :class:`ToolSpec` without the fields that have their default."""

    def __init__(self) -> None:
        self._defaults = ToolSpec(name="x", description="x").to_dict()
        del self._defaults["name"], self._defaults["description"]

    def encode(self, document: dict[str, Any]) -> dict[str, Any]:
        missing = object()
        return {field: value for field, value in document.items() if self._defaults.get(field, missing) != value}

    def decode(self, entry: dict[str, Any]) -> dict[str, Any]:
        return ToolSpec.parse(entry).to_dict()


class MetadataCodec:
    """An entry is a :class:`ToolMetadata`, every field written out."""

    def encode(self, document: dict[str, Any]) -> dict[str, Any]:
        return ToolMetadata.from_spec(ToolSpec.parse(document)).model_dump()

    def decode(self, entry: dict[str, Any]) -> dict[str, Any]:
        return ToolMetadata.parse(entry).to_spec().to_dict()
