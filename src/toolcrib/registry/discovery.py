"""Finding tools that others wrote: packages that declare entry points, and folders of Python files.

Entry points come first, and the first tool of a name wins. A file is compiled anew every time, never taken from a
bytecode cache, so what is found is what is on disk now.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
import logging
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from toolcrib.core.tool import Tool
from toolcrib.define import SupportsTool, has_tool_methods
from toolcrib.frameworks import framework_of, tools_of

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


@dataclass(slots=True)
class Discovery:
    """What a search for plugins found, and what stood in its way."""

    found: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def note_problem(self, source: str, reason: str) -> None:
        _log.warning("plugin %s was left out: %s", source, reason)
        self.problems.append(Problem(source, reason))

    def note_duplicate(self, found: Found) -> None:
        self.note_problem(found.source, f"a tool called {found.tool.name!r} is registered already; the first one wins")


def find_plugins(groups: Iterable[str] = GROUPS, folders: Iterable[str | Path] = ()) -> Discovery:
    """Load every plugin; one that breaks is noted and stops nobody else."""
    discovery = Discovery()
    for group in groups:
        for entry in sorted(importlib.metadata.entry_points(group=group), key=lambda entry: entry.name):
            source = f"{entry.name!r} ({group}: {entry.value})"
            _collect(discovery, source, entry.load)
    for folder in map(Path, folders):
        if not folder.is_dir():
            discovery.note_problem(str(folder), "it is not a folder")
            continue
        for path in _plugin_files(folder):
            _collect(discovery, str(path), lambda path=path: import_file(path))
    return discovery


def _collect(discovery: Discovery, source: str, load: Any) -> None:
    try:
        candidates = list(things_in(load()))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin is somebody else's code
        discovery.note_problem(source, f"{type(error).__name__}: {error}")
        return
    for candidate in candidates:
        try:
            thing = candidate() if isinstance(candidate, type) and issubclass(candidate, SupportsTool) else candidate
            found = tools_of(thing)
            discovery.found += [Found(source, thing, tool) for tool in (found if isinstance(found, list) else [found])]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - and so is each tool in it
            discovery.note_problem(source, f"{type(error).__name__}: {error}")


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


def _plugin_files(folder: Path) -> list[Path]:
    files = [path for path in folder.glob("*.py") if not path.name.startswith("_")]
    packages = [path for path in folder.glob("*/__init__.py") if not path.parent.name.startswith((".", "_"))]
    return sorted([*files, *packages])


class _FreshLoader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def import_file(path: Path) -> ModuleType:
    """The module that a file is, read anew each time."""
    is_package = path.name == "__init__.py"
    stem = path.parent.name if is_package else path.stem
    name = f"toolcrib_plugin_{sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{stem}"
    for known in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
        del sys.modules[known]
    spec = importlib.util.spec_from_file_location(
        name,
        path,
        loader=_FreshLoader(name, str(path)),
        submodule_search_locations=[str(path.parent)] if is_package else None,
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
