"""``keys new`` and ``keys rotate``: what credentials are sealed with."""

from __future__ import annotations

from typing import Annotated

import typer

from toolcrib.surfaces.cli.invocation import StoreOption, example, invocation
from toolcrib.surfaces.wording import counted


def register(app: typer.Typer) -> None:
    keys = typer.Typer(help="The keys that seal credentials.", no_args_is_help=True)
    keys.command("new", epilog=example("keys new"))(new)
    keys.command("rotate", epilog=example("keys rotate"))(rotate)
    app.add_typer(keys, name="keys")


def new() -> None:
    """Print a new key, to be put first in TOOLCRIB_SEAL_KEYS."""
    from toolcrib.bootstrap import new_key

    print(new_key())


_Lost = Annotated[bool, typer.Option("--lost", help="The old key is lost: give up the credentials that it sealed.")]


def rotate(ctx: typer.Context, store: StoreOption = "", *, lost: _Lost = False) -> None:
    """Seal every credential again: with the first of TOOLCRIB_SEAL_KEYS, or with a new key in the data folder."""
    from toolcrib.bootstrap import rotate_seal

    tools = counted(rotate_seal(invocation(ctx, store).settings, lost=lost), "tool")
    print("the old key's credentials are given up" if lost else f"sealed the credentials of {tools} again")
