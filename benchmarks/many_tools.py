"""Tools and requests for benchmarks of many tools: public retrieval sets, or generated ones where those are missing."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolcrib.core.spec import ToolSpec

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]+")
_VERBS = {
    "create": "make a new", "delete": "get rid of a", "resize": "change the size of a", "send": "mail somebody a",
    "translate": "put into English a", "list": "which are there of every", "rename": "give another name to a",
    "archive": "put away a", "compare": "tell the difference to another", "export": "download a",
}  # fmt: skip
_NOUNS = ("picture", "invoice", "customer", "ticket", "calendar", "report", "contract", "recipe", "flight", "playlist")
_PLACES = tuple(f"{kind} {letter}" for kind in ("office", "shop", "school", "clinic", "garage") for letter in "ABCDE")


@dataclass(frozen=True)
class Request:
    text: str
    wanted: tuple[str, ...]
    """The names of the tools that it needs."""


@dataclass(frozen=True)
class Collection:
    source: str
    specs: dict[str, ToolSpec]
    requests: list[Request]

    def sample(self, size: int, seed: int = 1) -> tuple[list[ToolSpec], list[Request]]:
        """So many tools, as many as can be of them wanted by some request, and the requests that they suffice for."""
        chance = random.Random(seed)
        wanted = chance.sample(self.requests, len(self.requests))
        spare = chance.sample(list(self.specs), len(self.specs))
        names = list(dict.fromkeys([*(name for request in wanted for name in request.wanted), *spare]))[:size]
        chosen = set(names)
        chance.shuffle(names)
        return [self.specs[name] for name in names], [each for each in wanted if chosen.issuperset(each.wanted)]


def collections(folder: Path) -> list[Collection]:
    """All tools and requests of the sets in ``folder``, then each set by itself."""
    sets = sorted(path.parent for path in folder.glob("*/tools.jsonl"))
    if not sets:
        return [_generated()]
    specs: dict[str, ToolSpec] = {}
    requests: list[Request] = []
    alone = []
    for one in sets:
        names: dict[str, str] = {}
        for tool in _lines(one / "tools.jsonl"):
            spec = _spec(tool, specs)
            specs[spec.name] = spec
            names[tool["id"]] = spec.name
        queries = [query for query in _lines(one / "queries.jsonl") if query["split"] == "test"]
        asked = [Request(query["text"], tuple(names[each] for each in query["relevant"])) for query in queries]
        requests += asked
        alone.append(Collection(one.name, {name: specs[name] for name in names.values()}, asked))
    return [Collection("of all sets", specs, requests), *alone]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _spec(tool: dict[str, Any], taken: dict[str, ToolSpec]) -> ToolSpec:
    base = _FORBIDDEN.sub("_", tool["name"]).strip("_.-")[:56] or "tool"
    name = base if base not in taken else f"{base}_{len(taken)}"
    properties = {
        each["name"]: {"type": "string", "description": each["description"]} for each in tool.get("params", ())
    }
    return ToolSpec(
        name=name,
        description=tool["description"],
        category=_FORBIDDEN.sub("_", tool.get("category", ""))[:64],
        tags=(tool["server"],) if tool.get("server") else (),
        parameters={"type": "object", "properties": properties, "required": list(properties)},
    )


def _generated() -> Collection:
    specs: dict[str, ToolSpec] = {}
    requests: list[Request] = []
    for place in _PLACES:
        for noun in _NOUNS:
            for verb, words in _VERBS.items():
                name = f"{verb}_{noun}_{place.replace(' ', '_')}"
                properties = {"id": {"type": "string", "description": f"Which {noun}"}, "note": {"type": "string"}}
                specs[name] = ToolSpec(
                    name=name,
                    description=f"{verb.capitalize()} a {noun} of the {place}.",
                    category=place.replace(" ", "_"),
                    parameters={"type": "object", "properties": properties, "required": ["id"]},
                )
                requests.append(Request(f"Please {words} {noun} in {place}, it is urgent", (name,)))
    return Collection("generated", specs, requests)
