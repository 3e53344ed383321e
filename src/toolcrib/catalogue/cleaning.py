"""What belongs to a deleted tool elsewhere goes with it, also if a crash came between.

The deletion and its event are one commit. The event waits in the outbox until the cleanup is through, so the next
start finds it and cleans up again; every cleanup can run twice.

After a purge the code goes at once, that of every version there was: the event names it, since the record is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from toolcrib.catalogue.code import naming
from toolcrib.core.errors import ToolcribError
from toolcrib.core.query import parse
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.formats.bundle import bundle_digest, bundle_link
from toolcrib.ports import OutboxEvent, Store

_log = logging.getLogger(__name__)
_ALL = 1_000_000
PURGED = "purged"
"""In the event of a purge: the digests of the code that any version had."""


@dataclass(frozen=True)
class Cleaning:
    store: Store
    cleanups: tuple[Callable[[ToolSpec], None], ...]
    keep_events: bool
    """Somebody else delivers the events and acknowledges them."""
    erase: Callable[[Sequence[str]], object]
    """Removes the code with these digests from the blobs for good, unless somebody needs it."""

    def concerns(self, spec: ToolSpec) -> bool:
        return bool(self.cleanups and spec.binding)

    def after_delete(self, spec: ToolSpec) -> None:
        """Clean up now. What fails is tried again at the next start: the tool itself is gone already."""
        if not self.concerns(spec):
            return
        try:
            self._clean(spec)
        except ToolcribError as error:
            _log.warning("the cleanup after %r failed and waits for the next start: %s", spec.name, error)
            return
        if not self.keep_events:
            for entry in self._deletions():
                if entry.name == spec.name:
                    self.store.acknowledge(entry.sequence)

    def after_purge(self, name: str) -> bool:
        """Clean up now what the purges of a name have left; whether there were any. What fails waits as well."""
        entries = [entry for entry in self._deletions() if entry.name == name and PURGED in entry.payload]
        try:
            self._finish(entries)
        except ToolcribError as error:
            _log.warning("the cleanup after the purge of %r failed and waits for the next start: %s", name, error)
        return bool(entries)

    def recover(self) -> int:
        entries = self._deletions() if self.cleanups else []
        self._finish(entries)
        return len(entries)

    def _finish(self, entries: Iterable[OutboxEvent]) -> None:
        for entry in entries:
            code: list[str] = entry.payload.get(PURGED) or []
            links = {entry.payload["execution"]["binding"]["source_code_link"], *(bundle_link("", one) for one in code)}
            for link in links:
                binding = Binding.model_validate({**entry.payload["execution"]["binding"], "source_code_link": link})
                self._clean(ToolSpec(name=entry.name, description="", binding=binding))
            if code:
                self.erase(code)
            if not self.keep_events:
                self.store.acknowledge(entry.sequence)

    def _clean(self, spec: ToolSpec) -> None:
        if has_users(spec.binding.source_code_link, self.store):
            return  # another tool, or the same one published again
        for cleanup in self.cleanups:
            cleanup(spec)

    def _deletions(self) -> list[OutboxEvent]:
        return [entry for entry in self.store.outbox(limit=_ALL) if entry.payload.get("event") == "tool.deleted"]


def has_users(link: str, store: Store) -> bool:
    """Whether a tool has the code at ``link``, be it published under another address of the service."""
    digest = bundle_digest(link)
    same = {"binding.source_code_link": link} if digest is None else naming(digest)
    return bool(link) and store.count(parse(same)) > 0
