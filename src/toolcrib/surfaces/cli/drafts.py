"""``tools plan --write``: a stack becomes the file of a pipeline, with what its user said of pages and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from toolcrib.stacking import Stack
    from toolcrib.stacking.pipeline import Bricks


@dataclass(frozen=True)
class Wishes:
    """What the options say, by the names of the settings that they fill in."""

    file: str
    start: tuple[str, ...]
    settings: Mapping[str, Any]

    @classmethod
    def parse(
        cls, file: str, start: Sequence[str], rows: str, select: Sequence[str], follow: str, output: str
    ) -> Wishes:
        selectors = dict(_pair(one) for one in select)
        said = {"rows": rows, "selectors": selectors, "follow": follow, "path": output}
        given = {name: value for name, value in said.items() if value}
        if not file and (given or start):
            raise typer.BadParameter("--start, --rows, --select, --follow and --output belong to --write FILE")
        return cls(file, tuple(start), given)

    def config(self, stack: Stack, bricks: Bricks) -> dict[str, dict[str, Any]]:
        """The settings of each tool; a wish that no tool of the stack knows is refused."""
        known = {name: bricks[name].Config.model_fields.keys() for name in stack.names if name in bricks}
        lost = next((wish for wish in self.settings if not any(wish in fields for fields in known.values())), None)
        if lost is not None:
            raise typer.BadParameter(f"no tool of {' + '.join(stack.names)} has a setting {lost!r}")
        return {
            name: {wish: value for wish, value in self.settings.items() if wish in fields}
            for name, fields in known.items()
        }


def write_pipeline(stack: Stack, bricks: Bricks, wishes: Wishes, *, replace: bool) -> None:
    """Write the stack to the file that is wished for, as its name says: JSON, or TOML with all settings explained."""
    from toolcrib.core.errors import ToolValidationError
    from toolcrib.stacking.drafting import as_json_text, as_toml

    path = Path(wishes.file)
    if path.suffix.lower() not in (".json", ".toml"):
        raise typer.BadParameter(f"a pipeline's file ends in .json or .toml, unlike {wishes.file!r}")
    pipeline = stack.pipeline(start=wishes.start, config=wishes.config(stack, bricks), bricks=bricks)
    text = as_toml(pipeline, bricks) if path.suffix.lower() == ".toml" else as_json_text(pipeline)
    try:
        with path.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ToolValidationError(f"{wishes.file!r} exists already; name another file, or pass --replace") from None


def _pair(text: str) -> tuple[str, str]:
    field, equals, selector = text.partition("=")
    if not field or not equals:
        raise typer.BadParameter(f"--select is FIELD=SELECTOR, such as title=h1, not {text!r}")
    return field.strip(), selector.strip()
