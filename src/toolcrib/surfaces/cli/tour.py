"""``tour``: the registry in a minute. The code that is shown is the code that runs."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType
from typing import Any

import typer

from toolcrib.surfaces.cli.invocation import example


@dataclass(frozen=True, slots=True)
class Stop:
    title: str
    words: str
    code: str


STOPS = (
    Stop(
        "Define",
        "A function with annotations and a docstring is a tool. Its JSON Schema is read off the signature.",
        '''
        from toolcrib import BaseTool, SafetyLevel, ToolRegistry, tool

        @tool(category="text", tags=["count"])
        def count_words(text: str, unique: bool = False) -> int:
            """Count the words of a text.

            Args:
                text: What to count in.
                unique: Count each word once.
            """
            words = text.lower().split()
            return len(set(words) if unique else words)

        print(count_words.spec.parameters["properties"])
        ''',
    ),
    Stop(
        "Register",
        "A registry holds live tools. A class is a tool too.",
        '''
        class Greet(BaseTool):
            """Greet somebody by name."""

            tags = ("demo",)

            async def execute(self, who: str) -> str:
                return f"Good day, {who}."

        registry = ToolRegistry([count_words, Greet])
        print([found.name for found in registry.search("count words")])
        ''',
    ),
    Stop(
        "Hand over",
        "Every model's provider has its own shape for the same thing.",
        """
        import json

        print(json.dumps(registry.definitions("anthropic")[1], indent=2))
        """,
    ),
    Stop(
        "Execute",
        "registry.execute never raises: it answers with a result.",
        """
        result = await registry.execute("count_words", {"text": "a rose is a rose", "unique": True})
        print(result.success, result.data)
        """,
    ),
    Stop(
        "Refuse",
        "Wrong arguments never reach the code, and what is dangerous waits for somebody to approve it.",
        '''
        result = await registry.execute("count_words", {"text": "a rose", "unique": "perhaps"})
        print(result.error_code, "|", result.error)

        @tool(safety_level=SafetyLevel.DANGEROUS)
        def wipe(folder: str) -> None:
            """Delete a folder and everything in it."""
            raise AssertionError("this line is never reached")

        registry.register(wipe)
        result = await registry.execute("wipe", {"folder": "/"})
        print(result.error_code, "|", result.error)
        ''',
    ),
    Stop(
        "Kill",
        "A deadline is kept. In a process of its own even an endless loop ends on time, and the next call works.",
        '''
        @tool(isolation="process", timeout_seconds=1)
        def spin(forever: bool) -> str:
            """Turn in circles."""
            while forever:
                pass
            return "at rest"

        registry.register(spin)
        result = await registry.execute("spin", {"forever": True})
        print(result.error_code, "|", result.error)
        print((await registry.execute("spin", {"forever": False})).data)
        ''',
    ),
)


def register(app: typer.Typer) -> None:
    app.command("tour", epilog=example("tour"))(tour)


def tour() -> None:
    """A guided tour: define, register, hand over, execute, refuse, kill. Everything shown is really run."""
    import asyncio

    started = time.monotonic()
    show = _painter()
    asyncio.run(_walk(show))
    print(f"\nThat was the tour ({time.monotonic() - started:.1f} s). Next: docs/tutorial.md, and `toolcrib --help`.")


async def _walk(show: Callable[[int, Stop, str], None]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, stop in enumerate(STOPS, 1):
        source = textwrap.dedent(stop.code).strip()
        show(number, stop, source)
        sys.stdout.flush()
        outcome = eval(_compiled(source, stop.title), namespace)  # noqa: S307  our own lines, a few above
        if inspect.isawaitable(outcome):
            await outcome


def _compiled(source: str, title: str) -> CodeType:
    code: CodeType = compile(source, f"<tour: {title}>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


def _painter() -> Callable[[int, Stop, str], None]:
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console(highlight=False)

    def show(number: int, stop: Stop, source: str) -> None:
        console.print(f"\n[bold]{number}. {stop.title}[/bold]")
        console.print(stop.words)
        console.print()
        if console.is_terminal:
            console.print(Syntax(source, "python", background_color="default", word_wrap=True))
        else:
            print(textwrap.indent(source, "    "))
        console.print()

    return show
