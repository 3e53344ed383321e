"""``config``: what is in force and where each value came from."""

from __future__ import annotations

import typer

from toolcrib.surfaces.cli.desk import JsonOption, StoreOption, desk_of, example
from toolcrib.surfaces.cli.output import print_json, print_table


def register(app: typer.Typer) -> None:
    app.command("config", epilog=example("config", "config --json"))(config)


def config(ctx: typer.Context, store: StoreOption = "", as_json: JsonOption = False) -> None:
    """Print every setting in force and where it came from; secrets are masked."""
    from toolcrib.settings import load_settings

    desk = desk_of(ctx, store, as_json)
    settings = load_settings().with_changes("--store", store=desk.store or None)
    rows = [{"name": name, "value": value, "source": source} for name, value, source in settings.in_force()]
    if desk.wants_json:
        print_json(rows)
    else:
        print_table(("Setting", "From", "Value"), [(row["name"], row["source"], row["value"]) for row in rows])
