"""Files of a folder as modules: read anew each time, and each finds the files that lie beside it.

A module bears a name of its own, made of its path, and ``import helpers`` in it is compiled as an import of the
``helpers.py`` beside it under that one's name. So two folders may each have a ``helpers.py``, nothing goes onto
``sys.path``, and no bytecode cache is asked or written. What lies beside comes first, but what the standard library
has, and a module that a file is called after itself, such as the ``requests`` of a ``requests.py``, comes from outside.

A tool that runs in a process of its own takes along what its file has imported at the top; there is no folder there.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_PREFIX = "toolcrib_plugin_"
_PACKAGE = "__init__.py"


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    beside: Path | None
    """The folder whose files it finds; None if it looks for everything on ``sys.path``."""


_known: dict[str, _File] = {}
"""The files that have been asked for, by the names of their modules."""


def import_file(path: Path, *, beside: Path | None = None) -> ModuleType:
    """The module that a file is, read anew; it finds the files of the folder ``beside`` if that is given."""
    name = _name(path, beside)
    _forget(name)
    return importlib.import_module(name)


def plugin_files(folder: Path) -> list[Path]:
    """The files and packages of a folder that may hold tools, by name."""
    files = [path for path in folder.glob("*.py") if not path.name.startswith("_")]
    packages = [path for path in folder.glob(f"*/{_PACKAGE}") if not path.parent.name.startswith((".", "_"))]
    return sorted([*files, *packages])


def import_plugin(path: Path, folder: Path) -> ModuleType:
    """The module of a file in a folder that was :func:`opened`; once, though others beside it import it too."""
    return importlib.import_module(_name(path, folder))


def opened(folder: Path) -> Path:
    """The folder, every file of which will be read anew."""
    for name, file in list(_known.items()):
        if file.beside == folder:
            _forget(name)
    return folder


def _name(path: Path, beside: Path | None) -> str:
    stem = path.parent.name if path.name == _PACKAGE else path.stem
    name = f"{_PREFIX}{sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{stem}"
    _known[name] = _File(path, beside)
    return name


def _forget(name: str) -> None:
    for loaded in list(sys.modules):
        if loaded == name or loaded.startswith(f"{name}."):
            sys.modules.pop(loaded, None)


def _candidates(folder: Path, stem: str) -> tuple[Path, Path]:
    return folder / stem / _PACKAGE, folder / f"{stem}.py"


class _Finder:
    """Knows the modules of plugins by their names, and nothing else."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: ModuleType | None = None) -> ModuleSpec | None:
        root, _, inner = name.partition(".")
        if not name.startswith(_PREFIX) or root not in _known:
            return None
        file = _known[root]
        stem = inner.rpartition(".")[2]
        places = [place for entry in path or () for place in _candidates(Path(entry), stem)] if inner else [file.path]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            return None
        return importlib.util.spec_from_file_location(
            name,
            found,
            loader=_FreshLoader(name, str(found), file.beside),
            submodule_search_locations=[str(found.parent)] if found.name == _PACKAGE else None,
        )


class _FreshLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, beside: Path | None) -> None:
        super().__init__(name, path)
        self._beside = beside

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        if self._beside is not None:
            tree = ast.fix_missing_locations(_ImportsBeside(self._beside, Path(path)).visit(tree))
        code: CodeType = self.source_to_code(tree, path)
        return code


class _ImportsBeside(ast.NodeTransformer):
    """``import helpers`` becomes ``import toolcrib_plugin_1f2e_helpers as helpers``, wherever it stands."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._folder = folder
        self._path = path

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        return [
            ast.copy_location(ast.Import([alias]), node)
            for given in node.names
            for alias in self._renamed(given)
        ]  # fmt: skip

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level == 0 and node.module and (name := self._name_of(node.module)):
            return ast.copy_location(ast.ImportFrom(name, node.names, 0), node)
        return node

    def _renamed(self, given: ast.alias) -> Iterable[ast.alias]:
        name = self._name_of(given.name)
        if name is None:
            yield given
        elif given.asname or "." not in given.name:
            yield ast.alias(name, given.asname or given.name)
        else:  # ``import package.inner`` loads the inner one, and binds the package
            yield ast.alias(name, None)
            yield ast.alias(name.partition(".")[0], given.name.partition(".")[0])

    def _name_of(self, module: str) -> str | None:
        """What the module is called that ``module`` is from here; None if it does not lie beside."""
        stem, dot, rest = module.partition(".")
        found = next((place for place in _candidates(self._folder, stem) if place.is_file()), None)
        if found is None or stem in sys.stdlib_module_names:
            return None
        is_itself = found == self._path or (found.name == _PACKAGE and found.parent in self._path.parents)
        if is_itself and PathFinder.find_spec(stem) is not None:
            return None
        return _name(found, self._folder) + dot + rest


sys.meta_path.insert(0, _Finder)
