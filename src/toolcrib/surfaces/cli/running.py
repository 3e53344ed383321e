"""``tools run``: a live tool, its arguments typed by its schema, its result as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import Exit
from toolcrib.core.json import read_json
from toolcrib.surfaces.cli.catalogue import NameArgument
from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import complain, print_json, printable, prints_aside
from toolcrib.surfaces.cli.watching import watching

if TYPE_CHECKING:
    from toolcrib.calling.call import Approve
    from toolcrib.core.result import ToolResult
    from toolcrib.core.spec import ToolSpec


def register(tools: typer.Typer) -> None:
    tools.command(
        "run",
        epilog=example("tools run add --a 1 --b 2"),
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(run)


def run(
    ctx: typer.Context,
    name: NameArgument,
    arguments: Annotated[
        str, typer.Option("--arguments", metavar="JSON", help="Arguments as one JSON object.", show_default=False)
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Approve a dangerous tool.", show_default=False)] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Run a tool with --ARGUMENT VALUE, as its parameters are called (see: tools show NAME).

    The result goes to stdout as JSON; with --json the whole outcome does. Status 1 says that the tool failed.
    A terminal shows on stderr how far the tool is, if it tells.
    An argument that is called like one of the options below goes into --arguments.
    """
    import asyncio
    from dataclasses import replace

    from toolcrib.bootstrap import address_rules
    from toolcrib.core.addresses import fence
    from toolcrib.core.context import NO_CONTEXT
    from toolcrib.surfaces.cli.arguments import typed_arguments

    def given(spec: ToolSpec) -> dict[str, Any]:
        return {**_json_object(arguments), **typed_arguments(spec, ctx.args)}

    invoked = invocation(ctx, store, as_json)
    with invoked.system() as system, fence(address_rules(system.settings)), prints_aside(), watching() as listener:
        calls = replace(system.local_calls, approve=approval(yes))
        result = asyncio.run(calls.execute(name, given, NO_CONTEXT.heard_by(listener)))
    raise typer.Exit(tell(invoked, result))


def tell(invoked: Invocation, result: ToolResult) -> int:
    """Print the outcome of a call; the exit status that says the same."""
    if invoked.as_json:
        print_json(result.to_json())
    elif result.success:
        print_json(result.to_json()["data"])
    if result.success:
        return 0
    hint = "; pass --yes to approve it" if result.error_code == "approval_required" else ""
    complain(invoked.program, f"{result.error}{hint}")
    return result.refusal.exit if result.refusal else Exit.NO


def _json_object(text: str) -> dict[str, Any]:
    from toolcrib.core.errors import InvalidArgumentsError

    try:
        value = read_json(text or "{}")
    except ValueError as error:
        raise InvalidArgumentsError(f"--arguments is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"--arguments must be a JSON object, not {value!r:.60}")
    return value


def approval(yes: bool) -> Approve | None:
    """Who approves a dangerous tool: the option, the person at the terminal, or nobody."""
    if yes:
        return lambda _spec, _arguments: True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
        shown = json.dumps(arguments, ensure_ascii=False, default=str)
        question = f"{spec.name!r} is {spec.safety_level.value}. Run it with {shown}?"
        return typer.confirm(printable(question), err=True)

    return ask
