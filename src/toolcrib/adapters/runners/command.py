"""Tools that are programs: the arguments go in as one JSON object, what the program prints is the result.

A command comes from whoever published the tool, so it is started only if the setting ``tool_commands`` lists it word
for word. There is no shell. The program sees a few variables of its surroundings and the keys that the tool's
``required_config`` names, and nothing else of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolcrib.adapters.runners.bound import BoundRunner, Credentials, check_values
from toolcrib.calling import keeper
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import DeniedError, MissingConfigError, ToolFailedError
from toolcrib.core.json import read_json
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool

_START = Path(__file__).with_name("command_start.py")
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
_OURS = "TOOLCRIB_"
_MAX_BYTES = 10 * 1024 * 1024
_LAST_WORDS = 2000
_PIECE = 65536


@dataclass(eq=False)
class CommandRunner(BoundRunner):
    """One process for each call, killed at the deadline with everything that it started."""

    commands: Sequence[str] = ()
    secrets: Callable[[str], str | None] = lambda _key: None
    environ: Mapping[str, str] = field(default_factory=dict)

    async def __call__(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, credentials: Credentials | None = None
    ) -> Any:
        spec = tool.spec
        words = self._words(spec)
        if credentials is not None:
            raise MissingConfigError(
                f"the credentials of {spec.name!r} fit no command; name the variables it needs in 'required_config'"
            )
        environ = self._environ(spec)
        async with self.deadline(spec, context):
            said = await _run(spec.name, words, environ, json.dumps(arguments).encode())
        return _result(spec.name, said)

    def check(self, spec: ToolSpec) -> None:
        """Raises DeniedError if the tool's command may not be started, ToolFailedError if it cannot be."""
        self._words(spec)

    def _words(self, spec: ToolSpec) -> list[str]:
        command = spec.binding.command
        if command not in self.commands:
            raise DeniedError(
                f"{spec.name!r} may not start {command!r}; list that command in TOOLCRIB_TOOL_COMMANDS, word for word",
                rule="tool_commands",
            )
        try:
            program, *words = shlex.split(command)
        except ValueError as error:
            raise ToolFailedError(spec.name, f"its command {command!r} cannot be read: {error}") from None
        found = shutil.which(program, path=self.environ.get("PATH"))
        if found is None:
            raise ToolFailedError(spec.name, f"there is no program {program!r} for its command {command!r}")
        return [found, *words]

    def _environ(self, spec: ToolSpec) -> dict[str, str]:
        if refused := next((key for key in spec.required_config if key.upper().startswith(_OURS)), None):
            raise DeniedError(f"{spec.name!r} may not read {refused!r}, a setting of Toolcrib", rule="tool_commands")
        asked = {key: self.secrets(key) for key in spec.required_config}
        if missing := next((key for key, value in asked.items() if not value), None):
            raise MissingConfigError(f"{spec.name!r} needs the key {missing!r}; set it in the environment")
        passed_on = {key: self.environ[key] for key in _PASSED_ON if key in self.environ}
        return passed_on | {key: value for key, value in asked.items() if value and key not in passed_on}


async def _run(name: str, words: Sequence[str], environ: Mapping[str, str], given: bytes) -> bytes:
    """What the program prints. It is dead, and whatever it started, when this ends, however it ends."""
    life_end, life = os.pipe()
    around = [sys.executable, "-I", str(keeper.__file__), str(life_end), str(_START)]
    try:
        process = await asyncio.create_subprocess_exec(
            *around, *words, stdin=-1, stdout=-1, stderr=-1, env=environ, pass_fds=(life_end,), start_new_session=True
        )
    except OSError as error:
        os.close(life)
        raise ToolFailedError(name, f"its command cannot be started: {error.strerror}") from None
    finally:
        os.close(life_end)
    living = contextlib.ExitStack()
    living.callback(os.close, life)
    try:
        said, complaint, _ = await asyncio.gather(
            _printed(process.stdout, living.close), _last_words(process.stderr), _told(process.stdin, given)
        )
        status = await process.wait()
    finally:
        living.close()
        await asyncio.shield(_ended(process))
    if len(said) > _MAX_BYTES:
        raise ToolFailedError(name, f"its command printed more than {_MAX_BYTES:,} bytes")
    if status:
        raise ToolFailedError(name, f"its command ended with status {status}: {complaint or 'it said nothing'}")
    return said


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait until it is dead: asyncio knows that only when everything has been read that it printed."""
    for stream in (process.stdout, process.stderr):
        while stream is not None and await stream.read(_PIECE):
            pass
    await process.wait()


async def _told(stdin: asyncio.StreamWriter | None, given: bytes) -> None:
    assert stdin is not None
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it does not want to know
        stdin.write(given)
        await stdin.drain()
    stdin.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await stdin.wait_closed()


async def _printed(stdout: asyncio.StreamReader | None, end: Callable[[], None]) -> bytes:
    """All of it, or a little more than may be: then the program is ended."""
    assert stdout is not None
    said = bytearray()
    while piece := await stdout.read(_PIECE):
        if len(said) <= _MAX_BYTES:
            said += piece
            if len(said) > _MAX_BYTES:
                end()
    return bytes(said)


async def _last_words(stderr: asyncio.StreamReader | None) -> str:
    assert stderr is not None
    heard = b""
    while piece := await stderr.read(_PIECE):
        heard = (heard + piece)[-_LAST_WORDS:]
    return " ".join(heard.decode("utf-8", "replace").split())


def _result(name: str, said: bytes) -> Any:
    if not said.strip():
        return None
    check_values(name, said)
    try:
        return read_json(said)
    except ValueError as error:
        raise ToolFailedError(name, f"its command printed something that is not JSON: {error}") from None
