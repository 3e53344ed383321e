"""How much one GraphQL document may ask for, counted before anything is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
)

from toolcrib.core.errors import InvalidQueryError
from toolcrib.surfaces.http.parameters import DEFAULT_LIMIT

MAX_TOKENS = 4_000
MAX_DEPTH = 15
MAX_NESTING = 30
MAX_FIELDS = 400
MAX_ROOT_FIELDS = 20
MAX_COST = 200_000


class TooMuchError(InvalidQueryError):
    code = "query_too_large"


@dataclass(slots=True)
class _Count:
    depth: int = 0
    fields: int = 0

    def grow(self, other: _Count) -> None:
        self.depth = max(self.depth, other.depth)
        self.fields += other.fields


class _Counter:
    """Counts fields through fragments. A fragment is counted once and remembered, so a bomb costs no time."""

    def __init__(self, document: DocumentNode) -> None:
        self._fragments = {
            node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._counted: dict[str, _Count] = {}

    def count(self, selections: SelectionSetNode | None, level: int = 0) -> _Count:
        total = _Count()
        _within("nesting", level, MAX_NESTING)
        for node in selections.selections if selections else ():
            if isinstance(node, FieldNode):
                inner = self.count(node.selection_set, level + 1)
                total.grow(_Count(inner.depth + 1, inner.fields + 1))
            elif isinstance(node, InlineFragmentNode):
                total.grow(self.count(node.selection_set, level + 1))
            elif isinstance(node, FragmentSpreadNode):
                total.grow(self._fragment(node.name.value, level))
        return total

    def _fragment(self, name: str, level: int) -> _Count:
        if name not in self._counted:
            self._counted[name] = _Count()  # a cycle ends here; validation refuses it afterwards
            fragment = self._fragments.get(name)
            if fragment is not None:
                self._counted[name] = self.count(fragment.selection_set, level + 1)
        return self._counted[name]

    def root_fields(self, selections: SelectionSetNode, level: int = 0) -> list[FieldNode]:
        _within("nesting", level, MAX_NESTING)
        found: list[FieldNode] = []
        for node in selections.selections:
            if isinstance(node, FieldNode):
                found.append(node)
            else:
                inner = (
                    self._fragments[node.name.value].selection_set
                    if isinstance(node, FragmentSpreadNode) and node.name.value in self._fragments
                    else getattr(node, "selection_set", None)
                )
                if inner is not None:
                    found.extend(self.root_fields(inner, level + 1))
            if len(found) > MAX_ROOT_FIELDS:
                break
        return found


def check_shape(document: DocumentNode) -> None:
    """Depth and breadth, which do not depend on variables. Raises TooMuchError."""
    counter = _Counter(document)
    for operation in document.definitions:
        if not isinstance(operation, OperationDefinitionNode):
            continue
        count = counter.count(operation.selection_set)
        _within("depth", count.depth, MAX_DEPTH)
        _within("number of fields", count.fields, MAX_FIELDS)
        _within("number of root fields", len(counter.root_fields(operation.selection_set)), MAX_ROOT_FIELDS)


def check_cost(document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> int:
    """The number of values the answer may hold: limit times fields, summed. Raises TooMuchError."""
    counter = _Counter(document)
    cost = 0
    for field in counter.root_fields(operation.selection_set):
        fields = counter.count(field.selection_set).fields
        cost += fields * (_limit(field, operation, variables) if field.name.value == "tools" else 1)
    _within("cost (fields times limit)", cost, MAX_COST)
    return cost


def _limit(field: FieldNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> int:
    for argument in field.arguments or ():
        if argument.name.value != "limit":
            continue
        value = argument.value
        if isinstance(value, VariableNode):
            return _variable(value.name.value, operation, variables)
        if isinstance(value, IntValueNode):
            return int(value.value)
    return DEFAULT_LIMIT


def _variable(name: str, operation: OperationDefinitionNode, variables: Mapping[str, Any]) -> int:
    given = variables.get(name)
    if isinstance(given, int):
        return given
    for definition in operation.variable_definitions or ():
        if definition.variable.name.value == name and isinstance(definition.default_value, IntValueNode):
            return int(definition.default_value.value)
    return DEFAULT_LIMIT


def _within(what: str, value: int, most: int) -> None:
    if value > most:
        raise TooMuchError(f"the {what} of the GraphQL query is more than {most}; ask for less at a time")
