"""Which policy rules a Cedar file serves: those that one of its rules is called, or speaks of.

A tool names its rules by URI (``policy_rule_uri``, ``validation_policy_rule_uri``). A rule of the file serves a URI if
it has it as its ``@id``, holds it as a text (``resource.policy_rule_uri == "policies://pay/v1"``), or compares one of
the two fields with a pattern that fits it (``resource.policy_rule_uri like "policies://pay/*"``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import cedarpy

from toolcrib.core.spec import RULE_FIELDS

Pattern = tuple[str, ...]
"""The texts between the asterisks of a pattern."""


@dataclass(frozen=True, slots=True)
class ServedRules:
    names: frozenset[str]
    patterns: tuple[Pattern, ...]

    def __contains__(self, uri: str) -> bool:
        return uri in self.names or any(_fits(pattern, uri) for pattern in self.patterns)


def served_rules(text: str) -> ServedRules:
    """What the rules in a Cedar file serve, which is known to be right."""
    rules = json.loads(cedarpy.policies_to_json_str(text))["staticPolicies"].values()
    names = {str(rule.get("annotations", {}).get("id", "")) for rule in rules}
    patterns: list[Pattern] = []
    for node in _nodes([rule.get("conditions", []) for rule in rules]):
        if isinstance(value := node.get("Value"), str):
            names.add(value)
        if isinstance(like := node.get("like"), dict) and like["left"].get(".", {}).get("attr") in RULE_FIELDS:
            patterns.append(_pattern(like["pattern"]))
    return ServedRules(frozenset(names), tuple(patterns))


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)


def _pattern(parts: list[Any]) -> Pattern:
    texts = [""]
    for part in parts:
        if part == "Wildcard":
            texts.append("")
        else:
            texts[-1] += part["Literal"]
    return tuple(texts)


def _fits(pattern: Pattern, uri: str) -> bool:
    """In one walk along the URI, whatever its author wrote."""
    if len(pattern) == 1:
        return uri == pattern[0]
    first, *middle, last = pattern
    if not uri.startswith(first) or not uri.endswith(last) or len(uri) < len(first) + len(last):
        return False
    at, end = len(first), len(uri) - len(last)
    for text in middle:
        found = uri.find(text, at, end)
        if found < 0:
            return False
        at = found + len(text)
    return True
