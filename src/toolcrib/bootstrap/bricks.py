"""The bricks of this machine: those that ship, those of other packages, and the tools of a catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from toolcrib.core.errors import DeniedError, ToolcribError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings
from toolcrib.stacking.brick import AnyBrick
from toolcrib.stacking.brick_tools import Place, brick_tool, tool_spec
from toolcrib.stacking.installed import InstalledBricks, no_brick
from toolcrib.stacking.tool_bricks import tool_brick


def shipped_brick(name: str, settings: Settings) -> type[AnyBrick] | None:
    """The brick that ships under this name."""
    from toolcrib.toolsets.scraping import shipped_bricks

    return shipped_bricks(settings.chromium).get(name)


def sample_bricks() -> list[ToolSpec]:
    """The scraping tools, those that have a brick as tools that can be called."""
    from toolcrib.toolsets.scraping import BRICKS, scraping_specs

    return [tool_spec(BRICKS[name]) if name in BRICKS else spec for name, spec in scraping_specs().items()]


def called_brick(brick: type[AnyBrick], settings: Settings) -> Tool:
    """The brick as a tool of this machine; its callers name files in the settings' folder only."""
    return brick_tool(brick, secrets=settings.secrets, place=_place_in(settings.files_folder))


def _place_in(folder: Path) -> Place:
    def place(name: str) -> str:
        from toolcrib.toolsets.browser.folders import confined

        try:
            return str(confined(folder, name))
        except ToolcribError:
            raise DeniedError(
                f"{name!r} is not a file in the folder of TOOLCRIB_FILES_DIR, where tools that are called keep theirs; "
                "give a name without '..' or a leading '/'",
                rule="files_dir",
            ) from None

    return place


class KnownBricks(Mapping[str, type[AnyBrick]]):
    """What a step of a pipeline may name. A kept tool that says how it runs comes before a brick of its name."""

    def __init__(
        self,
        settings: Settings,
        kept: Callable[[str], ToolSpec | None] = lambda _name: None,
        bound: Callable[[str], Tool] | None = None,
    ) -> None:
        from toolcrib.toolsets.scraping import shipped_bricks

        self._shipped = shipped_bricks(settings.chromium)
        self._own = InstalledBricks(self._shipped)
        self._secrets = settings.secrets
        self._kept = kept
        self._bound = bound

    def __getitem__(self, name: str) -> type[AnyBrick]:
        spec = self._kept(name)
        return self._own[name] if spec is None else self.of(spec)

    def of(self, spec: ToolSpec) -> type[AnyBrick]:
        """The brick for a kept tool; ToolValidationError if there is none."""
        name, shipped = spec.name, spec.binding.shipped
        if spec.binding and not shipped and self._bound is not None:
            return tool_brick(self._bound(name))
        brick = self._own.get(shipped or name)
        if brick is None:
            raise ToolValidationError(no_brick(name))
        return brick if brick.spec.name == name else type(brick.__name__, (brick,), {"spec": spec})

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)

    def __contains__(self, name: object) -> bool:
        return name in self._own or (isinstance(name, str) and self._kept(name) is not None)

    def dated(self, spec: ToolSpec) -> ToolSpec:
        """The spec of a kept tool, ``deprecated`` if its brick is: The Brain's file has no word for that."""
        brick = self._shipped.get(spec.binding.shipped or ("" if spec.binding else spec.name))
        if brick is None or not brick.spec.deprecated:
            return spec
        return spec.model_copy(update={"deprecated": True, "replaced_by": brick.spec.replaced_by})

    def lacks(self, spec: ToolSpec) -> tuple[str, ...]:
        """What stands in the way of a kept tool as a step here: a brick, a package, a key. Empty if nothing does."""
        try:
            return self.of(spec).lacks(self._secrets)
        except ToolcribError as error:
            return (str(error),)
