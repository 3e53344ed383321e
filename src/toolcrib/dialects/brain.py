"""The Brain's own words: ``ToolMetadata``, and a ``ToolRegistry`` kept in a ``tools.json``.

    registry = ToolRegistry()                      # ~/.thebrain/config/tools.json
    registry.add_tool({"name": "playwright", ...})
    registry.check_compatibility(["playwright", "beautifulsoup4"])

The file is a JSON list of ToolMetadata. A file that is broken, or that holds a bad entry, is reported with its path and
the entry, and never written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolcrib.bootstrap import open_store
from toolcrib.core import stacking
from toolcrib.core.errors import StoreError, ToolExistsError, ToolNotFoundError, ToolValidationError
from toolcrib.core.query import parse
from toolcrib.core.spec import ToolSpec
from toolcrib.dialects.fields import fields_of
from toolcrib.formats.toolmetadata import ToolMetadata
from toolcrib.ports import ANY, Change
from toolcrib.settings import file_url, load_settings
from toolcrib.stacking import StackingIndex

__all__ = ["StoreError", "ToolExistsError", "ToolMetadata", "ToolNotFoundError", "ToolRegistry", "ToolValidationError"]


class ToolRegistry:
    """The tools in a ``tools.json``. Several programs may use the file at once; an answer is what the file says now."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Without a ``path``, the file that the settings name: ``~/.thebrain/config/tools.json``."""
        self.path = Path(path if path is not None else load_settings().brain_file).expanduser()
        self._store = open_store(file_url("brain", self.path), may_make_folder=True)
        self._read: tuple[object, StackingIndex] | None = None

    def add_tool(self, metadata: ToolMetadata | Mapping[str, Any], replace: bool = True) -> ToolMetadata:
        """Add a tool, or replace the one of that name; with ``replace=False`` ToolExistsError if there is one."""
        checked = ToolMetadata.parse(metadata)
        self._store.commit([Change(checked.name, checked.to_spec().to_dict(), expected=ANY if replace else None)])
        return checked

    def get_tool(self, name: str) -> ToolMetadata | None:
        record = self._store.get(name)
        return None if record is None else ToolMetadata.from_spec(ToolSpec.parse(record.document))

    def list_tools(self, tool_type: str | None = None, capability: str | None = None) -> list[ToolMetadata]:
        """The tools by name, of one type or with one capability if those are given."""
        return [
            _answer(spec)
            for spec in self._tools()
            if tool_type in (None, spec.tool_type) and (capability is None or capability in spec.capabilities)
        ]

    def get_tools_by_capability(self, capability: str) -> list[ToolMetadata]:
        return self.list_tools(capability=capability)

    def remove_tool(self, name: str) -> bool:
        """Whether there was such a tool; now there is none."""
        try:
            self._store.commit([Change(name, None)])
        except ToolNotFoundError:
            return False
        return True

    def check_compatibility(self, names: Iterable[str], *, strict: bool = False) -> bool:
        """Whether all of the tools stack; ToolNotFoundError names one that is not there."""
        return self.explain_compatibility(names, strict=strict).compatible

    def explain_compatibility(self, names: Iterable[str], *, strict: bool = False) -> stacking.StackReport:
        """The verdict on every pair, with its rule and reason."""
        if isinstance(names, str):
            raise ToolValidationError(f"compatibility is asked of a list of names, not of the text {names!r}")
        tools = {spec.name: spec for spec in self._tools()}
        wanted = list(names)
        missing = next((name for name in wanted if name not in tools), None)
        if missing is not None:
            raise ToolNotFoundError(missing, tools)
        return stacking.check([tools[name] for name in wanted], strict=strict)

    def find_compatible_tools(
        self, name: str, target_type: str | None = None, *, strict: bool = False
    ) -> list[ToolMetadata]:
        """Every tool that stacks with ``name``, of ``target_type`` if that is given."""
        return [_answer(spec) for spec in self._tools().find(name, target_type=target_type, strict=strict)]

    def _tools(self) -> StackingIndex:
        """The file's tools, read again only if the file has changed."""
        seen = self._store.generation()
        if self._read is None or self._read[0] != seen:
            records = self._store.query(parse({}))
            self._read = (seen, StackingIndex(ToolSpec.parse(record.document) for record in records))
        return self._read[1]

    def __len__(self) -> int:
        return len(self._tools())

    def __contains__(self, name: object) -> bool:
        return name in self._tools()

    def __repr__(self) -> str:
        return f"<ToolRegistry in {str(self.path)!r}>"


def _answer(spec: ToolSpec) -> ToolMetadata:
    """Metadata of its own for a caller, who may change it. What comes from the file has been checked already."""
    return ToolMetadata.model_construct(None, **fields_of(spec, ToolMetadata.model_fields))
