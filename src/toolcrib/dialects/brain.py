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
from typing import Any, TypeVar

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

__all__ = [
    "StoreError", "ToolExistsError", "ToolMetadata", "ToolNotFoundError", "ToolRegistry",
    "ToolValidationError", "add_tool", "check_compatibility", "find_compatible_tools", "get_tool",
    "get_tools_by_capability", "list_tools", "remove_tool",
]  # fmt: skip

_Metadata = ToolMetadata | Mapping[str, Any]


class ToolRegistry:
    """The tools in a ``tools.json``. Several programs may use the file at once; an answer is what the file says now.

    The design has two words for some arguments: ``tool_spec``, ``tool_id`` and ``tool_ids`` are the same as
    ``metadata``, ``name`` and ``names``.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Without a ``path``, the file that the settings name: ``~/.thebrain/config/tools.json``."""
        self.path = Path(path if path is not None else load_settings().brain_file).expanduser()
        self._store = open_store(file_url("brain", self.path), may_make_folder=True)
        self._read: tuple[object, StackingIndex] | None = None

    def add_tool(
        self, metadata: _Metadata | None = None, replace: bool = True, *, tool_spec: _Metadata | None = None
    ) -> ToolMetadata:
        """Add a tool, or replace the one of that name, and return its checked metadata.

        Raises ToolValidationError that names a wrong field; with ``replace=False`` ToolExistsError if there is one.
        """
        checked = ToolMetadata.parse(_given("add_tool", metadata=metadata, tool_spec=tool_spec))
        self._store.commit([Change(checked.name, checked.to_spec().to_dict(), expected=ANY if replace else None)])
        return checked

    def get_tool(self, name: str | None = None, *, tool_id: str | None = None) -> ToolMetadata | None:
        """The metadata of the tool called ``name``, or None if there is none."""
        record = self._store.get(_given("get_tool", name=name, tool_id=tool_id))
        return None if record is None else ToolMetadata.from_spec(ToolSpec.parse(record.document))

    def list_tools(self, tool_type: str | None = None, capability: str | None = None) -> list[ToolMetadata]:
        """The tools by name, of one type or with one capability if those are given."""
        return [
            _answer(spec)
            for spec in self._tools()
            if tool_type in (None, spec.tool_type) and (capability is None or capability in spec.capabilities)
        ]

    def get_tools_by_capability(self, capability: str) -> list[ToolMetadata]:
        """The tools by name that have one capability."""
        return self.list_tools(capability=capability)

    def remove_tool(self, name: str | None = None, *, tool_id: str | None = None) -> bool:
        """Remove a tool; whether there was one of that name."""
        try:
            self._store.commit([Change(_given("remove_tool", name=name, tool_id=tool_id), None)])
        except ToolNotFoundError:
            return False
        return True

    def check_compatibility(
        self, names: Iterable[str] | None = None, *, tool_ids: Iterable[str] | None = None, strict: bool = False
    ) -> bool:
        """Whether all of the tools stack; ToolNotFoundError names one that is not there.

        With ``strict`` a tool that lists what it accepts accepts nothing else.
        """
        wanted = _given("check_compatibility", names=names, tool_ids=tool_ids)
        return self.explain_compatibility(wanted, strict=strict).compatible

    def explain_compatibility(
        self, names: Iterable[str] | None = None, *, tool_ids: Iterable[str] | None = None, strict: bool = False
    ) -> stacking.StackReport:
        """The verdict on every pair, with its rule and reason."""
        names = _given("explain_compatibility", names=names, tool_ids=tool_ids)
        if isinstance(names, str):
            raise ToolValidationError(f"compatibility is asked of a list of names, not of the text {names!r}")
        tools = {spec.name: spec for spec in self._tools()}
        wanted = list(names)
        missing = next((name for name in wanted if name not in tools), None)
        if missing is not None:
            raise ToolNotFoundError(missing, tools)
        return stacking.check([tools[name] for name in wanted], strict=strict)

    def find_compatible_tools(
        self,
        name: str | None = None,
        target_type: str | None = None,
        *,
        tool_id: str | None = None,
        strict: bool = False,
    ) -> list[ToolMetadata]:
        """Every tool that stacks with ``name``, of ``target_type`` if that is given.

        Raises ToolNotFoundError if there is no tool of that name.
        """
        wanted = _given("find_compatible_tools", name=name, tool_id=tool_id)
        return [_answer(spec) for spec in self._tools().find(wanted, target_type=target_type, strict=strict)]

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


def add_tool(
    metadata: _Metadata | None = None, replace: bool = True, *, tool_spec: _Metadata | None = None
) -> ToolMetadata:
    """``ToolRegistry().add_tool(...)``: add a tool to the default file, or replace the one of that name."""
    return ToolRegistry().add_tool(metadata, replace, tool_spec=tool_spec)


def get_tool(name: str | None = None, *, tool_id: str | None = None) -> ToolMetadata | None:
    """``ToolRegistry().get_tool(...)``: the tool of that name in the default file, or None."""
    return ToolRegistry().get_tool(name, tool_id=tool_id)


def list_tools(tool_type: str | None = None, capability: str | None = None) -> list[ToolMetadata]:
    """``ToolRegistry().list_tools(...)``: the tools in the default file, of one type or with one capability."""
    return ToolRegistry().list_tools(tool_type, capability)


def remove_tool(name: str | None = None, *, tool_id: str | None = None) -> bool:
    """``ToolRegistry().remove_tool(...)``: remove a tool from the default file; whether there was one."""
    return ToolRegistry().remove_tool(name, tool_id=tool_id)


def check_compatibility(
    names: Iterable[str] | None = None, *, tool_ids: Iterable[str] | None = None, strict: bool = False
) -> bool:
    """``ToolRegistry().check_compatibility(...)``: whether tools of the default file stack."""
    return ToolRegistry().check_compatibility(names, tool_ids=tool_ids, strict=strict)


def find_compatible_tools(
    name: str | None = None, target_type: str | None = None, *, tool_id: str | None = None, strict: bool = False
) -> list[ToolMetadata]:
    """``ToolRegistry().find_compatible_tools(...)``: the tools of the default file that stack with one."""
    return ToolRegistry().find_compatible_tools(name, target_type, tool_id=tool_id, strict=strict)


def get_tools_by_capability(capability: str) -> list[ToolMetadata]:
    """``ToolRegistry().get_tools_by_capability(...)``: the tools of the default file that have one capability."""
    return ToolRegistry().get_tools_by_capability(capability)


_Given = TypeVar("_Given")


def _given(method: str, **words: _Given | None) -> _Given:
    """The one argument that was given, of the words for it; TypeError as Python raises it, if it is none or several."""
    given = [value for value in words.values() if value is not None]
    if len(given) != 1:
        told = "not both" if given else "which is missing"
        raise TypeError(f"{method}() takes {' or '.join(map(repr, words))}, {told}")
    return given[0]


def _answer(spec: ToolSpec) -> ToolMetadata:
    """Metadata of its own for a caller, who may change it. What comes from the file has been checked already."""
    fields = fields_of(spec, ToolMetadata.model_fields)
    return ToolMetadata.model_construct(None, **{**fields, "metadata": ToolMetadata.metadata_of(spec)})
