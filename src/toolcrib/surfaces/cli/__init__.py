"""The command line. ``toolcrib`` is the program; ``brain`` is the same one on The Brain's own file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from toolcrib.core.errors import Exit, MissingDependencyError

EXIT_INTERRUPTED = 130
"""What shells say of a program that Ctrl-C ended."""
_NEEDED = frozenset({"typer", "rich"})


def main() -> None:
    _start("toolcrib")


def brain() -> None:
    _start("brain")


def _start(program: str) -> None:
    os.umask(0o077)  # whatever the program writes is its owner's alone
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal shows of a text what it can; stderr does so already
    raise SystemExit(run(program))


def run(program: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status; nothing is raised."""
    try:
        from toolcrib.surfaces.cli.app import run_app

        return int(run_app(program, sys.argv[1:] if arguments is None else arguments))
    except ModuleNotFoundError as error:  # a command's own become a sentence before they come here
        if error.name not in _NEEDED:
            raise
        print(f"{program}: {MissingDependencyError('the command line', extra='cli')}", file=sys.stderr)
        return Exit.USAGE
    except KeyboardInterrupt:  # while it starts, or outside of a command, which ends by itself
        return EXIT_INTERRUPTED
