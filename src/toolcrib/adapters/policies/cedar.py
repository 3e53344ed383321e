"""Rules in Cedar, from a file.

A request is put to the rules as

- the principal ``User::"<who>"``, a member of ``Role::"<role>"`` for each role that their token, their JWT or the
  settings give them;
- the action ``Action::"create"``, ``"update"``, ``"delete"``, ``"run"`` or ``"read"``;
- the resource ``Tool::"<name>"``, whose attributes are the fields of the spec that hold something, and ``digest``.

Nothing is allowed that no rule permits. Numbers with a fraction are decimals, and what is empty is absent: a rule asks
``resource has timeout_seconds`` first.
"""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.adapters.files import signature
from toolcrib.adapters.policies.caching import CachingPolicy
from toolcrib.core.errors import MissingDependencyError, SettingsError
from toolcrib.core.spec import rules_named
from toolcrib.ports import Decision, Policy, PolicyRequest

try:
    import cedarpy
except ImportError as error:
    raise MissingDependencyError("cedarpy", extra="server") from error

from toolcrib.adapters.policies.cedar_names import ServedRules, served_rules

_log = logging.getLogger(__name__)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|;', re.DOTALL)


class CedarPolicy:
    """Parsed once, and again when the file changes. A change that cannot be parsed is reported and not used:

    the rules before it stay in force, since neither everything nor nothing is what the author meant.
    """

    remote = False

    def __init__(self, path: Path, *, roles: Mapping[str, Sequence[str]] | None = None) -> None:
        self._path = path
        self._roles = dict(roles or {})
        self._lock = threading.Lock()
        self._seen = _signature(path)
        self._rules = self._read()

    def decide(self, request: PolicyRequest) -> Decision:
        self._reload()
        return self._rules.decide(request)

    def _reload(self) -> None:
        seen = _signature(self._path)
        if seen == self._seen:
            return
        with self._lock:
            if seen == self._seen:
                return
            self._seen = seen
            try:
                self._rules = self._read()
            except SettingsError as error:
                _log.error("the rules before the change stay in force: %s", error)

    def _read(self) -> Policy:
        """The rules as they are now. The same question has the same answer until they change."""
        text = _text(self._path)
        policies = _parsed(self._path, text)
        return CachingPolicy(_Rules(policies, self._roles, served_rules(text)), seconds=math.inf)


@dataclass
class _Rules:
    policies: cedarpy.PolicySet
    roles: Mapping[str, Sequence[str]]
    served: ServedRules
    remote: bool = False

    def decide(self, request: PolicyRequest) -> Decision:
        principal = {"type": "User", "id": request.principal}
        resource = {"type": "Tool", "id": request.tool}
        held = dict.fromkeys((*self.roles.get(request.principal, ()), *request.roles))
        roles = [{"type": "Role", "id": role} for role in held]
        attributes = _attributes({**request.spec, "digest": request.digest})
        entities: list[dict[Any, Any]] = [
            {"uid": principal, "attrs": {}, "parents": roles},
            {"uid": resource, "attrs": attributes, "parents": []},
            *({"uid": role, "attrs": {}, "parents": []} for role in roles),
        ]
        question = {
            "principal": principal,
            "action": {"type": "Action", "id": request.action},
            "resource": resource,
            "context": {},
        }
        answer = cedarpy.is_authorized(question, self.policies, entities)
        found = answer.diagnostics
        rule = ", ".join(found.id_annotations_by_reason.get(reason, reason) for reason in found.reasons)
        if answer.allowed:
            return Decision(True, rule=rule, unserved=self._unserved(request))
        if rule:
            return Decision(False, f"the rule {rule!r} forbids it", rule)
        trouble = f" ({found.errors[0].splitlines()[0]:.200})" if found.errors else ""
        return Decision(False, f"no rule permits it{trouble}")

    def _unserved(self, request: PolicyRequest) -> tuple[str, ...]:
        if request.action not in ("create", "update"):
            return ()
        return tuple(uri for uri in rules_named(request.spec) if uri not in self.served)


def _signature(path: Path) -> object:
    """Changes whenever the file does. Why it cannot be looked at is told when it is read."""
    try:
        return signature(path)
    except OSError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the policy file {str(path)!r} cannot be read: {error}") from None


def _parsed(path: Path, text: str) -> cedarpy.PolicySet:
    try:
        return cedarpy.PolicySet.from_str(text)
    except ValueError as error:
        line, reason = _culprit(text) or (1, str(error))
        raise SettingsError(f"the policy file {str(path)!r} is wrong in the rule at line {line}: {reason}") from None


def _culprit(text: str) -> tuple[int, str] | None:
    """The line where the first wrong rule begins; the parser itself does not tell."""
    for line, rule in _rules(text):
        try:
            cedarpy.PolicySet.from_str(rule)
        except ValueError as error:
            return line, str(error).splitlines()[0]
    return None


def _rules(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    ends = [found.end() for found in _TOKEN.finditer(text) if found.group() == ";"]
    for end in (*ends, len(text)):
        rule = text[start:end]
        blank = len(rule) - len(re.sub(r"\A(?:\s|//[^\n]*\n)*", "", rule))
        yield text.count("\n", 0, start + blank) + 1, rule
        start = end


def _attributes(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in spec.items() if not _is_absent(value)}


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def _value(value: Any) -> Any:
    """Cedar has neither null nor fractions, and reads some keys as escapes."""
    if isinstance(value, Mapping):
        return {f"_{name}" if name.startswith("__") else name: _value(inner) for name, inner in value.items()
                if inner is not None}  # fmt: skip
    if isinstance(value, list | tuple):
        return [_value(inner) for inner in value if inner is not None]
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else _decimal(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value)
    return value


def _decimal(value: float) -> Any:
    if not math.isfinite(value) or abs(value) > 9e14:
        return str(value)
    return {"__extn": {"fn": "decimal", "arg": f"{value:.4f}"}}
