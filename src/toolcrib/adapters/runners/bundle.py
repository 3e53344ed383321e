"""Tools that are uploaded bundles, run in a sandbox.

A Python bundle has ``code/function.py`` with ``class AgentSpaceV1Tool(tool_id, tool_data)`` and its method
``execute(input_data)``; a program bundle has one file in ``code/``, run with the call as JSON and the path of its
output file. ``tool_data`` is the tool's entry without the manual. A Python bundle finds its credentials in it; a
program finds them in the variable ``TOOLCRIB_CREDENTIALS``, since everybody on a machine can read a command line.

A caller that sets ``command`` in the context's values reaches ``execute_command(name, data)`` instead.
"""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import dataclass
from typing import Any

from toolcrib.adapters.runners.bound import BoundRunner, Credentials, open_credentials
from toolcrib.adapters.runners.box import Box
from toolcrib.adapters.runners.bundle_calls import (
    BundleCall,
    how_it_ended,
    program_answer,
    python_answer,
    without_network,
)
from toolcrib.adapters.runners.kept import KeptBoxes
from toolcrib.adapters.runners.network import Proxies, Proxy, wanted
from toolcrib.adapters.runners.sandbox import Sandbox
from toolcrib.adapters.runners.unpacking import BundleCache, Lease
from toolcrib.adapters.runners.walls import Walls
from toolcrib.adapters.runners.wire import TooLargeError
from toolcrib.calling.blocking import OUTSIDE, in_thread
from toolcrib.calling.places import CALLER, Places
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    DeniedError,
    InvalidBundleError,
    OverloadedError,
    ToolBusyError,
    ToolcribError,
    ToolFailedError,
    ToolTimeoutError,
)
from toolcrib.core.result import Ran
from toolcrib.core.tool import Tool
from toolcrib.formats.bundle import bundle_digest


