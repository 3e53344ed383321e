"""One call of the program: by which name, on which store, and how it should answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import ToolNotFoundError

if TYPE_CHECKING:
    from toolcrib.bootstrap import System
    from toolcrib.catalogue import Catalogue, Entry
    from toolcrib.core.spec import ToolSpec
    from toolcrib.settings import Settings

StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="URL",
        help="Where the tools are kept: sqlite:///FILE or json:///FILE (a path from here; sqlite:////FILE from the "
        "root), mongodb://..., brain:///FILE or memory:; by default a SQLite file in data_dir.",
        show_default=False,
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", help="How many at most.", min=1)]
JsonOption = Annotated[bool, typer.Option("--json", help="Answer in JSON, also on a terminal.", show_default=False)]

BRAIN_SCHEME = "brain:"


@dataclass(frozen=True)
class Invocation:
    program: str
    store: str = ""
    as_json: bool = False

    @property
    def wants_json(self) -> bool:
        """Programs that read a pipe get JSON; so does whoever asks for it."""
        return self.as_json or not sys.stdout.isatty()

    @cached_property
    def settings(self) -> Settings:
        """What is in force, with the store that was named; the program ``brain`` names its own file."""
        from toolcrib.settings import load_settings

        if self.program == "brain" and not self.store:
            return load_settings().with_changes(self.program, store=BRAIN_SCHEME)
        return load_settings().with_changes("--store", store=self.store or None)

    @property
    def speaks_brain(self) -> bool:
        """Whether tools are kept, read and shown as The Brain's ToolMetadata."""
        return self.settings.store.startswith(BRAIN_SCHEME)

    def system(self) -> System:
        """The system on the store that was named; to be closed after the command."""
        from toolcrib.bootstrap import open_system

        return open_system(self.settings)

    @contextmanager
    def catalogue(self) -> Iterator[Catalogue]:
        """The catalogue, open for the time of a command."""
        from toolcrib.bootstrap import known_names

        with self.system() as system:
            try:
                yield system.catalogue
            except ToolNotFoundError as error:
                if "did you mean" in error.message:
                    raise
                raise ToolNotFoundError(error.name, known_names(system.catalogue)) from None

    def parse(self, data: Any) -> ToolSpec:
        """A tool as a file holds it."""
        if self.speaks_brain:
            from toolcrib.formats.toolmetadata import ToolMetadata

            return ToolMetadata.parse(data).to_spec()
        from toolcrib.core.errors import ToolValidationError
        from toolcrib.core.spec import ToolSpec

        if not isinstance(data, dict):
            raise ToolValidationError(f"a tool is a JSON object, not {data!r:.60}")
        return ToolSpec.parse(data)

    def record(self, entry: Entry) -> dict[str, Any]:
        """A tool as programs read it."""
        if self.speaks_brain:
            from toolcrib.formats.toolmetadata import ToolMetadata

            return ToolMetadata.from_spec(entry.spec).model_dump()
        return entry.document


def invocation(ctx: typer.Context, store: str = "", as_json: bool = False) -> Invocation:
    """This call of the program, with a command's own options before the global ones."""
    invoked: Invocation = ctx.obj
    return Invocation(invoked.program, store or invoked.store, as_json or invoked.as_json)


def example(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "Example:  " + "  |  ".join(f"toolcrib {line}" for line in lines)
