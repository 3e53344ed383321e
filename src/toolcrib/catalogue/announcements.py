"""What the world is told about a committed change: the payloads of the outbox. Credentials go out by name only."""

from __future__ import annotations

import uuid
from typing import Any, Literal

from toolcrib.catalogue.credentials import masked
from toolcrib.core.json import same
from toolcrib.core.spec import ToolSpec

EventKind = Literal["tool.created", "tool.updated", "tool.deleted"]

EXECUTION_FIELDS = (
    "execution_mode", "isolation", "timeout_seconds", "safety_level", "binding", "parameters", "returns", "api_spec",
    "policy_rule_uri", "validation_policy_rule_uri", "validation_mode", "credentials",
)  # fmt: skip
"""The execution contract: a policy service registers a tool again when one of these changed."""


def announcement(
    kind: EventKind, spec: ToolSpec, document: dict[str, Any], *,
    at: float, principal: str, previous: dict[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One event. Its ``id`` is unique, so that a receiver that hears it twice can tell."""
    shown = masked(document)
    changed = sorted(key for key in document if previous is None or not same(previous.get(key), document[key]))
    return {
        "id": uuid.uuid4().hex,
        "event": kind,
        "tool_id": spec.name,
        "digest": spec.digest,
        "version": spec.version,
        "at": at,
        "principal": principal,
        "changed": [] if kind == "tool.deleted" else changed,
        "execution_changed": any(key in EXECUTION_FIELDS for key in changed),
        "execution": {key: shown[key] for key in EXECUTION_FIELDS},
    }
