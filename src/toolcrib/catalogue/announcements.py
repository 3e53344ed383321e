"""What the world is told about a committed change: the payloads of the outbox. Credentials go out by name only."""

from __future__ import annotations

import uuid
from typing import Any, Literal

from toolcrib.catalogue.credentials import masked
from toolcrib.core.json import same
from toolcrib.core.spec import EXECUTION_FIELDS, ToolSpec

EventKind = Literal["tool.created", "tool.updated", "tool.deleted"]

CONTRACT_FIELDS = (*EXECUTION_FIELDS, "parameters", "returns", "api_spec")
"""The execution contract, which is what a policy service registers: how the tool runs, and with what it is called."""


def announcement(
    kind: EventKind, spec: ToolSpec, document: dict[str, Any], *,
    at: float, principal: str, previous: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One event. Its ``id`` is unique, so that a receiver that hears it twice can tell."""
    shown = masked(document)
    if previous is not None:  # a release with fewer fields may have written it
        previous = ToolSpec.parse(previous).to_dict()
    changed = sorted(key for key in document if previous is None or not same(previous.get(key), document[key]))
    return {
        "id": uuid.uuid4().hex,
        "event": kind,
        "tool_id": spec.name,
        "digest": spec.digest,
        "definition_digest": spec.definition_digest,
        "version": spec.version,
        "at": at,
        "principal": principal,
        "changed": [] if kind == "tool.deleted" else changed,
        "execution_changed": any(key in CONTRACT_FIELDS for key in changed),
        "execution": {key: shown[key] for key in CONTRACT_FIELDS},
    }
