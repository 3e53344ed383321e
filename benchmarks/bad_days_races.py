"""Single things of tests/attacks/README.md: what one request costs, and how many acknowledged uploads a race loses.

For bench_bad_days.py.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bad_days import ALIASED, ALLOWED, FIELDS, bundle, newlines_bundle, nothing_found, twice_named
from bad_days_service import Client, Service

_SECONDS = 120.0


@dataclass(frozen=True)
class Thing:
    """One request, on a service that has nothing else to do. ``prepared`` goes before it and does not count."""

    title: str
    before: str
    who: str
    ask: Callable[[Client], int]
    prepared: Callable[[Client], object] = lambda client: None

    def row(self, service: Service) -> tuple[str, str, str]:
        """What it took, and its status."""
        with Client(service.port, service.tokens[self.who], _SECONDS) as client:
            self.prepared(client)
            began = time.monotonic()
            status = self.ask(client)
            return self.title, self.before, f"{time.monotonic() - began:,.2f} s ({status or 'no answer'})"


def _graph(client: Client, query: str, **variables: object) -> int:
    return client.status("POST", "/graphql", {"query": query, "variables": variables})


THINGS = (
    Thing(
        "upload: a key twice in the largest spec.json", "150 s", "publisher",
        lambda client: client.upload(bundle("twice", twice_named())),
    ),
    Thing(
        "run: 40,000 newlines in requirements.txt", "18 s of the event loop", "admin",
        lambda client: client.status("POST", "/tools/newlines/run", {"arguments": {}}),
        lambda client: client.upload(newlines_bundle()),
    ),
    Thing(
        "query: 60 clauses", "23 s", "reader-0",
        lambda client: client.status("POST", "/tools/query/generic?limit=10", {"$or": nothing_found(60)}),
    ),
    Thing(
        "GraphQL: limit 10000.0 as a variable", "32 s, 150 MB", "reader-0",
        lambda client: _graph(client, f"query($n: Int!) {{ tools(limit: $n) {{ {FIELDS} {ALIASED} }} }}", n=10_000.0),
    ),
    Thing(
        "GraphQL: 20 aliases, as many tools as allowed", "20 s", "reader-0",
        lambda client: _graph(client, ALLOWED),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Race:
    """``prepare`` before each round, then ``one`` and ``other`` at once; ``one`` says which tool's code must be there,
    and whether it was acknowledged."""

    title: str
    before: str
    prepare: Callable[[Client, int], None]
    one: Callable[[Client, int], tuple[str, bool]]
    other: Callable[[Client, int], object]

    def row(self, folder: Path, rounds: int) -> tuple[str, str, str]:
        """How many of the acknowledged ones have no code."""
        acknowledged = lost = 0
        with Service(folder, {}) as service:
            first, second = (Client(service.port, service.tokens["publisher"], _SECONDS) for _ in range(2))
            with first, second:
                for number in range(rounds):
                    self.prepare(first, number)
                    thread = threading.Thread(target=self.other, args=(second, number))
                    thread.start()
                    name, done = self.one(first, number)
                    thread.join()
                    if done and first.status("GET", f"/tools/{name}") == 200:
                        acknowledged += 1
                        lost += first.status("GET", f"/tools/{name}/tool.zip") != 200
        return self.title, self.before, f"{lost} of {acknowledged}"


def _coded(name: str, number: int, which: str, **spec: object) -> bytes:
    """A bundle whose code is the same for the same ``number`` and ``which``."""
    said = json.dumps({"tool_id": name, "tool_search_description": "x", **spec}).encode()
    return bundle(name, said, {"code/function.py": f"# {which} {number}\n" * 50})


def _needs(name: str, required: list[str]) -> dict[str, object]:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": required}
    return {"tool_api_spec": {"input": schema, "output": {}}}


def _upload_same(client: Client, number: int) -> tuple[str, bool]:
    name = f"kept-{number}"
    return name, client.upload(_coded(name, number, "same")) == 200


RACES = (
    Race(
        "race: an upload while a tool with the same code is deleted", "7 of 150 lost",
        lambda client, number: _ignored(client.upload(_coded(f"gone-{number}", number, "same"))),
        _upload_same,
        lambda client, number: client.status("DELETE", f"/tools/gone-{number}"),
    ),
    Race(
        "race: an upload while a replace with the same code fails", "4 of 200 lost",
        lambda client, number: _ignored(client.upload(_coded(f"old-{number}", number, "other", **_needs("a", [])))),
        _upload_same,
        lambda client, number: client.upload(
            _coded(f"old-{number}", number, "same", **_needs("b", ["b"])), "?replace=true"
        ),
    ),
    Race(
        "race: a replace while the tool is deleted", "3 of 100 lost",
        lambda client, number: _ignored(client.upload(_coded(f"tool-{number}", number, "first"))),
        lambda client, number: (
            f"tool-{number}", client.upload(_coded(f"tool-{number}", number, "second"), "?replace=true") == 200
        ),
        lambda client, number: client.status("DELETE", f"/tools/tool-{number}"),
    ),
)  # fmt: skip


def _ignored(_: object) -> None: ...
