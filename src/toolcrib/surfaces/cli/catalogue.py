"""``tools add | list | show | remove | own | search``: what the catalogue keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import complain, print_fields, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolcrib.catalogue import Entry, Hit
    from toolcrib.core.spec import ToolSpec

FileOption = Annotated[
    str,
    typer.Option(
        "-f",
        "--file",
        metavar="FILE",
        help="A JSON file of one tool or a list of tools; - is stdin.",
        show_default=False,
    ),
]
TypeOption = Annotated[str, typer.Option("--type", metavar="TYPE", help="Only tools of this type.", show_default=False)]


def complete_name(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of kept tools, for the shell."""
    from toolcrib.core.errors import ToolcribError

    root = ctx.find_root()
    invoked = Invocation(root.info_name or "toolcrib", ctx.params.get("store") or root.params.get("store") or "")
    try:
        with invoked.catalogue() as catalogue:
            return [entry.name for entry in catalogue.entries() if entry.name.startswith(incomplete)]
    except ToolcribError:
        return []


NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The tool's name.", autocompletion=complete_name, show_default=False)
]


def register(tools: typer.Typer) -> None:
    tools.command("add", epilog=example("tools add -f playwright.json"))(add)
    tools.command("list", epilog=example("tools list --type browser"))(list_tools)
    tools.command("show", epilog=example("tools show playwright"))(show)
    tools.command("remove", epilog=example("tools remove requests"))(remove)
    tools.command("own", epilog=example("tools own playwright --to ci"))(own)
    tools.command("search", epilog=example("tools search 'parse html'"))(search)


def add(
    ctx: typer.Context,
    file: FileOption = "",
    samples: Annotated[
        bool, typer.Option("--samples", help="The tools that come with Toolcrib.", show_default=False)
    ] = False,
    replace: Annotated[bool, typer.Option(help="Write over a tool of the same name.")] = True,
    force: Annotated[bool, typer.Option("--force", help="Even if that breaks callers.")] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Add tools from a JSON file, or the samples: all of them or none."""
    invoked = invocation(ctx, store, as_json)
    if bool(file) == samples:
        raise typer.BadParameter("give a file with -f FILE, or --samples")
    specs = _samples(invoked) if samples else _read(invoked, file)
    with invoked.catalogue() as catalogue:
        known = {spec.name for spec in specs if spec.name in catalogue}
        entries = catalogue.publish_many(specs, replace=replace, force=force)
    tell_emptied(invoked, entries)
    if invoked.as_json:
        print_json([invoked.record(entry) for entry in entries])
        return
    for entry in entries:
        print(f"{'Replaced' if entry.name in known else 'Added'} tool {entry.name!r}.")


def tell_emptied(invoked: Invocation, entries: Iterable[Entry]) -> None:
    """Say on stderr which tools lost credentials by a write."""
    for entry in entries:
        if entry.emptied:
            lost = ", ".join(map(repr, entry.emptied))
            complain(invoked.program, f"note: {entry.name!r} has its credentials no more ({lost}); give them again")


def _read(invoked: Invocation, file: str) -> list[ToolSpec]:
    from toolcrib.surfaces.cli.files import each_tool, read_json_file

    return each_tool(file, read_json_file(file), invoked.parse)


def _samples(invoked: Invocation) -> list[ToolSpec]:
    """The tools that come with Toolcrib; The Brain's file has no place for all that they say."""
    from toolcrib.bootstrap import sample_specs
    from toolcrib.toolsets.scraping.specs import brain_specs

    return brain_specs() if invoked.speaks_brain else sample_specs()


def list_tools(
    ctx: typer.Context,
    tool_type: TypeOption = "",
    capability: Annotated[
        str, typer.Option("--capability", metavar="CAP", help="Only tools that can do this.", show_default=False)
    ] = "",
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the tools: JSON in a pipe, a table on a terminal."""
    invoked = invocation(ctx, store, as_json)
    wanted: dict[str, Any] = {}
    if tool_type:
        wanted["tool_type"] = tool_type
    if capability:
        wanted["capabilities"] = capability
    with invoked.catalogue() as catalogue:
        entries = list(catalogue.entries(wanted))
    print_tools(invoked, entries)


def print_tools(invoked: Invocation, entries: list[Entry]) -> None:
    if invoked.wants_json:
        print_json([invoked.record(entry) for entry in entries])
        return
    rows = [
        (
            entry.name,
            entry.spec.tool_type or entry.spec.category,
            entry.spec.execution_mode,
            _brief(entry.spec.description),
        )
        for entry in entries
    ]
    print_table(("Name", "Type", "Mode", "Description"), rows, empty="No tools.")


def show(ctx: typer.Context, name: NameArgument, store: StoreOption = "", as_json: JsonOption = False) -> None:
    """Show one tool in full; its credentials stay masked."""
    invoked = invocation(ctx, store, as_json)
    with invoked.catalogue() as catalogue:
        record = invoked.record(catalogue.entry(name))
    if invoked.wants_json:
        print_json(record)
        return
    print_fields((field, value) for field, value in record.items() if value not in ("", [], {}, None, False))


def remove(
    ctx: typer.Context,
    name: NameArgument,
    force: Annotated[bool, typer.Option("--force", help="Even if other tools name it.")] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Remove a tool."""
    invoked = invocation(ctx, store, as_json)
    with invoked.catalogue() as catalogue:
        # The Brain removes whatever it is asked to; its tools name each other all the time.
        catalogue.delete(name, force=force or invoked.speaks_brain)
    if invoked.as_json:
        print_json({"removed": name})
    else:
        print(f"Removed tool {name!r}.")


def own(
    ctx: typer.Context,
    name: NameArgument,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="WHO", help="The name on their token, or the subject of their JWT.", show_default=False
        ),
    ] = None,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Show who owns a tool, or give it to somebody: of publishers only the owner may change it."""
    invoked = invocation(ctx, store, as_json)
    with invoked.catalogue() as catalogue:
        entry = catalogue.entry(name) if to is None else catalogue.give(name, to)
    if invoked.as_json:
        print_json({"name": name, "owner": entry.owner})
    else:
        print(
            f"{name!r} belongs to {entry.owner!r}."
            if entry.owner
            else f"{name!r} has no owner: administrators change it."
        )


def search(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words to look for.", show_default=False)],
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 10,
    tool_type: TypeOption = "",
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Search names, descriptions, tags and capabilities; the best fit comes first."""
    invoked = invocation(ctx, store, as_json)
    with invoked.catalogue() as catalogue:
        hits = catalogue.search(text, limit=limit, filter={"tool_type": tool_type} if tool_type else None)
    if invoked.wants_json:
        print_json([_hit(hit) for hit in hits])
        return
    rows = [(hit.spec.name, f"{hit.score:.2f}", _brief(hit.spec.description)) for hit in hits]
    print_table(("Name", "Score", "Description"), rows)


def _hit(hit: Hit) -> dict[str, Any]:
    spec = hit.spec
    return {"name": spec.name, "score": round(hit.score, 4), "reason": hit.reason, "description": spec.description}


def _brief(text: str) -> str:
    """The first sentence, which is what a table has room for."""
    sentence = " ".join(text.split()).partition(". ")[0]
    return sentence if len(sentence) <= 120 else f"{sentence[:117]}..."
