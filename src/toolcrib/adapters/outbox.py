"""Tell a receiver of every committed change.

Each entry of the store's outbox is POSTed once it is due, in the order of its tool: an entry that cannot be delivered
holds back the later ones of the same tool and of no other. Delivery is at least once. The event's id goes along as
``Toolcrib-Event-Id``, so that a receiver that keeps the ids sees every event exactly once, whatever crashed where and
however many processes deliver.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from toolcrib.adapters.http import HttpCaller, Reply
from toolcrib.adapters.signing import SignedPost
from toolcrib.core.backoff import backoff
from toolcrib.core.errors import DeniedError, StoreError, UnavailableError
from toolcrib.formats.bundle import under_address
from toolcrib.ports import OutboxEvent, Store

EVENT_HEADER = "Toolcrib-Event-Id"
_log = logging.getLogger(__name__)
_BATCH = 200
_OWN_PLACE = frozenset({"binding", "parameters", "returns"})


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """Back-off doubles from ``first_delay`` to ``longest_delay``, with jitter, and never gives up."""

    secret: str = field(default="", repr=False)
    seconds: float = 10
    """How long the receiver has to answer."""
    first_delay: float = 1
    longest_delay: float = 60
    poll_seconds: float = 1


def as_event(entry: OutboxEvent) -> dict[str, Any]:
    """The body as it was committed: what happened, to which tool, by whom, and its execution contract."""
    return entry.payload


def as_registration(entry: OutboxEvent) -> dict[str, Any]:
    """The body that a Policy DB takes at ``POST {base}/policy``.

    ``execution_changed`` says whether the contract is another than the one that was registered before.
    """
    execution = entry.payload.get("execution", {})
    binding = execution.get("binding", {})
    kind = next((name for name in ("source_code_link", "service_url", *sorted(binding)) if binding.get(name)), "")
    return {
        "name": entry.name,
        "version": entry.payload.get("version", ""),
        "release_tag": entry.payload.get("digest", ""),
        "code_address": binding.get(kind, ""),
        "code_type": {"source_code_link": "zip", "service_url": "service"}.get(kind, kind),
        "input_schema": execution.get("parameters", {}),
        "output_schema": execution.get("returns", {}),
        "execution_changed": bool(entry.payload.get("execution_changed", True)),
        "settings": {name: value for name, value in execution.items() if name not in _OWN_PLACE},
        "parameters": {"event": entry.payload.get("event", ""), "event_id": entry.payload.get("id", "")},
    }


class _Outcome(Enum):
    DELIVERED = auto()
    REFUSED = auto()
    UNREACHABLE = auto()


class OutboxDeliverer:
    """``start`` delivers in a thread until ``stop``; ``deliver_due`` does one round in the caller's thread.

    ``shape`` turns an entry into the body that the receiver expects. Links to bundles are sent under ``public_url``.
    """

    def __init__(
        self,
        store: Store,
        url: str,
        options: DeliveryOptions | None = None,
        *,
        public_url: str = "",
        shape: Callable[[OutboxEvent], dict[str, Any]] = as_event,
        caller: HttpCaller | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._options = options = options or DeliveryOptions()
        self._shape = shape
        self._public_url = public_url
        self._post = SignedPost(
            url, "the event webhook", secret=options.secret, seconds=options.seconds, caller=caller, clock=clock
        )
        self._clock = clock
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="toolcrib-outbox", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._post.close()

    def deliver_due(self) -> int:
        """One round over everything that is due; how many were delivered.

        A receiver that cannot be reached ends the round: the other tools' events would only wait for it in turn.
        """
        delivered, seen, limit = 0, 0, _BATCH
        blocked: set[str] = set()
        while True:
            entries = self._store.outbox(limit=limit)
            for entry in entries[seen:]:
                if self._stopping.is_set():
                    return delivered
                if entry.name in blocked:
                    continue
                if entry.not_before > self._clock():
                    blocked.add(entry.name)
                    continue
                outcome = self._deliver(entry)
                if outcome is _Outcome.DELIVERED:
                    delivered += 1
                elif outcome is _Outcome.REFUSED:
                    blocked.add(entry.name)
                else:
                    return delivered
            if delivered or len(entries) < limit:
                return delivered
            # Everything in sight belongs to tools that wait: look further, so that they do not hold up the others.
            seen, limit = len(entries), limit * 4

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                again = self.deliver_due() > 0
            except StoreError as error:
                _log.warning("the outbox cannot be read and is tried again: %s", error)
                again = False
            if not again:
                self._stopping.wait(self._options.poll_seconds)

    def _deliver(self, entry: OutboxEvent) -> _Outcome:
        outcome = _Outcome.REFUSED
        try:
            event = {EVENT_HEADER: str(entry.payload.get("id") or entry.sequence)}
            problem = _problem(self._post.send(self._shape(self._addressed(entry)), event))
        except (TimeoutError, UnavailableError, DeniedError) as error:
            problem, outcome = str(error), _Outcome.UNREACHABLE
        if problem:
            self._store.postpone(entry.sequence, not_before=self._clock() + self._delay(entry), error=problem)
            return outcome
        self._store.acknowledge(entry.sequence)
        return _Outcome.DELIVERED

    def _addressed(self, entry: OutboxEvent) -> OutboxEvent:
        """The event with the link to its bundle under the address that the service has now."""
        execution = entry.payload.get("execution", {})
        link = execution.get("binding", {}).get("source_code_link", "")
        if not (link and self._public_url):
            return entry
        binding = {**execution["binding"], "source_code_link": under_address(link, self._public_url)}
        return replace(entry, payload={**entry.payload, "execution": {**execution, "binding": binding}})

    def _delay(self, entry: OutboxEvent) -> float:
        jitter = random.uniform  # noqa: S311 - not a secret
        return backoff(entry.attempts, self._options.first_delay, self._options.longest_delay, jitter)


def _problem(reply: Reply) -> str:
    return "" if reply.ok else f"the receiver answered with status {reply.status}: {reply.excerpt():.200}"
