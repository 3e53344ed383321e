"""GraphQL documents with their variables: answered or refused, and never asking for more than the limit on cost."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attacks.fuzz.target import Attack, Fault, Target, refusing
from tests.support.archives import SPEC

from toolcrib.core.json import read_json
from toolcrib.formats.toolentry import entry_to_spec, spec_to_entry
from toolcrib.surfaces.graphql.execution import answer
from toolcrib.surfaces.graphql.limits import MAX_COST
from toolcrib.surfaces.http.parameters import MAX_LIMIT, entry_filter
from toolcrib.surfaces.http.problems import json_bytes

_ENTRY = spec_to_entry(entry_to_spec(SPEC))


@dataclass
class _CountingReader:
    """Has as many tools as anybody asks for, but hands out one; the limits are added up."""

    asked: int = 0
    limits: list[Any] = field(default_factory=list)

    def query(self, where: dict[str, Any], limit: int, after: str | None) -> list[dict[str, Any]]:
        entry_filter(where)
        self.limits.append(limit)
        return [_ENTRY]

    def get(self, tool_id: str) -> dict[str, Any] | None:
        return _ENTRY if tool_id == SPEC["tool_id"] else None


@contextmanager
def _opened(_folder: Path) -> Iterator[Attack]:
    def attack(content: bytes) -> None:
        try:
            request = read_json(content)
        except ValueError:
            return
        reader = _CountingReader()
        with refusing():
            answered = answer(request, reader)
            json_bytes(answered)
            for error in answered.get("errors", ()):
                if error["extensions"]["status"] == 500:
                    raise Fault(f"answered as a defect: {error}")
            if any(type(limit) is not int or not 1 <= limit <= MAX_LIMIT for limit in reader.limits):
                raise Fault(f"the catalogue was asked for {reader.limits} tools")
            values = _values(reader.limits, answered.get("data") or {})
            if values > MAX_COST:
                raise Fault(f"the document asks for {values} values")

    yield attack


def _values(limits: list[int], data: dict[str, Any]) -> int:
    """How many values the answer would hold if there were tools enough: for each list, its limit times its fields."""
    lists = [found for found in data.values() if isinstance(found, list)]
    return sum(limit * len(found[0]) for limit, found in zip(limits, lists, strict=False))


def _asked(query: str, **variables: Any) -> bytes:
    return json.dumps({"query": query, "variables": variables or None, "operationName": None}).encode()


TARGET = Target(
    "graphql",
    (
        _asked("{ tools { tool_id } }"),
        _asked('{ tools(query: { tool_type: "x", tool_tags: ["a"] }, limit: 5, after: "a") { tool_id tool_type } }'),
        _asked("query($q: JSON, $n: Int!) { tools(query: $q, limit: $n) { tool_id } }", q={"tool_id": "a"}, n=10),
        _asked("query($n: Int! = 3) { a: tools(limit: $n) { ...f } b: tools { ... on ToolEntry { tool_id } } }"
               " fragment f on ToolEntry { tool_id tool_tags }", n=7),
        _asked('query A { tool(tool_id: "a") { tool_id __typename } } query B { __schema { types { name } } }'),
        _asked("query($s: Boolean!) { tools @include(if: $s) { tool_id @skip(if: $s) } }", s=True),
        _asked('{ tools(query: "{\\"$or\\": [{\\"tool_id\\": \\"a\\"}]}") { tool_id } }'),
        _asked("query { " + " ".join(f"a{number}: tools(limit: 100) {{ tool_id }}" for number in range(20)) + " }"),
        _asked('{ __type(name: "ToolEntry") { fields { name type { ofType { ofType { name } } } } } }'),
        _asked("query($n: Int!) { a: tools(limit: $n) { ...f } b: tools(limit: $n) { ...f } } fragment f on ToolEntry {"
               " tool_id a: tool_id b: tool_id c: tool_id d: tool_id e: tool_id f: tool_id tool_tags"
               " tool_type g: tool_id h: tool_id }", n=100),
        _asked("subscription { tools { tool_id } }"),
    ),
    (
        b"query", b"mutation", b"fragment f on Query { ...f }", b"...f", b"... on Query", b"$n", b"limit: 10000",
        b"limit: null",
        b"limit: $n", b"10000.0", b"10000", b"null", b"true", b"1e4", b'"""', b"@skip(if: true)", b"@include", b"{ a",
        b"}", b"(",
        b"Int", b"[Int!]!", b"JSON", b"__schema", b"__typename", b"after: $n", b'"variables"', b'"operationName"',
        b"a: tools",
        b"query: $q", b"&", b"\\u0000", b"#",
    ),
    _opened,
    20_000,
)  # fmt: skip
