"""What an endpoint is: its path, who may call it, what runs, and what the OpenAPI description says of it.

A table of these makes both the routes and the description, so neither can forget the other. The order of the table is
the order in which paths are tried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.core.context import SESSION_PATTERN
from toolcrib.core.names import NAME_PATTERN
from toolcrib.core.roles import Role
from toolcrib.surfaces.http.parameters import DEFAULT_LIMIT, MAX_LIMIT

S = TypeVar("S")
"""What a door's handlers work with."""

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    description: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    required: bool = False
    where: Literal["query", "path", "header"] = "query"


@dataclass(frozen=True, slots=True)
class Body:
    schema: Schema
    media_type: str = "application/json"
    description: str = ""
    example: Any = None


@dataclass(frozen=True, slots=True)
class Answered:
    """One successful answer; ``headers`` maps names to descriptions, ``also`` further media types to schemas."""

    description: str
    schema: Schema | None = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[S]):
    """``role`` is the least that a caller needs, None if anybody may ask. ``problems`` are the statuses that
    it may answer beside those that every endpoint may."""

    method: str
    path: str
    handle: Callable[[S, Request], Awaitable[Response]]
    role: Role | None
    tag: str
    summary: str
    parameters: tuple[Parameter, ...] = ()
    body: Body | None = None
    answers: Mapping[int, Answered] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    description: str = ""

    @property
    def operation_id(self) -> str:
        return self.handle.__name__


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def under(path: str) -> str:
    """A path below a tool."""
    return f"/tools/{{tool_id}}/{path}"


NAME_SCHEMA: Schema = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
SESSION_SCHEMA: Schema = {"type": "string", "pattern": SESSION_PATTERN, "description": "The name of a session."}
FLAG_SCHEMA: Schema = {"type": "boolean", "default": False}

TOOL_ID = Parameter("tool_id", "The tool's identifier.", NAME_SCHEMA, required=True, where="path")


def limited_to(most: int, default: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", "How many at most.", schema)


LIMIT = limited_to(MAX_LIMIT, DEFAULT_LIMIT)
CURSOR = Parameter(
    "cursor", "Where to go on, from the Link header of the page before.", {"type": "string", "maxLength": 200}
)
FORCE = Parameter("force", "Do it although it breaks others; the answer says what.", FLAG_SCHEMA)
IF_MATCH = Parameter("If-Match", "The ETag that was read; 412 if the tool has changed since.", where="header")
