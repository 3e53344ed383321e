"""A filter moved to other field names."""

from __future__ import annotations

from collections.abc import Mapping

from toolcrib.core.query.filters import And, At, Filter, Not, Or, Path
from toolcrib.core.query.parsing import FORBIDDEN, check_path


def rename(where: Filter, names: Mapping[str, str]) -> Filter:
    """The same question about a document whose fields have other names.

    ``names`` maps dotted paths to dotted paths; the longest one that a path begins with is replaced, and a path that
    begins with none stays. The new paths are held against ``FORBIDDEN`` as :func:`parse` does.
    """
    moves = {tuple(old.split(".")): tuple(new.split(".")) for old, new in names.items()}
    secrets = tuple(tuple(path.split(".")) for path in FORBIDDEN)

    def moved(path: Path) -> Path:
        for length in range(len(path), 0, -1):
            if path[:length] in moves:
                path = moves[path[:length]] + path[length:]
                break
        return check_path(path, secrets)

    def renamed(part: Filter) -> Filter:
        match part:
            case At(path, test):
                return At(moved(path), test)
            case And(parts):
                return And(tuple(map(renamed, parts)))
            case Or(parts):
                return Or(tuple(map(renamed, parts)))
            case Not(inner):
                return Not(renamed(inner))
        raise TypeError(f"{part!r} is not a filter")

    return renamed(where)
