"""What a bundle is asked, and what its answer means."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolcrib.adapters.runners.bound import check_values
from toolcrib.adapters.runners.box import Ended
from toolcrib.core.errors import InvalidArgumentsError, ToolFailedError
from toolcrib.core.json import read_json, write_json
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.toolentry import spec_to_entry

_MAX_ARGUMENT_BYTES = 128 * 1024 - 1
"""What Linux takes as one argument of a command."""
_MAX_LISTED = 20
_MAX_KIND, _MAX_MESSAGE = 200, 4000
"""Letters of what a tool says of its failure."""
_NO_NETWORK = re.compile(r"name resolution|Name or service|is unreachable|\[Errno 13\] Permission denied(?!:)")
"""What libraries say where there is no network; of a file that may not be read they name the path."""


@dataclass(frozen=True, slots=True)
class BundleCall:
    """One call of a bundle: what is asked, by whom, with what, and by when.

    Two callers may have the same name: ``caller`` tells both, and what else tells them apart.
    """

    spec: ToolSpec
    digest: str
    caller: tuple[str, str]
    arguments: dict[str, Any]
    command: str
    secrets: Mapping[str, Any]
    seconds: float
    deadline: float

    @property
    def key(self) -> Hashable:
        """Calls of one key may be answered by one process, one after the other."""
        secrets = hashlib.sha256(json.dumps(self.secrets, sort_keys=True).encode()).digest() if self.secrets else b""
        return self.digest, self.spec.digest, self.caller, secrets

    def first_question(self) -> bytes:
        """For a Python bundle that has heard nothing yet."""
        return write_json({**self._introduction(self.secrets), **self._what()})

    def next_question(self) -> bytes:
        """For one that has been introduced."""
        return write_json(self._what())

    def program_question(self) -> bytes:
        """The command line and the variables of a program. InvalidArgumentsError if they are too large for one."""
        mode = "execute_command" if self.command else "execute"
        said = json.dumps({**self._introduction({}), "mode": mode, **self._what()})
        if len(said) > _MAX_ARGUMENT_BYTES:  # JSON in ASCII: a character is a byte
            raise InvalidArgumentsError(
                f"the arguments of {self.spec.name!r} are too large for a program, which takes 128 KiB in all",
                tool=self.spec.name,
            )
        environment = {"TOOLCRIB_CREDENTIALS": json.dumps(self.secrets)} if self.secrets else {}
        return json.dumps({"call": said, "environment": environment}).encode()

    def _what(self) -> dict[str, Any]:
        return {"command": self.command, "input": self.arguments}

    def _introduction(self, credentials: Mapping[str, Any]) -> dict[str, Any]:
        data = {name: value for name, value in spec_to_entry(self.spec).items() if name != "tool_man_page_doc"}
        data["default_tool_usage_credentials"] = credentials
        return {"tool_id": self.spec.name, "tool_data": data}


@dataclass(frozen=True, slots=True)
class Answered:
    """What a Python bundle returned; ``alone`` says that nothing of the call is left in its process."""

    value: Any
    alone: bool


def python_answer(name: str, said: bytes, requirements: str) -> Answered:
    """Raises ToolFailedError if it raised, or if what it said is no answer."""
    try:
        answer = _read(name, said)
    except ValueError as error:
        raise ToolFailedError(name, f"its result cannot be read: {error}") from None
    if isinstance(answer, dict) and "value" in answer:
        return Answered(answer["value"], answer.get("alone") is True)
    if not isinstance(answer, dict) or not isinstance(answer.get("error"), dict):
        raise ToolFailedError(name, "its process wrote something else than a result")
    raised = answer["error"]
    kind, message = str(raised.get("type"))[:_MAX_KIND], str(raised.get("message"))[:_MAX_MESSAGE]
    reason = f"{kind}: {message}" if message else kind
    if raised.get("missing"):
        listed = ", ".join(islice(_requirements(requirements), _MAX_LISTED))
        listed = f"its requirements are: {listed:.500}" if listed else "it lists no requirements"
        reason = f"the module {str(raised['missing'])[:_MAX_KIND]!r} is not installed for the service; {listed}"
    failure = ToolFailedError(name, reason, cause_type=kind)
    failure.add_note(f"In the tool's process:\n{str(raised.get('trace', ''))[-_MAX_MESSAGE:]}")
    raise failure


def program_answer(name: str, ended: Ended) -> Any:
    if ended.status or ended.output is None:
        raise ToolFailedError(name, how_it_ended(ended))
    try:
        return _read(name, ended.output)
    except ValueError:
        pass
    try:
        return ended.output.decode()
    except UnicodeDecodeError:
        return ended.output


def _read(name: str, said: bytes) -> Any:
    """The JSON value of a result, or ValueError."""
    check_values(name, said)
    return read_json(said)


def without_network(failure: ToolFailedError) -> ToolFailedError:
    """The failure of a bundle that had no network, with the way out if that may be why."""
    if not _NO_NETWORK.search(str(failure)):
        return failure
    way_out = 'a bundle has a network only if its metadata ask for one: "tool_metadata": {"network": true}'
    told = ToolFailedError(failure.name, f"{failure.reason}; {way_out}", cause_type=failure.cause_type)
    for note in getattr(failure, "__notes__", ()):
        told.add_note(note)
    return told


def how_it_ended(ended: Ended) -> str:
    if ended.exceeded:
        how = f"used more than {ended.exceeded:,} bytes of memory in all"
    elif ended.status < 0:
        try:
            how = f"was ended by {signal.Signals(-ended.status).name}"
        except ValueError:
            how = f"ended with status {ended.status}"
    else:
        how = f"ended with status {ended.status}" if ended.status else "left no result"
    said = f": {ended.messages[-500:]}" if ended.messages else ""
    return f"its process {how}{said}"


def _requirements(text: str) -> Iterator[str]:
    """The packages that a ``requirements.txt`` names."""
    for line in text.splitlines():
        wanted = line.partition("#")[0].strip()
        if wanted and not wanted.startswith("-"):
            yield wanted
