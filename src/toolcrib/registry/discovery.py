"""Finding tools that others wrote: packages that declare entry points, and folders of Python files.

Entry points come first, and the first tool of a name wins. What is found in a folder is what is on disk now, see
:mod:`toolcrib.registry.plugin_files`.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from toolcrib.core.tool import Tool
from toolcrib.define import SupportsTool, has_tool_methods
from toolcrib.frameworks import framework_of, tools_of
from toolcrib.registry.plugin_files import import_plugin, opened, plugin_files

GROUPS = ("toolcrib.tools", "aiwhisperer.tools")

_log = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Found:
    """A tool, the object it was made from, and where that came from."""

    source: str
    thing: Any
    tool: Tool


@dataclass(frozen=True, slots=True)
class Problem:
    source: str
    reason: str


def _warn(what: str, reason: str) -> None:
    _log.warning("plugin %s was left out: %s", what, reason)


@dataclass(slots=True)
class Discovery:
    """What a search for plugins found, and what stood in its way."""

    found: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warn: Callable[[str, str], None] = _warn
    """Tells of what was left out, and why."""

    def note_problem(self, source: str, reason: str, part: str = "") -> None:
        """Of a plugin, or of a ``part`` of it."""
        self.warn(f"{part} of {source}" if part else source, reason)
        self.problems.append(Problem(source, reason))

    def note_duplicate(self, found: Found) -> None:
        self.note_problem(found.source, f"a tool called {found.tool.name!r} is registered already; the first one wins")


def has_plugins(groups: Iterable[str] = GROUPS, folders: Iterable[str | Path] = ()) -> bool:
    """Whether there is anything that :func:`find_plugins` would load. Nothing is loaded for that."""
    return any(importlib.metadata.entry_points(group=group) for group in groups) or any(
        plugin_files(folder) for folder in map(Path, folders)
    )


def find_plugins(
    groups: Iterable[str] = GROUPS,
    folders: Iterable[str | Path] = (),
    warn: Callable[[str, str], None] = _warn,
) -> Discovery:
    """Load every plugin; one that breaks is noted and stops nobody else."""
    discovery = Discovery(warn=warn)
    for group in groups:
        for entry in sorted(importlib.metadata.entry_points(group=group), key=lambda entry: entry.name):
            source = f"{entry.name!r} ({group}: {entry.value})"
            _collect(discovery, source, entry.load)
    for folder in map(Path, folders):
        if not folder.is_dir():
            discovery.note_problem(str(folder), "it is not a folder")
            continue
        beside = opened(folder)
        for path in plugin_files(folder):
            _collect(discovery, str(path), lambda path=path, beside=beside: import_plugin(path, beside))
    return discovery


def _collect(discovery: Discovery, source: str, load: Any) -> None:
    try:
        candidates = list(things_in(load()))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin is somebody else's code
        discovery.note_problem(source, f"{type(error).__name__}: {error}")
        return
    seen = {id(found.thing) for found in discovery.found}  # what a file has from the one beside it
    for candidate in candidates:
        if id(candidate) in seen:
            continue
        try:
            thing = candidate() if isinstance(candidate, type) and issubclass(candidate, SupportsTool) else candidate
            found = tools_of(thing)
            discovery.found += [Found(source, thing, tool) for tool in (found if isinstance(found, list) else [found])]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - and so is each tool in it
            part = repr(candidate) if isinstance(candidate, type) else ""
            discovery.note_problem(source, f"{type(error).__name__}: {error}", part)


def things_in(loaded: Any) -> Iterator[Any]:
    """The tools that a plugin's object stands for: itself, its members, or what its module defines."""
    if isinstance(loaded, ModuleType):
        yield from _defined_in(loaded)
    elif isinstance(loaded, list | tuple | set):
        for member in loaded:
            yield from things_in(member)
    else:
        yield loaded


def _defined_in(module: ModuleType) -> Iterator[Any]:
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    instances_of = {type(value) for value in public.values()}
    for value in public.values():
        if isinstance(value, type):
            own = value.__module__ == module.__name__ and not inspect.isabstract(value)
            if own and issubclass(value, SupportsTool) and value not in instances_of:
                yield value
        elif issubclass(type(value), Tool | SupportsTool) or has_tool_methods(type(value)) or framework_of(value):
            yield value
