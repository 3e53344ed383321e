"""``tools check-compat | compatible | plan``: which tools stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import Exit
from toolcrib.surfaces.cli.catalogue import NameArgument, TypeOption, complete_name, print_tools
from toolcrib.surfaces.cli.invocation import JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import print_json, printable

if TYPE_CHECKING:
    from toolcrib.stacking import Miss, Plan, Stack

StrictOption = Annotated[
    bool, typer.Option("--strict", help="A tool that lists what it accepts accepts nothing else.", show_default=False)
]


def register(tools: typer.Typer) -> None:
    tools.command("check-compat", epilog=example("tools check-compat playwright beautifulsoup4"))(check_compat)
    tools.command("compatible", epilog=example("tools compatible playwright --type parser"))(compatible)
    tools.command("plan", epilog=example("tools plan javascript_rendering html_parsing"))(plan)


def check_compat(
    ctx: typer.Context,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME NAME [NAME]...", autocompletion=complete_name, show_default=False)
    ],
    strict: StrictOption = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Say whether tools stack: Compatible (status 0) or Non compatible (status 1), then why."""
    invoked = invocation(ctx, store, as_json)
    if len(set(names)) < 2:
        raise typer.BadParameter("compatibility is between two tools or more")
    with invoked.catalogue() as catalogue:
        report = catalogue.check_compat(names, strict=strict)
    if invoked.as_json:
        print_json({"compatible": report.compatible, "reason": report.reason, "pairs": report.verdicts})
    else:
        print("Compatible" if report.compatible else "Non compatible")
        for reason in [verdict.reason for verdict in report.conflicts] or [report.reason]:
            print(printable(reason))
    raise typer.Exit(0 if report.compatible else Exit.NO)


def compatible(
    ctx: typer.Context,
    name: NameArgument,
    tool_type: TypeOption = "",
    strict: StrictOption = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the tools that stack with one."""
    invoked = invocation(ctx, store, as_json)
    with invoked.catalogue() as catalogue:
        entries = list(catalogue.compatible_entries(name, tool_type or None, strict=strict))
    print_tools(invoked, entries)


def plan(  # noqa: PLR0913, PLR0917 - one argument an option
    ctx: typer.Context,
    capabilities: Annotated[
        list[str],
        typer.Argument(metavar="CAPABILITY...", help="What the stack must be able to do.", show_default=False),
    ],
    limit: Annotated[int, typer.Option(min=1, help="At most so many stacks.")] = 5,
    strict: StrictOption = False,
    write: Annotated[
        str, typer.Option(metavar="FILE", help="Write the best stack that makes a pipeline to it, in JSON or TOML.")
    ] = "",
    start: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Where the pipeline begins.", show_default=False)
    ] = None,
    rows: Annotated[str, typer.Option(metavar="SELECTOR", help="The elements that are a row each.")] = "",
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD=SELECTOR", help="A field of a row, such as link=a@href.", show_default=False),
    ] = None,
    follow: Annotated[str, typer.Option(metavar="SELECTOR", help="Links to follow.")] = "",
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the rows are kept.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Write over FILE.", show_default=False)] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Find the smallest stacks of compatible tools that can do all of it, those that can run here first.

    Exits with 1 if there is none. With --write, one becomes a file for: pipeline run FILE.
    """
    from toolcrib.stacking import Planner
    from toolcrib.surfaces.cli.drafts import LOOKED_AT, Wishes, write_pipeline

    invoked = invocation(ctx, store, as_json)
    wishes = Wishes.parse(write, start or (), rows, select or (), follow, output)
    with invoked.system() as system:
        planner = Planner(map(system.bricks.dated, system.catalogue), lacks=system.bricks.lacks)
        found = planner.plan(capabilities, limit=max(limit, LOOKED_AT if write else 0), strict=strict)
        chosen = write_pipeline(found, system.bricks, wishes, replace=replace) if found and write else None
    if invoked.wants_json:
        told = {"wanted": found.wanted, "stacks": list(map(_stack, found[:limit])), "nearest": _nearest(found.nearest)}
        print_json(told | ({"written": write, "pipeline": chosen.names} if chosen else {}))
    else:
        _print_plan(found, limit)
        if chosen:
            print(f"Wrote {' + '.join(chosen.names)} to {write}; run it with: {invoked.program} pipeline run {write}")
    raise typer.Exit(0 if found else Exit.NO)


def _print_plan(found: Plan, limit: int) -> None:
    for number, stack in enumerate(found[:limit], 1):
        print(f"{number}. {' + '.join(stack.names)}{'' if stack.runnable else '  (cannot run here yet)'}")
        for reason in stack.reasons:
            print(f"   {printable(reason)}")
    if found.nearest is not None:
        missing = ", ".join(map(repr, found.nearest.missing))
        print(f"No stack can do all of it; missing: {printable(missing)}")
        if found.nearest.stack is not None:
            print(f"   nearest: {' + '.join(found.nearest.stack.names)}")
        for reason in found.nearest.reasons:
            print(f"   {printable(reason)}")


def _stack(stack: Stack) -> dict[str, Any]:
    return {
        "tools": stack.names,
        "runnable": stack.runnable,
        "missing": stack.missing,
        "required_config": stack.required_config,
        "reasons": stack.reasons,
    }


def _nearest(miss: Miss | None) -> dict[str, Any] | None:
    if miss is None:
        return None
    return {
        "tools": miss.stack.names if miss.stack is not None else [],
        "missing": miss.missing,
        "reasons": miss.reasons,
    }
