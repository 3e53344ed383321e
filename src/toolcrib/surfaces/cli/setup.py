"""``config``: what is in force and where each value came from."""

from __future__ import annotations

import typer

from toolcrib.surfaces.cli.invocation import JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import print_json, print_table


def register(app: typer.Typer) -> None:
    app.command("config", epilog=example("config", "config --json"))(config)


def config(ctx: typer.Context, store: StoreOption = "", as_json: JsonOption = False) -> None:
    """Print every setting in force and where it came from; secrets are masked."""
    invoked = invocation(ctx, store, as_json)
    rows = [{"name": name, "value": value, "source": source} for name, value, source in invoked.settings.in_force()]
    if invoked.wants_json:
        print_json(rows)
    else:
        print_table(("Setting", "From", "Value"), [(row["name"], row["source"], row["value"]) for row in rows])
