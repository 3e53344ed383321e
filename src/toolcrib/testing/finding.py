"""The registries whose tools are tested, named as ``package.module``, ``package.module:registry`` or ``tools.py``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from toolcrib.core.errors import ToolcribError, ToolValidationError, did_you_mean
from toolcrib.core.tool import Tool
from toolcrib.frameworks import tools_of
from toolcrib.registry import ToolRegistry
from toolcrib.registry.discovery import things_in
from toolcrib.registry.plugin_files import import_file


def find_registries(reference: str, folder: Path | None = None) -> list[ToolRegistry]:
    """What ``reference`` names: a registry, a tool or a list of tools; of a module its registries and its other tools.

    Modules and files are looked for in ``folder`` too, which stays on the path: a tool may import when it runs.
    Raises ToolValidationError if it cannot be imported or holds no tools.
    """
    folder = folder or Path.cwd()
    name, _, attribute = reference.partition(":") if not (folder / reference).exists() else (reference, "", "")
    module = _imported(name, folder)
    if attribute:
        return [_registry_of(_attribute(module, name, attribute), reference)]
    registries = [each for each in _distinct(vars(module).values()) if isinstance(each, ToolRegistry)]
    kept = {tool.spec.digest for registry in registries for tool in registry}
    # A class is there to be made, and whoever has a registry has made it for that.
    things = [thing for thing in _distinct(things_in(module)) if not (registries and isinstance(thing, type))]
    others = [tool for tool in _tools_of(things, reference) if tool.spec.digest not in kept]
    if others:
        registries.append(_registry_of(others, reference))
    if not registries:
        raise ToolValidationError(f"{reference!r} has no tools; name the registry, as in {name}:registry")
    return registries


def _imported(name: str, folder: Path) -> ModuleType:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        if not (path := folder / name).is_file():
            raise ToolValidationError(f"{name!r} is not a file")
        return import_file(path)
    except ToolcribError:
        raise
    except (Exception, SystemExit) as error:  # somebody else's module may raise anything
        raise ToolValidationError(f"{name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _attribute(module: ModuleType, name: str, attribute: str) -> Any:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ToolValidationError(f"{name!r} has no {attribute!r}{did_you_mean(attribute, vars(module))}")
        found = getattr(found, part)
    return found


def _registry_of(thing: Any, reference: str) -> ToolRegistry:
    if isinstance(thing, ToolRegistry):
        return thing
    try:
        return ToolRegistry(thing if isinstance(thing, list | tuple | set) else [thing])
    except ToolcribError as error:
        raise ToolValidationError(f"{reference!r}: {error}") from error


def _tools_of(things: list[Any], reference: str) -> list[Tool]:
    tools: list[Tool] = []
    for thing in things:
        try:
            found = tools_of(thing)
        except ToolcribError as error:
            raise ToolValidationError(f"{reference!r}: {error}") from error
        tools += found if isinstance(found, list) else [found]
    return tools


def _distinct(things: Any) -> list[Any]:
    return list({id(thing): thing for thing in things}.values())
