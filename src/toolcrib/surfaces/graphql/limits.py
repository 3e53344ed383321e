"""How much one GraphQL document may ask for, counted before anything is looked up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)
from graphql.execution.values import VariableValues, get_argument_values

from toolcrib.core.errors import InvalidQueryError
from toolcrib.surfaces.graphql.schema import QUERY, checked_limit

MAX_CHARACTERS = 50_000
"""Who validates a document leaves it, with its text, to the garbage collector, which seldom comes."""
MAX_TOKENS = 4_000
MAX_DEPTH = 15
MAX_NESTING = 30
MAX_FIELDS = 400
MAX_ROOT_FIELDS = 20
MAX_COST = 50_000
MAX_ALIASES = 3
"""Of one field of a tool. It has the same value under each, so they only make the answer longer."""


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
        self._keys: dict[str, frozenset[tuple[str, str]]] = {}

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

    def keys(self, selections: SelectionSetNode | None, level: int = 0) -> frozenset[tuple[str, str]]:
        """The names in the answer, each with its field's."""
        found: set[tuple[str, str]] = set()
        _within("nesting", level, MAX_NESTING)
        for node in selections.selections if selections else ():
            if isinstance(node, FieldNode):
                found.add(((node.alias or node.name).value, node.name.value))
            elif isinstance(node, InlineFragmentNode):
                found |= self.keys(node.selection_set, level + 1)
            elif isinstance(node, FragmentSpreadNode):
                found |= self._fragment_keys(node.name.value, level)
        return frozenset(found)

    def _fragment_keys(self, name: str, level: int) -> frozenset[tuple[str, str]]:
        if name not in self._keys:
            self._keys[name] = frozenset()  # as above
            fragment = self._fragments.get(name)
            if fragment is not None:
                self._keys[name] = self.keys(fragment.selection_set, level + 1)
        return self._keys[name]

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
    """Depth, breadth and repetition, which do not depend on variables. Raises TooMuchError."""
    counter = _Counter(document)
    for operation in document.definitions:
        if not isinstance(operation, OperationDefinitionNode):
            continue
        count = counter.count(operation.selection_set)
        _within("depth", count.depth, MAX_DEPTH)
        _within("number of fields", count.fields, MAX_FIELDS)
        roots = counter.root_fields(operation.selection_set)
        _within("number of root fields", len(roots), MAX_ROOT_FIELDS)
        for field in roots:
            names = Counter(name for _, name in counter.keys(field.selection_set))
            _within("number of aliases of one field", max(names.values(), default=0), MAX_ALIASES)


def check_cost(document: DocumentNode, operation: OperationDefinitionNode, variables: VariableValues) -> int:
    """The number of values the answer may hold: limit times fields, summed.

    Arguments count as the resolvers will get them. Raises TooMuchError, GraphQLError if an argument is of a wrong
    kind, InvalidQueryError if a limit is none.
    """
    counter = _Counter(document)
    cost = 0
    for field in counter.root_fields(operation.selection_set):
        fields = counter.count(field.selection_set).fields
        cost += fields * (_limit(field, variables) if field.name.value == "tools" else 1)
    _within("cost (fields times limit)", cost, MAX_COST)
    return cost


def _limit(field: FieldNode, variables: VariableValues) -> int:
    limit: int = get_argument_values(QUERY.fields["tools"], field, variables)["limit"]
    return checked_limit(limit)


def _within(what: str, value: int, most: int) -> None:
    if value > most:
        raise TooMuchError(f"the {what} of the GraphQL query is more than {most}; ask for less at a time")
