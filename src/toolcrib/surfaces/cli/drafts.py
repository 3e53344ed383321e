"""``tools plan --write``: a stack becomes the file of a pipeline, with what its user said of pages and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from toolcrib.core.errors import InvalidArgumentsError, ToolcribError, ToolValidationError

if TYPE_CHECKING:
    from toolcrib.stacking import Pipeline, Stack
    from toolcrib.stacking.pipeline import Bricks

LOOKED_AT = 50
"""So many of the best stacks are looked at for one that makes a pipeline: some fit, and have nothing that fetches."""


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
            raise InvalidArgumentsError(f"no tool of {' + '.join(stack.names)} has a setting {lost!r}")
        return {
            name: {wish: value for wish, value in self.settings.items() if wish in fields}
            for name, fields in known.items()
        }


def write_pipeline(stacks: Sequence[Stack], bricks: Bricks, wishes: Wishes, *, replace: bool) -> Stack:
    """Write the first stack that makes a pipeline with these settings, those first that lack the fewest tools here.

    The file is JSON, or TOML with all settings explained, as its name says. If there is none, the first complaint.
    """
    from toolcrib.stacking.drafting import as_json_text, as_toml

    path = Path(wishes.file)
    if path.suffix.lower() not in (".json", ".toml"):
        raise typer.BadParameter(f"a pipeline's file ends in .json or .toml, unlike {wishes.file!r}")
    chosen, pipeline = _first_that_fits(stacks, bricks, wishes)
    text = as_toml(pipeline, bricks) if path.suffix.lower() == ".toml" else as_json_text(pipeline)
    try:
        with path.open("w" if replace else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ToolValidationError(f"{wishes.file!r} exists already; name another file, or pass --replace") from None
    return chosen


def _first_that_fits(stacks: Sequence[Stack], bricks: Bricks, wishes: Wishes) -> tuple[Stack, Pipeline]:
    complaints: list[ToolcribError] = []
    for stack in sorted(stacks, key=lambda stack: len(stack.lacks)):
        try:
            return stack, stack.pipeline(start=wishes.start, config=wishes.config(stack, bricks), bricks=bricks)
        except ToolcribError as error:
            complaints.append(error)
    raise complaints[0]


def _pair(text: str) -> tuple[str, str]:
    field, equals, selector = text.partition("=")
    if not field or not equals:
        raise typer.BadParameter(f"--select is FIELD=SELECTOR, such as title=h1, not {text!r}")
    return field.strip(), selector.strip()
