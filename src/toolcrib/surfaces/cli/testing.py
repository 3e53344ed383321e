"""``tools test``: the examples of tools, run as tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.core.errors import Exit, ToolNotFoundError
from toolcrib.surfaces.cli.catalogue import complete_name
from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import print_json, print_table, prints_aside

if TYPE_CHECKING:
    from toolcrib.bootstrap import System
    from toolcrib.testing import Outcome

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="Only these tools.", autocompletion=complete_name, show_default=False),
]


def register(tools: typer.Typer) -> None:
    tools.command("test", epilog=example("tools test", "tools test add --module my_tools.py"))(run_tests)


def run_tests(
    ctx: typer.Context,
    names: NamesArgument = None,
    module: Annotated[
        str,
        typer.Option(
            "--module",
            metavar="MODULE[:NAME]",
            help="Test the tools of my_tools.py, of package.module or of package.module:registry.",
            show_default=False,
        ),
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="NAME", help="Also run this tool, which is above the safety level.", show_default=False
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(metavar="NUMBER", min=0.0, help="By how much numbers may be off: of them, or of 1.")
    ] = 0.0,
    fail_without_examples: Annotated[
        bool, typer.Option("--fail-without-examples", help="Fail also if a tool has no examples.", show_default=False)
    ] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Run the examples of tools; a tool whose example does not give its output fails. Exits with 1 if one does.

    Tested are the tools of the catalogue and of plugins, or those of --module. What may not or cannot run is skipped.
    """
    import asyncio

    invoked = invocation(ctx, store, as_json)
    with prints_aside():
        if module:
            found = asyncio.run(_of_module(module, names or [], allow or [], tolerance))
        else:
            found = _of_system(invoked, names or [], allow or [], tolerance)
    _tell(invoked, found)
    failing = {"failed", "no examples"} if fail_without_examples else {"failed"}
    raise typer.Exit(Exit.NO if any(each.verdict in failing for each in found) else Exit.DONE)


async def _of_module(reference: str, names: list[str], allow: list[str], tolerance: float) -> list[Outcome]:
    from toolcrib.testing import run_examples
    from toolcrib.testing.finding import find_registries

    registries = find_registries(reference)
    known = [name for registry in registries for name in registry.names()]
    _check_known([*names, *allow], known)
    return [
        outcome
        for registry in registries
        for outcome in await run_examples(
            registry,
            [name for name in names if name in registry] if names else None,
            allow=allow,
            tolerance=tolerance,
        )
    ]


def _check_known(names: Iterable[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise ToolNotFoundError(name, known)


def _of_system(invoked: Invocation, names: list[str], allow: list[str], tolerance: float) -> list[Outcome]:
    import asyncio

    from toolcrib.bootstrap import address_rules
    from toolcrib.core.addresses import fence

    with invoked.system() as system, fence(address_rules(system.settings)):
        for name in allow:
            system.find_tool(name)
        return asyncio.run(_of_tools(system, names or _names_in(system), allow, tolerance))


def _names_in(system: System) -> list[str]:
    """The tools of the catalogue and those of plugins."""
    return list(dict.fromkeys([entry.name for entry in system.catalogue.entries()] + list(system.plugins.names())))


async def _of_tools(system: System, names: list[str], allow: list[str], tolerance: float) -> list[Outcome]:
    from dataclasses import replace

    from toolcrib.calling.call import Unbound
    from toolcrib.testing.examples import approving, outcomes, skipped

    calls = replace(system.local_calls, approve=approving(allow))
    found: list[Outcome] = []
    for name in names:
        tool = system.find_tool(name)
        if isinstance(tool, Unbound):
            found += skipped(tool.spec, tool.reason.message)
        else:
            found += await outcomes(calls.execute, tool.spec, tolerance)
    return found


def _tell(invoked: Invocation, found: list[Outcome]) -> None:
    if invoked.wants_json:
        print_json([each.to_dict() for each in found])
        return
    rows = [(each.tool, each.example or "", each.verdict, each.reason) for each in found]
    print_table(("Tool", "Example", "Verdict", "Reason"), rows, empty="No tools.")
    if counts := Counter(str(each.verdict) for each in found):
        print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
