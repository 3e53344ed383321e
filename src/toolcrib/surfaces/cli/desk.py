"""What every command stands on: which program was called, on which store, and how it should answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import ToolNotFoundError

if TYPE_CHECKING:
    from toolcrib.catalogue import Catalogue, Entry
    from toolcrib.core.spec import ToolSpec

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where the tools are kept: sqlite:///FILE, json:///FILE, mongodb://..., brain:///FILE or memory:",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, also on a terminal.", show_default=False)]

BRAIN_SCHEME = "brain:"
_GUESSED_FROM = 2000


@dataclass(frozen=True)
class Desk:
    program: str
    store: str = ""
    as_json: bool = False

    @property
    def wants_json(self) -> bool:
        """Programs that read a pipe get JSON; so does whoever asks for it."""
        return self.as_json or not sys.stdout.isatty()

    @property
    def speaks_brain(self) -> bool:
        """Whether tools are kept, read and shown as The Brain's ToolMetadata."""
        return self.store.startswith(BRAIN_SCHEME) or (self.program == "brain" and not self.store)

    @contextmanager
    def catalogue(self) -> Iterator[Catalogue]:
        """The catalogue, open for the time of a command."""
        if self.speaks_brain:
            from toolcrib.dialects import brain

            catalogue = brain.open_catalogue(self.store)
        else:
            from toolcrib.bootstrap import open_catalogue

            catalogue = open_catalogue(self.store or None)
        try:
            yield catalogue
        except ToolNotFoundError as error:
            if "did you mean" in error.message:
                raise
            known = [entry.name for entry in catalogue.query(limit=_GUESSED_FROM).entries]
            raise ToolNotFoundError(error.name, known) from None
        finally:
            catalogue.close()

    def parse(self, data: Any) -> ToolSpec:
        """A tool as a file holds it."""
        if self.speaks_brain:
            from toolcrib.dialects.brain import ToolMetadata

            return ToolMetadata.parse(data).to_spec()
        from toolcrib.core.errors import ToolValidationError
        from toolcrib.core.spec import ToolSpec

        if not isinstance(data, dict):
            raise ToolValidationError(f"a tool is a JSON object, not {data!r:.60}")
        return ToolSpec.parse(data)

    def record(self, entry: Entry) -> dict[str, Any]:
        """A tool as programs read it."""
        if self.speaks_brain:
            from toolcrib.dialects.brain import ToolMetadata

            return ToolMetadata.from_spec(entry.spec).model_dump()
        return entry.document


def desk_of(ctx: typer.Context, store: str = "", as_json: bool = False) -> Desk:
    """The program's desk, with a command's own options before the global ones."""
    desk: Desk = ctx.obj
    return Desk(desk.program, store or desk.store, as_json or desk.as_json)


def example(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "Example:  " + "  |  ".join(f"toolcrib {line}" for line in lines)
