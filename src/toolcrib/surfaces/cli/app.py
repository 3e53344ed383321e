"""The program: its commands put together, and every way it can end.

A command function parses, calls and prints. What it raises comes here and becomes one sentence and an exit status.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from toolcrib.core.errors import Exit, ToolcribError
from toolcrib.surfaces.cli import (
    EXIT_INTERRUPTED,
    audit,
    browser,
    catalogue,
    exchange,
    keys,
    mcp,
    pipelines,
    running,
    service,
    setup,
    stacking,
    testing,
    tour,
)
from toolcrib.surfaces.cli.invocation import Invocation, JsonOption, StoreOption
from toolcrib.surfaces.cli.output import complain

EXIT_DEFECT = 70
"""An error that is nobody's but ours: EX_SOFTWARE of sysexits.h."""

_UsageProblem = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
_HELP_WAS_SHOWN = "NoArgsIsHelpError"
"""How the library ends a group that was called alone; its class has no public name."""


def build_app() -> typer.Typer:
    app = typer.Typer(
        help="The tool registry for AI agents: define, find, stack, hand over, run and govern tools.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    tools = typer.Typer(help="Keep, find, stack and run tools.", no_args_is_help=True)
    app.add_typer(tools, name="tools")
    for part in (catalogue, stacking, running, testing, exchange):
        part.register(tools)
    for part in (pipelines, setup, service, audit, keys, browser, mcp, tour):
        part.register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from toolcrib import __version__

        print(__version__)
        raise typer.Exit


def _global_options(
    ctx: typer.Context,
    store: StoreOption = "",
    as_json: JsonOption = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    del version
    ctx.obj = Invocation(ctx.info_name or "toolcrib", store, as_json)


def run_app(program: str, arguments: Sequence[str]) -> int:
    """The exit status; every error has been told on stderr."""
    warnings = _Warnings(program)
    log = logging.getLogger("toolcrib")
    log.addHandler(warnings)
    try:
        status = build_app()(list(arguments), prog_name=program, standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            return _reader_left()
        raise
    except Exception as error:  # noqa: BLE001  the outermost boundary: whatever it is, the user reads a sentence
        return _told(program, error)
    finally:
        log.removeHandler(warnings)


class _Warnings(logging.Handler):
    """What the library warns of, such as a broken plugin, in the same words as an error."""

    def __init__(self, program: str) -> None:
        super().__init__(logging.WARNING)
        self._program = program

    def emit(self, record: logging.LogRecord) -> None:
        complain(self._program, f"{record.levelname.lower()}: {record.getMessage()}")


def _told(program: str, error: Exception) -> int:
    if isinstance(error, ToolcribError):
        complain(program, error.message)
        return error.answer.exit
    if type(error).__name__ == _HELP_WAS_SHOWN:
        return Exit.DONE
    if isinstance(error, _UsageProblem):
        complain(program, _usage(error))
        return Exit.USAGE
    if isinstance(error, typer.Abort):
        complain(program, "stopped")
        return EXIT_INTERRUPTED
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        complain(program, f"{where}{error.strerror.lower()}")
        return Exit.FAILED
    logging.getLogger("toolcrib").debug("internal error", exc_info=error)
    complain(
        program, f"internal error, {type(error).__name__}: {error}; please report it with the command that you ran"
    )
    return EXIT_DEFECT


def _usage(error: Exception) -> str:
    text = str(getattr(error, "format_message", error.__str__)())
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else ""
    sentence = " ".join(text.split()).rstrip(".?").replace(". Did you mean", "; did you mean")
    sentence = sentence[:1].lower() + sentence[1:]
    return f"{sentence}; see: {path} --help" if path else sentence


def _reader_left() -> int:
    """Whoever read our output has gone, as ``head`` does; that is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
