"""``pipeline check | run``: bricks stacked in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import Exit
from toolcrib.core.json import as_json
from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, StoreOption, example, invocation
from toolcrib.surfaces.cli.output import complain, print_json, print_table, printable
from toolcrib.surfaces.wording import counted

if TYPE_CHECKING:
    from toolcrib.bootstrap import System
    from toolcrib.stacking import Item, Pipeline, Progress, RunReport

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A pipeline in JSON or TOML.", show_default=False)]


def register(app: typer.Typer) -> None:
    pipeline = typer.Typer(help="Check and run pipelines of bricks.", no_args_is_help=True)
    pipeline.command("check", epilog=example("pipeline check books.toml"))(check)
    pipeline.command("run", epilog=example("pipeline run books.toml --journal books.journal"))(run)
    app.add_typer(pipeline, name="pipeline")


def check(ctx: typer.Context, file: FileArgument, store: StoreOption = "", as_json: JsonOption = False) -> None:
    """Say whether a pipeline can run: its pairs, the types that meet, its packages and its keys."""
    invoked = invocation(ctx, store, as_json)
    with invoked.system() as system:
        report = _load(system, file).check()
    if invoked.wants_json:
        print_json({"ok": report.ok, "tools": report.tools, "problems": report.problems, "joints": report.joints})
    else:
        print(f"{report.name}: {' > '.join(report.tools)}")
        for line in report.problems or ["It can run."]:
            print(f"  {printable(line)}")
    raise typer.Exit(0 if report.ok else Exit.NO)


def run(
    ctx: typer.Context,
    file: FileArgument,
    start: Annotated[
        list[str] | None, typer.Option("--start", metavar="URL", help="Begin here instead.", show_default=False)
    ] = None,
    journal: Annotated[
        str, typer.Option(metavar="FILE", help="Keep notes here, to go on after a crash.", show_default=False)
    ] = "",
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write the items as JSON Lines; - is stdout.")
    ] = "",
    store: StoreOption = "",
    as_json: JsonOption = False,
) -> None:
    """Run a pipeline with a progress bar. Exits with 1 if a request failed."""
    import asyncio
    from dataclasses import replace

    from toolcrib.bootstrap import address_rules
    from toolcrib.core.addresses import fence
    from toolcrib.surfaces.cli.running import approval

    invoked = invocation(ctx, store, as_json)
    with (
        invoked.system() as system,
        fence(address_rules(system.settings, own=True)),
        _items_to(output) as on_item,
        _progress() as on_progress,
    ):
        calls = replace(system.calls, approve=approval(yes=False))
        pipeline = _load(system, file)
        report = asyncio.run(
            pipeline.run(start or None, journal=journal or None, on_progress=on_progress, on_item=on_item, calls=calls)
        )
    if output != "-":
        _print_report(invoked, report)
    for failure in report.failures[:5]:
        complain(invoked.program, f"{failure.url}: {failure.tool!r} failed: {failure.reason}")
    for selector in report.unmatched:
        complain(invoked.program, str(selector))
    raise typer.Exit(0 if report.ok else Exit.NO)


def _load(system: System, file: str) -> Pipeline:
    """The pipeline of the tools in the store, as these say: what ``tools check-compat`` refuses, it is refused."""
    from toolcrib.stacking import Pipeline, read_definition

    secrets, specs_of = system.settings.secrets, system.catalogue.specs_of
    return Pipeline(read_definition(file), system.bricks, secrets=secrets, specs_of=specs_of)


@contextmanager
def _items_to(output: str) -> Iterator[Callable[[Item], None] | None]:
    if not output:
        yield None
    elif output == "-":
        yield lambda item: print_json(getattr(item, "data", item), indent=None)
    else:
        with Path(output).open("w", encoding="utf-8") as file:
            yield lambda item: print(json.dumps(as_json(getattr(item, "data", item)), ensure_ascii=False), file=file)


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None] | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("")

        def show(progress: Progress) -> None:
            done = progress.done + progress.failed
            bar.update(task, completed=done, total=progress.known, description=printable(progress.url)[:60])

        yield show


def _print_report(invoked: Invocation, report: RunReport) -> None:
    if invoked.wants_json:
        print_json(_summary(report))
        return
    requests, items = counted(report.done, "request"), counted(report.items, "item")
    print(
        f"{report.outcome}: {requests} done, {report.failed} failed, {report.skipped} done before; "
        f"{items} in {report.seconds:.1f} s"
    )
    steps = [_summary(step) for step in report.steps]
    if steps:
        columns = tuple(steps[0])
        print_table(columns, [tuple(_rounded(step[column]) for column in columns) for step in steps])


def _summary(value: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(value)


def _rounded(value: object) -> object:
    return f"{value:.3g}" if isinstance(value, float) else value
