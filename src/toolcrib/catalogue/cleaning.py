"""What belongs to a deleted tool elsewhere goes with it, also if a crash came between.

The deletion and its event are one commit. The event waits in the outbox until the cleanup is through, so the next
start finds it and cleans up again; every cleanup can run twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from toolcrib.catalogue.code import naming
from toolcrib.core.errors import ToolcribError
from toolcrib.core.query import parse
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.formats.bundle import bundle_digest
from toolcrib.ports import OutboxEvent, Store

_log = logging.getLogger(__name__)
_ALL = 1_000_000


@dataclass(frozen=True)
class Cleaning:
    store: Store
    cleanups: tuple[Callable[[ToolSpec], None], ...]
    keep_events: bool
    """Somebody else delivers the events and acknowledges them."""

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

    def recover(self) -> int:
        entries = self._deletions() if self.cleanups else []
        for entry in entries:
            binding = Binding.model_validate(entry.payload["execution"]["binding"])
            self._clean(ToolSpec(name=entry.name, description="", binding=binding))
            if not self.keep_events:
                self.store.acknowledge(entry.sequence)
        return len(entries)

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
