"""The GraphQL schema. Field names stay as the records have them: snake_case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
)
from pydantic_core import from_json

from toolcrib.core.errors import InvalidQueryError
from toolcrib.core.json import holds_more_values
from toolcrib.surfaces.http.bodies import MOST_VALUES
from toolcrib.surfaces.http.fields import ENTRY_FIELDS
from toolcrib.surfaces.http.parameters import DEFAULT_LIMIT, MAX_LIMIT


class Reader(Protocol):
    """What the resolvers need: entries as plain dictionaries under the names of ``ToolEntry``."""

    def query(self, where: dict[str, Any], limit: int, after: str | None) -> Iterable[dict[str, Any]]: ...

    def get(self, tool_id: str) -> dict[str, Any] | None: ...


JSON = GraphQLScalarType(
    "JSON",
    description="Any JSON value: an object literal, a variable, or a string that holds JSON text "
    "(the only way to write '$or' or a dotted path in a literal).",
)

_TYPES: dict[str, GraphQLNonNull[Any]] = {
    "text": GraphQLNonNull(GraphQLString),
    "texts": GraphQLNonNull(GraphQLList(GraphQLNonNull(GraphQLString))),
    "object": GraphQLNonNull(JSON),
}

TOOL_ENTRY = GraphQLObjectType(
    "ToolEntry",
    {field.name: GraphQLField(_TYPES[field.kind], description=field.description) for field in ENTRY_FIELDS},
    description="A registered tool.",
)


def _tools(
    _root: None,
    info: GraphQLResolveInfo[Reader],
    query: Any = None,
    limit: int = DEFAULT_LIMIT,
    after: str | None = None,
) -> Iterable[dict[str, Any]]:
    return info.context.query(filter_of(query), checked_limit(limit), after)


def _tool(_root: None, info: GraphQLResolveInfo[Reader], tool_id: str) -> dict[str, Any] | None:
    return info.context.get(tool_id)


def filter_of(query: Any) -> dict[str, Any]:
    """The filter that the argument ``query`` holds."""
    if query is None:
        return {}
    if isinstance(query, str):
        if holds_more_values(query.encode(), MOST_VALUES):
            raise InvalidQueryError(f"the text of 'query' holds more than {MOST_VALUES:,} values")
        try:
            query = from_json(query, allow_inf_nan=False)
        except ValueError as error:
            raise InvalidQueryError(f"the text of 'query' is not JSON: {error}") from None
    if not isinstance(query, dict):
        raise InvalidQueryError(f"'query' must be an object of fields and conditions, not {query!r:.60}")
    return query


def checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidQueryError(f"'limit' must be from 1 to {MAX_LIMIT}, not {limit}")
    return limit


QUERY = GraphQLObjectType(
    "Query",
    {
        "tools": GraphQLField(
            GraphQLNonNull(GraphQLList(GraphQLNonNull(TOOL_ENTRY))),
            args={
                "query": GraphQLArgument(JSON, description="A MongoDB-style filter; every tool if it is absent."),
                "limit": GraphQLArgument(
                    GraphQLNonNull(GraphQLInt),
                    default_value=DEFAULT_LIMIT,
                    description=f"How many at most, from 1 to {MAX_LIMIT}.",
                ),
                "after": GraphQLArgument(
                    GraphQLString, description="The tool_id to go on after: the last one of the page before."
                ),
            },
            resolve=_tools,
            description="Tools that match, ordered by tool_id.",
        ),
        "tool": GraphQLField(
            TOOL_ENTRY,
            args={"tool_id": GraphQLArgument(GraphQLNonNull(GraphQLString))},
            resolve=_tool,
            description="One tool, or null.",
        ),
    },
)
SCHEMA = GraphQLSchema(QUERY, description="The tools of the registry.")
