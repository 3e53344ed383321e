"""``tools run``: a live tool, its arguments typed by its schema, its result as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import Exit, answer_for_code
from toolcrib.surfaces.cli.catalogue import NameArgument
from toolcrib.surfaces.cli.desk import Desk, JsonOption, StoreOption, desk_of, example
from toolcrib.surfaces.cli.output import complain, print_json, printable

if TYPE_CHECKING:
    from toolcrib.calling.call import Approve
    from toolcrib.catalogue import Catalogue
    from toolcrib.core.result import ToolResult
    from toolcrib.core.spec import ToolSpec
    from toolcrib.core.tool import Tool
    from toolcrib.registry import ToolRegistry


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
    An argument that is called like one of the options below goes into --arguments.
    """
    import asyncio

    from toolcrib.bootstrap import address_rules
    from toolcrib.core.addresses import fence
    from toolcrib.settings import load_settings
    from toolcrib.surfaces.cli.arguments import typed_arguments

    desk = desk_of(ctx, store, as_json)
    with desk.catalogue() as catalogue:
        registry = live_registry(catalogue, name, approval(yes))
        given = {**_json_object(arguments), **typed_arguments(registry.get(name).spec, ctx.args)}
        with fence(address_rules(load_settings())):
            result = asyncio.run(registry.execute(name, given))
    raise typer.Exit(tell(desk, result))


def tell(desk: Desk, result: ToolResult) -> int:
    """Print the outcome of a call; the exit status that says the same."""
    if desk.as_json:
        print_json(result.to_dict())
    elif result.success:
        print_json(result.data)
    if result.success:
        return 0
    hint = "; pass --yes to approve it" if result.error_code == "approval_required" else ""
    complain(desk.program, f"{result.error}{hint}")
    return _status(result.error_code or "")


def _status(error_code: str) -> int:
    """A call that was not made has its error's own status; one that was made and failed is a negative answer."""
    answer = answer_for_code(error_code)
    return Exit.NO if answer.exit is Exit.FAILED else answer.exit


def live_registry(catalogue: Catalogue, name: str, approve: Approve | None) -> ToolRegistry:
    """A registry that holds the tool: the catalogue's where it says how to run it, a plugin's, or one that ships."""
    from toolcrib.core.errors import ToolNotFoundError
    from toolcrib.registry import ToolRegistry
    from toolcrib.settings import load_settings

    settings = load_settings()
    registry = ToolRegistry(
        highest_safety_level=settings.highest_safety_level,
        approve=approve,
        policy=catalogue.policy,
        audit=catalogue.audit,
    )
    kept = name in catalogue
    if kept and catalogue.get(name).binding:
        registry.register(catalogue.tool(name))
        return registry
    registry.discover(folders=plugin_folders(settings.plugins_dir))
    if name in registry:
        return registry
    if shipped := _shipped(name, settings.chromium):
        registry.register(shipped)
    elif kept:
        registry.register(catalogue.tool(name))  # says why it cannot run
    else:
        raise ToolNotFoundError(name, registry.names())
    return registry


def plugin_folders(plugins_dir: str) -> list[Path]:
    return [Path(folder).expanduser() for folder in plugins_dir.split(os.pathsep) if folder]


def _shipped(name: str, chromium: str) -> Tool | None:
    """A browser tool, in a browser that is opened for the call."""
    from toolcrib.toolsets.browser import browser_specs, standalone_tool

    known = any(spec.name == name for spec in browser_specs())
    return standalone_tool(name, chromium=chromium) if known else None


def _json_object(text: str) -> dict[str, Any]:
    from toolcrib.core.errors import InvalidArgumentsError

    try:
        value = json.loads(text or "{}")
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
