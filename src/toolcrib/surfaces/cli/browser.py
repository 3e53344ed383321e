"""``browser``: a browser session in the terminal, one tool call a line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolcrib.core.errors import Exit
from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, example, invocation
from toolcrib.surfaces.cli.output import complain, printable
from toolcrib.surfaces.cli.running import approval, tell

if TYPE_CHECKING:
    from toolcrib.registry import ToolRegistry

Run = Callable[[Coroutine[Any, Any, Any]], Any]

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
    invoked = invocation(ctx, as_json=as_json)
    interactive = sys.stdin.isatty()
    with _registry(headless=not show, yes=yes) as (registry, run):
        statuses = [_follow(invoked, registry, run, line) for line in _lines(url, interactive)]
    raise typer.Exit(Exit.NO if any(statuses) and not interactive else 0)


@contextmanager
def _registry(*, headless: bool, yes: bool) -> Iterator[tuple[ToolRegistry, Run]]:
    """The tools of a session, and a way to run them. The loop has a thread of its own: pages live on while we wait."""
    from toolcrib.bootstrap import address_rules
    from toolcrib.calling.own_loop import OwnLoop
    from toolcrib.settings import load_settings
    from toolcrib.toolsets.browser import BrowserSession, browser_registry

    loop, settings = OwnLoop("browser"), load_settings()
    rules = address_rules(settings, own=True)
    session = BrowserSession(chromium=settings.chromium, headless=headless, addresses=rules)

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return loop.submit(work).result()

    try:
        with _uninterrupted():
            run(session.start())
        yield browser_registry(session, approve=approval(yes)), run
    finally:
        loop.close(session.close)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """What is started here does not hear Ctrl-C, which is meant for us and would take the browser away."""
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _lines(url: str, interactive: bool) -> Iterator[str]:
    if url:
        yield f"goto --url {shlex.quote(url)}"
    if interactive:
        import readline  # noqa: F401  arrow keys and history in input()

        print(_HELP)
    while True:
        try:
            line = input("browser> " if interactive else "").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if line in ("quit", "exit"):
            return
        if line:
            yield line


def _follow(invoked: Invocation, registry: ToolRegistry, run: Run, line: str) -> int:
    """One line: a tool with its arguments, or a question about the tools. The status it would end a program with."""
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
        result = run(registry.execute(tool.name, typed_arguments(tool.spec, words[1:])))
    except (ToolcribError, ValueError) as error:
        complain(invoked.program, str(error))
        return Exit.NO
    return tell(invoked, result)


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
