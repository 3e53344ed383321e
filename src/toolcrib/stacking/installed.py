"""Bricks that other packages bring: entry points of the group ``toolcrib.bricks``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.stacking.brick import AnyBrick, Brick, Secrets, as_secrets

GROUP = "toolcrib.bricks"

_SHIPPED = EntryPoint("shipped", "toolcrib.toolsets.scraping:BRICKS", GROUP)
"""Those that come along are found as those of any other package are: by a reference, when they are first needed."""


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


def all_bricks() -> InstalledBricks:
    """The bricks that ship and those of other packages."""
    return InstalledBricks(_SHIPPED.load())


def lacking(
    bricks: Mapping[str, type[AnyBrick]] | None = None, secrets: Secrets | Mapping[str, str] | None = None
) -> Callable[[ToolSpec], tuple[str, ...]]:
    """What stands in the way of running a tool here, for a planner: ``plan(specs, wanted, lacks=lacking())``."""
    known, keys = all_bricks() if bricks is None else bricks, as_secrets(secrets)

    def lacks(spec: ToolSpec) -> tuple[str, ...]:
        return known[spec.name].lacks(keys) if spec.name in known else (no_brick(spec.name),)

    return lacks


def no_brick(name: str) -> str:
    return (
        f"there is no brick for {name!r} here (no_brick); let its metadata say how it runs, such as "
        '{"binding": {"command": "..."}}, or take another tool'
    )
