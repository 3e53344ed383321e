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
        # Samples of a release before had no parameters: nobody can have called them.
        entries = catalogue.publish_many(specs, replace=replace, force=force or samples)
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
    """The tools that come with Toolcrib. The Brain's file gets the scraping tools, in the words that it has."""
    from toolcrib.bootstrap import sample_specs
    from toolcrib.formats.toolmetadata import ToolMetadata
    from toolcrib.toolsets.scraping.specs import scraping_specs

    if not invoked.speaks_brain:
        return sample_specs()
    known = ToolMetadata.model_fields.keys()
    return [
        ToolMetadata.parse({field: value for field, value in spec.to_dict().items() if field in known}).to_spec()
        for spec in scraping_specs().values()
    ]


def list_tools(
    ctx: typer.Context,
    tool_type: TypeOption = "",
    capability: Annotated[
        str, typer.Option("--capability", metavar="CAP", help="Only tools that can do this.", show_default=False)
    ] = "",
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Only tools with this tag; may be repeated.", show_default=False),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="How many at most.", min=1, show_default=False)
    ] = None,
    plugins: Annotated[
        bool, typer.Option("--plugins", help="The tools of plugins, which the catalogue does not keep.")
    ] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the tools: JSON in a pipe, a table on a terminal."""
    from itertools import islice

    invoked = invocation(ctx, store, as_json)
    given = {"tool_type": tool_type, "capabilities": [capability] if capability else [], "tags": tag or []}
    wanted: dict[str, Any] = {field: value for field, value in given.items() if value}
    if plugins:
        with invoked.system() as system:
            specs = [tool.spec for tool in system.plugins.filter(**wanted)[:limit]]
        _print_specs(invoked, specs, [spec.to_dict() for spec in specs])
        return
    asked = {field: {"$all": value} if isinstance(value, list) else value for field, value in wanted.items()}
    with invoked.catalogue() as catalogue:
        entries = list(islice(catalogue.entries(asked), limit))
    print_tools(invoked, entries)
    _tell_of_plugins(invoked)


def print_tools(invoked: Invocation, entries: list[Entry]) -> None:
    _print_specs(invoked, [entry.spec for entry in entries], [invoked.record(entry) for entry in entries])


def _print_specs(invoked: Invocation, specs: list[ToolSpec], documents: list[dict[str, Any]]) -> None:
    if invoked.wants_json:
        print_json(documents)
        return
    rows = [
        (spec.name, spec.tool_type or spec.category, spec.execution_mode, _brief(spec.description)) for spec in specs
    ]
    print_table(("Name", "Type", "Mode", "Description"), rows, empty="No tools.")


def _tell_of_plugins(invoked: Invocation) -> None:
    """Say on stderr how to see what is not kept. Nothing of theirs is loaded for that."""
    from toolcrib.registry.discovery import has_plugins

    if has_plugins(folders=invoked.settings.plugin_folders):
        complain(invoked.program, "note: plugins bring tools too; see them with: tools list --plugins")


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
    purge: Annotated[
        bool, typer.Option("--purge", help="Its history and its bundle too, for good, also if it was removed before.")
    ] = False,
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Remove a tool."""
    invoked = invocation(ctx, store, as_json)
    with invoked.catalogue() as catalogue:
        # The Brain removes whatever it is asked to; its tools name each other all the time.
        catalogue.delete(name, force=force or invoked.speaks_brain, purge=purge)
    if invoked.as_json:
        print_json({"removed": name, "purged": True} if purge else {"removed": name})
    else:
        print(f"{'Purged' if purge else 'Removed'} tool {name!r}{' and its history' if purge else ''}.")


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
    """Search names, tags, capabilities, descriptions and manuals; the best fit comes first."""
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