@dataclass(eq=False)
class BundleRunner(BoundRunner):
    """Runs bundles out of a cache in a sandbox.

    Of ``max_running`` at once, one caller has a quarter and one tool a half; ``kept`` wait for the next call of the
    same code by the same caller. With ``proxies``, bundles that ask for a network have one, as far as these let them.
    """

    cache: BundleCache
    sandbox: Sandbox
    proxies: Proxies | None = None
    max_running: int = 16
    kept: int = 8

    def __post_init__(self) -> None:
        # Taken in this order: who waits for a later one must not hold what somebody else needs.
        endless = 1000 * self.max_running
        self._of_caller = Places("bundles of one caller", endless, each=self.max_running // 4)
        self._of_tool = Places("runs of this bundle", endless, each=self.max_running // 2)
        self._of_all = Places("bundles", self.max_running)
        self._boxes = KeptBoxes(self.kept)

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
        seconds = self.seconds_for(spec, context)
        deadline = time.monotonic() + seconds
        caller = CALLER.get() or context.principal
        held: list[tuple[Places, str]] = []
        try:
            await self._take_places(held, spec.name, caller, deadline)
            secrets = {} if credentials is None else await open_credentials(credentials)
            command = str(context.values.get("command", ""))
            who = caller, context.principal
            return await self._run(BundleCall(spec, digest, who, arguments, command, secrets, seconds, deadline))
        finally:
            for places, whose in held:
                places.give_back(whose)

    def close(self) -> None:
        """End what is kept."""
        self._boxes.close()

    async def _take_places(self, held: list[tuple[Places, str]], name: str, caller: str, deadline: float) -> None:
        """Wait for a turn, but not beyond the deadline. What is ``held`` is to be given back, also if this fails."""
        try:
            for places, whose in ((self._of_caller, caller), (self._of_tool, name), (self._of_all, caller)):
                await places.take_within(whose, deadline - time.monotonic())
                held.append((places, whose))
        except OverloadedError:
            raise ToolBusyError(
                f"so many bundles are running that {name!r} had no turn before its deadline; try again later"
            ) from None

    async def _run(self, call: BundleCall) -> Ran:
        network = wanted(call.spec, allowed=self.proxies is not None)
        if self.kept and (box := self._boxes.take(call.key)) is not None:
            box.begin(call.deadline)
            return await self._asked(box, call, call.next_question())
        try:
            lease = await self._leased(call.digest)
        except InvalidBundleError as error:
            raise ToolFailedError(call.spec.name, _first_line(error), cause_type=type(error).__name__) from None
        box, question = await self._started(call, lease, network=network is not None)
        way_out = box.take_way_out()
        if way_out is None or network is None or self.proxies is None:
            return await self._asked(box, call, question)
        proxy = self.proxies(network)
        try:
            await _started_for(box, proxy, way_out)
            return await self._asked(box, call, question)
        finally:
            await asyncio.shield(proxy.close())

    async def _leased(self, digest: str) -> Lease:
        """The code; if there is no room for it, those that only wait for a next call give up theirs."""
        try:
            return await in_thread(OUTSIDE, self.cache.lease, digest)
        except OverloadedError:
            if not await self._boxes.end_idle():
                raise
        return await in_thread(OUTSIDE, self.cache.lease, digest)

    async def _started(self, call: BundleCall, lease: Lease, *, network: bool) -> tuple[Box, bytes]:
        try:
            program = lease.unpacked.kind == "program"
            question = call.program_question() if program else call.first_question()
        except BaseException:
            lease.release()
            raise
        try:
            box = await self.sandbox.started(lease.unpacked, call.deadline, network=network, on_end=lease.release)
        except TimeoutError:
            raise ToolTimeoutError(call.spec.name, call.seconds) from None
        return box, question

    async def _asked(self, box: Box, call: BundleCall, question: bytes) -> Ran:
        """The answer of the tool in the box, which is then kept for the next call, or dead."""
        facts = Walls(box.walls).facts
        keep = False
        try:
            await box.tell(question, call.deadline)
            if box.unpacked.kind == "program":
                value = await self._left(box, call)
            else:
                value, keep = await self._answered(box, call)
            return Ran(value, facts)
        except ToolcribError as error:
            has_none = "network" in box.walls and not box.has_way_out
            told = without_network(error) if has_none and isinstance(error, ToolFailedError) else error
            told.facts = {**told.facts, **facts}
            raise told from None
        finally:
            if keep and self.kept and box.reusable:
                self._boxes.keep(call.key, box)
            else:
                await asyncio.shield(box.end())

    async def _answered(self, box: Box, call: BundleCall) -> tuple[Any, bool]:
        """What a Python bundle returned, and whether it may be asked again."""
        name = call.spec.name
        try:
            said = await box.answer(call.deadline)
        except TimeoutError:
            raise ToolTimeoutError(name, call.seconds) from None
        except TooLargeError:
            raise self._too_large(name) from None
        except EOFError:
            raise ToolFailedError(name, how_it_ended(await box.ended())) from None
        answered = python_answer(name, said, box.unpacked.requirements)
        return answered.value, answered.alone

    async def _left(self, box: Box, call: BundleCall) -> Any:
        """What a program left in its output file."""
        try:
            ended = await box.ended(call.deadline)
        except TimeoutError:
            raise ToolTimeoutError(call.spec.name, call.seconds) from None
        if ended.too_large:
            raise self._too_large(call.spec.name)
        return program_answer(call.spec.name, ended)

    def _too_large(self, name: str) -> ToolFailedError:
        return ToolFailedError(name, f"its result is larger than {self.sandbox.limits.output_bytes:,} bytes")


async def _started_for(box: Box, proxy: Proxy, way_out: socket.socket) -> None:
    """If the proxy cannot be started nobody asks the box any more, so it ends."""
    try:
        await proxy.start(way_out)
    except BaseException:
        await asyncio.shield(box.end())
        raise


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
