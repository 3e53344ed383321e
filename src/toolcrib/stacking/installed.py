"""Bricks that other packages bring: entry points of the group ``toolcrib.bricks``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from toolcrib.core.errors import ToolValidationError
from toolcrib.stacking.brick import AnyBrick, Brick

GROUP = "toolcrib.bricks"


class InstalledBricks(Mapping[str, type[AnyBrick]]):
    """Some bricks, and those installed under names that are still free. One of those is loaded when it is asked for."""

    def __init__(self, own: Mapping[str, type[AnyBrick]]) -> None:
        self._own = own
        self._others: dict[str, EntryPoint] = {
            point.name: point for point in entry_points(group=GROUP) if point.name not in own
        }

    def __getitem__(self, name: str) -> type[AnyBrick]:
        if name in self._own:
            return self._own[name]
        point = self._others[name]
        brick = point.load()
        if not (isinstance(brick, type) and issubclass(brick, Brick)):
            raise ToolValidationError(f"{point.value!r}, installed as brick {name!r}, is not a brick class")
        return brick

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from self._others

    def __len__(self) -> int:
        return len(self._own) + len(self._others)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._others
