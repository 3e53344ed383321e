"""``tools export | import``: tools in other people's shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.surfaces.cli.catalogue import TypeOption, complete_name, tell_emptied
from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import complain, print_json, printable
from toolcrib.surfaces.wording import counted

if TYPE_CHECKING:
    from toolcrib.catalogue import Entry
    from toolcrib.core.spec import ToolSpec

OWN = "toolcrib"
BRAIN = "brain"


def register(tools: typer.Typer) -> None:
    tools.command("export", epilog=example("tools export --format openai > tools.json"))(export)
    tools.command("import", epilog=example("tools import tools.json"))(import_tools)


def _formats() -> tuple[str, ...]:
    from toolcrib.formats import FORMATS

    return (OWN, BRAIN, *FORMATS)


def export(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", autocompletion=complete_name, show_default=False)
    ] = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="toolcrib, brain, or a provider's, such as openai; a wrong one is answered with all of them.",
            autocompletion=_formats,
        ),
    ] = OWN,
    tool_type: TypeOption = "",
    store: StoreOption = "",
) -> None:
    """Print tools as a model's provider takes them, all of them or those named; what is lost is told on stderr."""
    invoked = invocation(ctx, store)
    with invoked.catalogue() as catalogue:
        if names:
            entries = [catalogue.entry(name) for name in names]
        else:
            entries = list(catalogue.entries({"tool_type": tool_type} if tool_type else {}))
    if format in (OWN, BRAIN):
        print_json([_own(entry, format) for entry in entries])
        return
    from toolcrib.formats import generate_prompt, handover

    specs = [entry.spec for entry in entries]
    if format == "prompt":
        print("\n".join(map(printable, generate_prompt(specs).splitlines())))
        return
    handed = handover(specs, format)
    for loss in handed.losses:
        complain(invoked.program, f"note: {loss}")
    print_json(handed.definitions[0] if format == "openapi" else handed.definitions)


def _own(entry: Entry, format: str) -> dict[str, Any]:
    return Invocation(BRAIN if format == BRAIN else OWN).record(entry)


def import_tools(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON or JSON Lines; - is stdin.", show_default=False)],
    format: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="toolcrib, brain, toolsdb, or a provider's, such as openai; auto tells."
        ),
    ] = "auto",
    replace: Annotated[bool, typer.Option("--replace", help="Write over tools of the same name.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Even if that breaks callers.")] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Add every tool of a file, whatever shape it is in: all of them or none."""
    from toolcrib.surfaces.cli.files import each_tool, read_json_file

    invoked = invocation(ctx, store, as_json)
    specs = each_tool(file, _unwrapped(read_json_file(file)), _reader(format))
    with invoked.catalogue() as catalogue:
        entries = catalogue.publish_many(specs, replace=replace, force=force)
    tell_emptied(invoked, entries)
    if invoked.as_json:
        print_json([entry.name for entry in entries])
    else:
        print(f"Imported {_listed(entry.name for entry in entries)}.")


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return counted(len(names), "tool") + (f": {shown}" if names else "")


def _unwrapped(data: Any) -> Any:
    """The list inside what MCP and Gemini wrap around it."""
    if isinstance(data, dict) and isinstance(data.get("tools"), list) and "name" not in data:
        data = data["tools"]
    if isinstance(data, list) and all(isinstance(item, dict) and "functionDeclarations" in item for item in data):
        return [declaration for item in data for declaration in item["functionDeclarations"]]
    return data


def _reader(format: str) -> Callable[[Any], ToolSpec]:
    if format == "auto":
        return lambda item: _reader(_recognised(item))(item)
    if format in (OWN, BRAIN):
        return Invocation(format).parse
    if format == "toolsdb":
        from toolcrib.dialects.toolsdb import ToolEntry

        return lambda item: ToolEntry.from_dict(item).to_spec()
    from toolcrib.formats import from_definition

    return lambda item: from_definition(format, item)


def _recognised(item: Any) -> str:
    from toolcrib.formats import recognise_format

    if not isinstance(item, dict):
        return OWN
    return "toolsdb" if "tool_id" in item else recognise_format(item) or OWN
