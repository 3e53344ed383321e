"""What an endpoint is: its path, who may call it, what runs, and what the OpenAPI description says of it.

One table of these makes both the routes and the description, so neither can forget the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.core.names import NAME_PATTERN
from toolcrib.core.roles import Role

if TYPE_CHECKING:
    from toolcrib.surfaces.rest.service import Service

Handler = Callable[["Service", Request], Awaitable[Response]]
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
class Endpoint:
    """``role`` is the least that a caller needs, None where anybody may ask. ``problems`` are the statuses that
    it may answer beside those that every endpoint may."""

    method: str
    path: str
    handle: Handler
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
FLAG_SCHEMA: Schema = {"type": "boolean", "default": False}

TOOL_ID = Parameter("tool_id", "The tool's identifier.", NAME_SCHEMA, required=True, where="path")


def limited_to(most: int, default: int) -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", "How many at most.", schema)


LIMIT = limited_to(10_000, 1000)
CURSOR = Parameter(
    "cursor",
    "Where to go on, from the Link header of the page before.",
    {"type": "string", "maxLength": 200},
)
FORCE = Parameter("force", "Do it although it breaks others; the answer says what.", FLAG_SCHEMA)
IF_MATCH = Parameter("If-Match", "The ETag that was read; 412 where the tool has changed since.", where="header")
