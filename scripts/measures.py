#!/usr/bin/env python3
"""Print how large the code is, and how much of it a reader should fear: run it before and after a change.

``Any`` counts annotations; a broad ``except`` catches Exception, BaseException or everything.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BROAD = ("Exception", "BaseException")


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    lines: int
    tree: ast.Module


def read(source: Path) -> list[Module]:
    found = []
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(str(path.relative_to(source)), len(text.splitlines()), ast.parse(text)))
    return found


def functions(modules: list[Module]) -> Iterator[tuple[int, str]]:
    """Lines and place of each function."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, FUNCTIONS):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{module.name}:{node.lineno} {node.name}"


def public_names(modules: list[Module]) -> int:
    """Functions, classes and methods of public classes whose names have no leading underscore."""
    count = 0
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_"):
                members = node.body if isinstance(node, ast.ClassDef) else ()
                count += 1 + sum(isinstance(m, FUNCTIONS) and not m.name.startswith("_") for m in members)
    return count


def is_broad(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD) for kind in caught)


def main(source: Path = SOURCE) -> None:
    modules = read(source)
    sizes = {module.name: module.lines for module in modules}
    longest = max(functions(modules))
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    largest = max(sizes, key=lambda name: sizes[name])
    rows = {
        "modules": len(modules),
        "lines": sum(sizes.values()),
        "median module": int(statistics.median(sizes.values())),
        "largest module": f"{sizes[largest]}  {largest}",
        "largest function": f"{longest[0]}  {longest[1]}",
        "public names": public_names(modules),
        "broad excepts": sum(isinstance(node, ast.ExceptHandler) and is_broad(node) for node in nodes),
        "Any": sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes),
    }
    for name, value in rows.items():
        print(f"{name:18}{value}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
