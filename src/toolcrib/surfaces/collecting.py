"""What nobody needs any more is taken away: code without a tool, unpacked copies, and what broken uploads left."""

from __future__ import annotations

import asyncio
import logging
import random

from toolcrib.bootstrap import System
from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.catalogue.collecting import GRACE_SECONDS, Collected, collect, named_digests
from toolcrib.core.errors import ToolcribError
from toolcrib.surfaces.rest.uploads import discard_leftovers

logger = logging.getLogger("toolcrib.collecting")

_EVERY_SECONDS = 3600.0


def collect_once(system: System, *, older_than: float = GRACE_SECONDS) -> Collected:
    """One round. Any number of processes may be at it at once."""
    collected = collect(system.blobs, system.store, older_than=older_than, clock=system.clock)
    system.unpacked.sweep(set(named_digests(system.store)))
    discard_leftovers(system.settings.spool, older_than=GRACE_SECONDS)
    return collected


async def collecting(system: System) -> None:
    """A round soon, and one every hour. They begin at random, so that several services seldom do it together."""
    seconds = random.uniform(60.0, 600.0)  # noqa: S311 - only to be apart
    while True:
        await asyncio.sleep(seconds)
        try:
            collected = await in_thread(HOUSEKEEPING, collect_once, system)
        except (ToolcribError, OSError) as error:
            logger.warning("what nobody needs could not be collected: %s", error)
        else:
            _report(collected)
        seconds = _EVERY_SECONDS


def _report(collected: Collected) -> None:
    if collected.trashed or collected.removed:
        logger.info(
            "%d bundles that no tool names went to the trash, %d are gone for good",
            len(collected.trashed),
            len(collected.removed),
        )
    if collected.taken_back:
        logger.warning("%d bundles came back from the trash: a tool names them", len(collected.taken_back))
