"""``browser``: a browser session in the terminal, one tool call a line."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from toolcrib.surfaces.cli.desk import Desk, JsonOption, desk_of, example
from toolcrib.surfaces.cli.output import complain, printable
from toolcrib.surfaces.cli.running import approval, tell
from toolcrib.surfaces.errors import EXIT_NO

if TYPE_CHECKING:
    from toolcrib.registry import ToolRegistry

_HELP = "A tool and its arguments, such as: goto --url https://example.com  (also: tools, help TOOL, quit)"


def register(app: typer.Typer) -> None:
    app.command("browser", epilog=example("browser", "browser https://example.com --show"))(browser)


def browser(
    ctx: typer.Context,
    url: Annotated[str, typer.Argument(metavar="[URL]", help="Where to begin.", show_default=False)] = "",
    show: Annotated[bool, typer.Option("--show", help="Show the browser's window.", show_default=False)] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve dangerous tools.", show_default=False)] = False,
    as_json: JsonOption = False,
) -> None:
    """Drive a browser by hand: every line is a call of one of the browser tools, also from a pipe."""
    import asyncio

    desk = desk_of(ctx, as_json=as_json)
    raise typer.Exit(asyncio.run(_session(desk, url, headless=not show, yes=yes)))


async def _session(desk: Desk, url: str, *, headless: bool, yes: bool) -> int:
    from toolcrib.settings import load_settings
    from toolcrib.toolsets.browser import BrowserSession, browser_registry

    async with BrowserSession(chromium=load_settings().chromium, headless=headless) as session:
        registry = browser_registry(session, approve=approval(yes))
        status = 0
        if url:
            status = await call(desk, registry, f"goto --url {shlex.quote(url)}")
        interactive = sys.stdin.isatty()
        if interactive:
            print(_HELP)
        while (line := await _read_line(interactive)) is not None:
            if line in ("quit", "exit"):
                break
            if line:
                status = await call(desk, registry, line) or status
        return 0 if interactive else EXIT_NO if status else 0


async def _read_line(interactive: bool) -> str | None:
    import asyncio

    def read() -> str | None:
        try:
            return input("browser> " if interactive else "").strip()
        except EOFError:
            return None

    return await asyncio.to_thread(read)


async def call(desk: Desk, registry: ToolRegistry, line: str) -> int:
    """One line: a tool with its arguments, or a question about the tools."""
    from toolcrib.core.errors import ToolcribError
    from toolcrib.surfaces.cli.arguments import typed_arguments

    try:
        words = shlex.split(line)
        if words[0] == "tools":
            _list(registry)
            return 0
        if words[0] == "help":
            _explain(registry, words[1:])
            return 0
        tool = registry.get(words[0])
        result = await registry.execute(tool.name, typed_arguments(tool.spec, words[1:]))
    except (ToolcribError, ValueError) as error:
        complain(desk.program, str(error))
        return EXIT_NO
    return tell(desk, result)


def _list(registry: ToolRegistry) -> None:
    for tool in registry:
        print(f"{tool.name:24} {printable(tool.description.partition('. ')[0])}")


def _explain(registry: ToolRegistry, words: list[str]) -> None:
    if not words:
        print(_HELP)
        return
    spec = registry.get(words[0]).spec
    print(printable(spec.description))
    required = spec.parameters.get("required", [])
    for name, schema in spec.parameters.get("properties", {}).items():
        kind = schema.get("type", "value")
        print(
            f"  --{name} {kind}{' (required)' if name in required else ''}  {printable(schema.get('description', ''))}"
        )
