"""The program as a process: how it starts, how it ends, and what it shows on a terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from tests.support.waiting import PATIENCE, wait_until
from tests.surfaces.cli.conftest import BIN, Cli, one_sentence

from toolcrib.surfaces.cli import app as application
from toolcrib.surfaces.cli.app import build_app

ROOT = Path(__file__).parents[3]


def every_command(command=None, path=("toolcrib",)):
    command = command or typer.main.get_command(build_app())
    children = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        yield from every_command(child, (*path, name))


@pytest.mark.parametrize("path", [path for path, _ in every_command()], ids=" ".join)
def test_every_command_explains_itself_with_an_example(cli: Cli, path: tuple[str, ...]):
    answer = cli(*path[1:], "--help")
    assert answer.status == 0
    assert " ".join(path) in answer.out
    text = " ".join(answer.out.split())
    assert f"Example: {' '.join(path)}" in text


def terminal(*command: str | Path, feed: bytes = b"", columns: int = 100, **variables: str) -> tuple[int, str]:
    """Run a command on a terminal of its own; its status and what it showed."""
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm"} | variables
    primary, secondary = pty.openpty()
    with subprocess.Popen(command, stdin=secondary, stdout=secondary, stderr=secondary, env=environment) as process:
        os.close(secondary)
        if feed:
            os.write(primary, feed)
        shown = b""
        while True:
            try:
                piece = os.read(primary, 4096)
            except OSError:  # the other end has closed
                break
            if not piece:
                break
            shown += piece
        process.wait(timeout=PATIENCE)
    os.close(primary)
    return process.returncode, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_terminal_gets_a_table_and_json_on_request(cli: Cli):
    cli("tools", "add", "--samples")
    status, shown = terminal(BIN / "toolcrib", "tools", "list", "--type", "browser")
    assert status == 0
    assert "Name" in shown.splitlines()[0] or "Name" in shown
    assert "playwright" in shown
    with pytest.raises(json.JSONDecodeError):
        json.loads(shown)
    status, shown = terminal(BIN / "toolcrib", "tools", "list", "--type", "browser", "--json")
    assert "playwright" in [tool["name"] for tool in json.loads(shown)]


@pytest.mark.parametrize("command", [["list"], ["show", "dash"], ["search", "dashes"]], ids=" ".join)
def test_a_terminal_shows_what_it_can_of_a_description(cli: Cli, home: Path, command: list[str]):
    dash = {"name": "dash", "description": "Draws dashes \N{EM DASH} long ones"}
    (home / "dash.json").write_text(json.dumps(dash), encoding="utf-8")
    cli("tools", "add", "-f", "dash.json")
    status, shown = terminal(BIN / "toolcrib", "tools", *command, PYTHONIOENCODING="latin-1")
    assert status == 0, shown
    assert "Draws dashes ? long ones" in shown


def test_a_description_cannot_steer_the_terminal(cli: Cli, home: Path):
    evil = {"name": "evil", "description": "\x1b]0;owned\x07\x1b[2J[red]harmless[/red]", "tool_type": "x\x1b[31m"}
    (home / "evil.json").write_text(json.dumps(evil))
    cli("tools", "add", "-f", "evil.json")
    for command in (["list"], ["show", "evil"], ["search", "harmless"]):
        primary, secondary = pty.openpty()
        with subprocess.Popen([BIN / "toolcrib", "tools", *command], stdout=secondary, stdin=secondary) as process:
            os.close(secondary)
            shown = b""
            while True:
                try:
                    shown += os.read(primary, 4096)
                except OSError:
                    break
            assert process.wait(timeout=PATIENCE) == 0
        os.close(primary)
        assert b"\x1b]0;" not in shown
        assert b"\x1b[2J" not in shown
        assert b"[red]harmless" in shown


def test_a_reader_that_leaves_is_no_error(cli: Cli):
    cli("tools", "add", "--samples")
    for reader, seen in (("head -1", "[\n"), ("true", "")):
        line = f"{BIN / 'toolcrib'} tools list | {reader}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], check=False, capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr, done.returncode) == (seen, "", 0)


def sleeps_over(pid: int, file: Path) -> bool:
    """Whether a process has opened ``file`` and waits."""
    asleep = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "S"
    return asleep and any(os.path.realpath(link) == str(file) for link in Path(f"/proc/{pid}/fd").iterdir())


def test_an_interrupt_ends_quietly(home: Path):
    fifo = home / "never"
    os.mkfifo(fifo)
    # A shell starts what runs in the background with interrupts ignored, and a child inherits that.
    listening = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", listening, str(BIN / "toolcrib"), "tools", "add", "-f", str(fifo)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            writing = os.open(fifo, os.O_WRONLY)  # returns when the program is about to read
            wait_until(lambda: sleeps_over(process.pid, fifo))
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=PATIENCE)
            os.close(writing)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_defect_is_told_in_one_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    def broken() -> None:
        raise ZeroDivisionError("division by\nzero")

    monkeypatch.setattr(application, "build_app", lambda: lambda *_, **__: broken())
    answer = cli("tools", "list")
    assert answer.status == 70
    assert "internal error, ZeroDivisionError: division by zero; please report" in one_sentence(answer)


def test_without_its_packages_the_program_says_what_to_install(home: Path):
    hidden = "import sys; sys.modules['typer'] = None; from toolcrib.surfaces.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    advice = "the command line is not installed; run in Toolcrib's folder: pip install '.[cli]'"
    assert done.stderr == f"toolcrib: {advice}\n"


def test_the_program_starts_without_loading_what_it_does_not_need():
    code = (
        "import sys; from toolcrib.surfaces.cli import run; run('toolcrib', ['--help']); "
        "print([name for name in ('pydantic', 'asyncio', 'sqlite3', 'httpx', 'playwright', 'starlette') "
        "if name in sys.modules])"
    )
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60, env=unmeasured
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_version_is_printed(cli: Cli, shell: Cli):
    import toolcrib

    assert cli("--version").out.strip() == toolcrib.__version__
    assert shell("python", "-m", "toolcrib", "--version").out.strip() == toolcrib.__version__


def test_the_shell_completes_commands_and_tool_names(cli: Cli):
    cli("tools", "add", "--samples")
    for words, expected in (("toolcrib tools sh", "show"), ("toolcrib tools show playw", "playwright")):
        environment = os.environ | {
            "_TOOLCRIB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)
        }  # fmt: skip
        done = subprocess.run(
            [BIN / "toolcrib"], check=False, capture_output=True, text=True, env=environment, timeout=60
        )
        assert done.stdout.split() == [expected]


def test_the_tour_shows_what_it_says(shell: Cli):
    tour = shell("toolcrib", "tour")
    assert tour.status == 0
    assert tour.err == ""
    for line in ("['count_words']", "True 3", "invalid_arguments | ", "approval_required | ", "at rest"):
        assert line in tour.out
    assert "timeout | tool 'spin' passed its deadline of 1 s; it was stopped" in tour.out
