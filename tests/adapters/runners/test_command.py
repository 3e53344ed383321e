"""Tools that are programs: JSON in, JSON out, dead at the deadline, told nothing that is not theirs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import running
from tests.support.waiting import wait_until

from toolcrib import ToolSpec
from toolcrib.bootstrap import open_catalogue
from toolcrib.core.errors import (
    DeniedError,
    MissingConfigError,
    ToolcribError,
    ToolFailedError,
    ToolTimeoutError,
)
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings, load_settings

ANYTHING = {"type": "object", "additionalProperties": True}


def program(tmp_path: Path, code: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(code)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


def bound(tmp_path: Path, command: str, *, listed: bool = True, environ: Any = None, **fields: Any) -> Tool:
    settings = load_settings({"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **(environ or {})}, tmp_path)
    settings = settings.with_changes("test", data_dir=str(tmp_path), tool_commands=[command] if listed else [])
    catalogue = open_catalogue("memory:", settings)
    said = {"name": "mine", "description": "d", "parameters": ANYTHING, "binding": {"command": command}}
    catalogue.publish(ToolSpec.parse(said | fields))
    return catalogue.tool("mine")


async def test_the_arguments_go_in_and_the_result_comes_out_as_json(tmp_path: Path) -> None:
    command = program(tmp_path, "import json, sys\nprint(json.dumps([json.load(sys.stdin), sys.argv[1:]]))")
    tool = bound(tmp_path, f"{command} 'a  b' '$HOME;x'")
    given = {"text": "é\n", "many": "x" * 300_000}
    assert await tool.execute(given) == [given, ["a  b", "$HOME;x"]]


async def test_a_program_that_reads_nothing_and_says_nothing_gives_nothing(tmp_path: Path) -> None:
    assert await bound(tmp_path, program(tmp_path, "")).execute({"many": "x" * 300_000}) is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys\nsys.exit('it is\\nbroken')", "ended with status 1: it is broken"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "ended with status 137: it said nothing"),
        ("print('hello')", "printed something that is not JSON"),
        ("print('[' + '1,' * 300000 + '1]')", "holds more than 250,000 values"),
        ("print('x' * 11_000_000)", "printed more than 10,485,760 bytes"),
    ],
)
async def test_what_goes_wrong_is_told(tmp_path: Path, code: str, said: str) -> None:
    with pytest.raises(ToolFailedError, match=said):
        await bound(tmp_path, program(tmp_path, code)).execute({})


async def test_who_never_stops_talking_is_ended_too(tmp_path: Path) -> None:
    """More than anybody reads waits in its pipes when it dies."""
    endless = "import sys\nwhile True:\n    sys.{}.write('x' * 100_000)"
    with pytest.raises(ToolFailedError, match="printed more than"):
        await bound(tmp_path, program(tmp_path, endless.format("stdout"))).execute({})
    with pytest.raises(ToolTimeoutError):
        await bound(tmp_path, program(tmp_path, endless.format("stderr")), timeout_seconds=0.5).execute({})


async def test_at_the_deadline_it_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    child = f"{tmp_path}/child-of-a-command.py"
    Path(child).write_text("import time\ntime.sleep(600)", encoding="utf-8")
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {child!r}], start_new_session=True)\ntime.sleep(600)"
    )
    with pytest.raises(ToolTimeoutError) as caught:
        await bound(tmp_path, program(tmp_path, code), timeout_seconds=1.5).execute({})
    assert not caught.value.still_running
    wait_until(lambda: not running(child) and not running(str(tmp_path / "program.py")))


async def test_it_sees_the_keys_that_it_asks_for_and_nothing_else_of_ours(tmp_path: Path) -> None:
    command = program(tmp_path, "import json, os\nprint(json.dumps(dict(os.environ)))")
    environ = {"SOME_KEY": "k", "OTHER_SECRET": "s", "TOOLCRIB_SEAL_KEYS": "", "LANG": "C.UTF-8"}
    seen = await bound(tmp_path, command, environ=environ, required_config=["SOME_KEY"]).execute({})
    assert seen["SOME_KEY"] == "k"
    assert seen.keys() - {"LC_CTYPE"} == {"HOME", "LANG", "PATH", "SOME_KEY"}
    with pytest.raises(MissingConfigError, match="needs the key 'ABSENT_KEY'"):
        await bound(tmp_path, command, required_config=["ABSENT_KEY"]).execute({})
    with pytest.raises(DeniedError, match="'TOOLCRIB_SEAL_KEYS', a setting of Toolcrib"):
        await bound(tmp_path, command, required_config=["TOOLCRIB_SEAL_KEYS"]).execute({})
    with pytest.raises(MissingConfigError, match="fit no command"):
        await bound(tmp_path, command, credentials={"api_key": "k"}).execute({})


@pytest.mark.parametrize(
    ("command", "listed", "kind", "said"),
    [
        ("echo {}", False, DeniedError, "list that command in TOOLCRIB_TOOL_COMMANDS, word for word"),
        ("no-such-program-anywhere x", True, ToolFailedError, "there is no program 'no-such-program-anywhere'"),
        ("echo 'x", True, ToolFailedError, "cannot be read: No closing quotation"),
    ],
)
def test_what_cannot_be_started_is_told_before_a_call(
    tmp_path: Path, command: str, listed: bool, kind: type[ToolcribError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        bound(tmp_path, command, listed=listed)


def test_specs_from_before_commands_keep_their_digests() -> None:
    spec = ToolSpec(name="x", description="x")
    document = spec.to_dict()
    del document["binding"]["command"]
    assert ToolSpec.parse(json.loads(json.dumps(document))).digest == spec.digest
    assert spec.digest == "dbcc993a7d349ed204299b876d45b961197670c27e720b0698a08c3822db16f0"
    assert spec.with_changes(binding={"command": "x"}).digest != spec.digest
    assert Settings().tool_commands == ()
