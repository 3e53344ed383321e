"""Tools that are uploaded bundles, run in a sandbox.

A Python bundle has ``code/function.py`` with ``class AgentSpaceV1Tool(tool_id, tool_data)`` and its method
``execute(input_data)``; a program bundle has one file in ``code/``, run with the call as JSON and the path of its
output file. ``tool_data`` is the tool's entry without the manual. A Python bundle finds its credentials in it; a
program finds them in the variable ``TOOLCRIB_CREDENTIALS``, since everybody on a machine can read a command line.

A caller that sets ``command`` in the context's values reaches ``execute_command(name, data)`` instead.
"""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.adapters.runners.bound import BoundRunner, Credentials, open_credentials
from toolcrib.adapters.runners.sandbox import Ended, Sandbox
from toolcrib.adapters.runners.unpacking import BundleCache, Unpacked
from toolcrib.calling.blocking import OUTSIDE, in_thread
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    DeniedError,
    InvalidArgumentsError,
    InvalidBundleError,
    ToolBusyError,
    ToolFailedError,
    ToolTimeoutError,
)
from toolcrib.core.json import read_json
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.formats.bundle import bundle_digest
from toolcrib.formats.toolentry import spec_to_entry

_MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""What Linux takes as one argument of a command."""


@dataclass(eq=False)
class BundleRunner(BoundRunner):
    """Runs bundles out of a cache in a sandbox, so many at once."""

    cache: BundleCache
    sandbox: Sandbox
    max_running: int = 16

    def __post_init__(self) -> None:
        self._running = threading.BoundedSemaphore(self.max_running)

    async def __call__(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, credentials: Credentials | None = None
    ) -> Any:
        spec = tool.spec
        digest = bundle_digest(spec.binding.source_code_link)
        if digest is None:
            link = spec.binding.source_code_link
            raise DeniedError(
                f"the code of {spec.name!r} is not here but at {link!r}; upload it as a bundle",
                rule="uploaded bundles only",
            )
        if not self._running.acquire(blocking=False):
            raise ToolBusyError(f"{self.max_running} bundles are running already; try {spec.name!r} again later")
        try:
            try:
                lease = await in_thread(OUTSIDE, self.cache.lease, digest)
            except InvalidBundleError as error:
                raise ToolFailedError(spec.name, _first_line(error), cause_type=type(error).__name__) from None
            with lease:
                secrets = await open_credentials(credentials)
                command = str(context.values.get("command", ""))
                return await self._run(spec, lease.unpacked, arguments, command, secrets)
        finally:
            self._running.release()

    async def _run(
        self, spec: ToolSpec, unpacked: Unpacked, arguments: dict[str, Any], command: str, secrets: Mapping[str, Any]
    ) -> Any:
        seconds = self.seconds_for(spec)
        call, environment = _call(spec, unpacked.kind, arguments, command, secrets)
        ended = await self.sandbox.run(unpacked.kind, unpacked.path, call, seconds=seconds, environment=environment)
        if ended.timed_out:
            raise ToolTimeoutError(spec.name, seconds)
        if ended.too_large:
            raise ToolFailedError(spec.name, f"its result is larger than {self.sandbox.limits.output_bytes:,} bytes")
        if unpacked.kind == "program":
            return _program_result(spec.name, ended)
        return _python_result(spec.name, ended, unpacked.requirements)


def _call(
    spec: ToolSpec, kind: str, arguments: dict[str, Any], command: str, secrets: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    entry = spec_to_entry(spec)
    data = {name: value for name, value in entry.items() if name != "tool_man_page_doc"}
    data["default_tool_usage_credentials"] = secrets if kind == "python" else {}
    call = {
        "tool_id": spec.name,
        "tool_data": data,
        "mode": "execute_command" if command else "execute",
        "command": command,
        "input": arguments,
    }
    if kind == "python":
        return call, {}
    if len(json.dumps(call).encode()) > _MAX_ARGUMENT_BYTES:
        raise InvalidArgumentsError(
            f"the arguments of {spec.name!r} are too large for a program, which takes 128 KiB in all", tool=spec.name
        )
    return call, {"TOOLCRIB_CREDENTIALS": json.dumps(secrets)} if secrets else {}


def _python_result(name: str, ended: Ended, requirements: str) -> Any:
    answer = _parsed(ended.output)
    if isinstance(answer, dict) and "value" in answer:
        return answer["value"]
    if not isinstance(answer, dict) or not isinstance(answer.get("error"), dict):
        raise ToolFailedError(name, _how_it_ended(ended))
    error = answer["error"]
    kind, message = str(error.get("type")), str(error.get("message"))
    reason = f"{kind}: {message}" if message else kind
    if error.get("missing"):
        wanted = ", ".join(line for line in re.findall(r"^\s*([^#\s-][^#\n]*)", requirements, re.MULTILINE))
        listed = f"; its requirements are: {wanted:.500}" if wanted else "; it lists no requirements"
        reason = f"the module {error['missing']!r} is not installed for the service{listed}"
    failure = ToolFailedError(name, reason, cause_type=kind)
    failure.add_note(f"In the tool's process:\n{error.get('trace', '')}")
    raise failure


def _program_result(name: str, ended: Ended) -> Any:
    if ended.status or ended.output is None:
        raise ToolFailedError(name, _how_it_ended(ended))
    try:
        return read_json(ended.output)
    except ValueError:
        return ended.output.decode(errors="replace")


def _parsed(output: bytes | None) -> Any:
    try:
        return read_json(output or b"")
    except ValueError:
        return None


def _how_it_ended(ended: Ended) -> str:
    status = ended.status if ended.status < 128 else 128 - ended.status  # a launcher says 128 + n for signal n
    if status < 0:
        try:
            how = f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            how = f"ended with status {ended.status}"
    else:
        how = f"ended with status {status}" if status else "left no result"
    said = f": {ended.messages[-500:]}" if ended.messages else ""
    return f"its process {how}{said}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
