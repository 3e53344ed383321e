"""``audit list | verify``: who did what, and whether that is still what was recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from toolcrib.core.errors import Exit
from toolcrib.surfaces.cli.invocation import JsonOption, LimitOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import complain, print_json, print_table
from toolcrib.surfaces.wording import counted


def register(app: typer.Typer) -> None:
    audit = typer.Typer(help="The audit: who did what.", no_args_is_help=True)
    audit.command("list", epilog=example("audit list --tool playwright"))(list_events)
    audit.command("verify", epilog=example("audit verify"))(verify)
    app.add_typer(audit, name="audit")


def list_events(
    ctx: typer.Context,
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="Only about this tool.", show_default=False)] = "",
    who: Annotated[str, typer.Option("--who", metavar="WHO", help="Only by this caller.", show_default=False)] = "",
    limit: LimitOption = 100,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """What was attempted and what came of it, newest first."""
    invoked = invocation(ctx, store, as_json)
    with invoked.system() as system:
        events = system.audit.events(tool=tool, principal=who, limit=limit)
    if invoked.wants_json:
        print_json([event._asdict() for event in events])
        return
    rows = [
        (_moment(event.at), event.principal, event.action, event.tool, event.outcome, event.detail) for event in events
    ]
    print_table(("When", "Who", "Action", "Tool", "Outcome", "Detail"), rows, empty="Nothing is on record.")


def verify(
    ctx: typer.Context,
    head: Annotated[
        list[str] | None,
        typer.Option(
            "--head",
            metavar="CHAIN:NUMBER:HASH",
            help="A head that the service logged, which must still be part of its chain; may be repeated.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Check that no event was changed, taken out or put in. Exits with 1 at the first that does not fit."""
    from toolcrib.core.chains import Head
    from toolcrib.core.chains import verify as check

    invoked = invocation(ctx, store, as_json)
    with invoked.system() as system:
        audit = system.audit
        heads = audit.heads()  # first: what is recorded meanwhile comes after them
        verdict = check(audit.links, heads, map(Head.parse, head or ()))
    if invoked.as_json:
        print_json({"events": verdict.events, "chains": verdict.chains, "fault": verdict.fault})
    elif not verdict.fault:
        print(f"{counted(verdict.events, 'event')} in {counted(verdict.chains, 'chain')}, each in its place.")
        for end in heads.values():
            print(end)
    if verdict.fault:
        complain(invoked.program, f"the audit is not what was recorded: {verdict.fault}")
        raise typer.Exit(Exit.NO)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
