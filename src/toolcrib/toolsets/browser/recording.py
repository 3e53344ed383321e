"""A session's calls as a script, and the script played again without a model."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolcrib import ToolResult, ToolValidationError

VERSION = 1
_DATA_LIMIT = 20_000
# What a call reads is compared; what it merely reports on the way (times, handles, pictures) changes with every run.
_COMPARED = frozenset({"extraction", "form", "system"})
_PASSING = frozenset({
    "handle", "matched", "selector", "image", "bytes", "waited_ms", "tab", "box", "score", "file", "url", "snapshot",
    "tokens",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One call: what was asked, and what came of it."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    success: bool = True
    error_code: str = ""
    url: str = ""
    matched: str = ""
    data: Any = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay left the script."""

    step: int
    tool: str
    what: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"step {self.step} ({self.tool}): {self.what} was {self.expected!r}, now it is {self.found!r}"


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of playing a script."""

    played: int
    steps: int
    differences: tuple[Difference, ...]
    results: tuple[ToolResult, ...]

    @property
    def same(self) -> bool:
        return self.played == self.steps and not self.differences

    def __str__(self) -> str:
        if self.same:
            return f"all {self.steps} steps went as recorded"
        return "; ".join(map(str, self.differences)) or f"stopped after {self.played} of {self.steps} steps"


@dataclass(frozen=True, slots=True)
class Script:
    """A list of steps that can be kept in a file. Secrets are in it only by name."""

    steps: tuple[Step, ...] = ()

    def save(self, path: str | Path) -> Path:
        target = Path(path)
        document = {"version": VERSION, "steps": [asdict(step) for step in self.steps]}
        target.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: str | Path) -> Script:
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            if document["version"] != VERSION:
                raise ToolValidationError(
                    f"{str(path)!r} is a script of version {document['version']!r}, not {VERSION}"
                )
            return cls(tuple(Step(**step) for step in document["steps"]))
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, ToolValidationError):
                raise
            raise ToolValidationError(f"{str(path)!r} is not a browser script: {error}") from None


def step_of(tool: str, category: str, arguments: Mapping[str, Any], result: ToolResult, url: str) -> Step:
    """A call as a step. Handles die with their page, so the element's own selector stands in for them."""
    data = result.data if category in _COMPARED else None
    if data is not None and len(json.dumps(data, default=str)) > _DATA_LIMIT:
        data = None
    matches = _matches(result)
    durable = {
        name: matches[value]["selector"] if isinstance(value, str) and value in matches else value
        for name, value in arguments.items()
    }
    matched = next((f"{match['role']} {match['name']!r}" for match in matches.values()), "")
    return Step(tool, durable, result.success, result.error_code or "", url, matched, _without_passing(data))


async def replay(
    script: Script,
    call: Callable[[str, dict[str, Any]], Awaitable[ToolResult]],
    where: Callable[[], str],
    *,
    go_on: bool = False,
) -> Replay:
    """Play the steps with ``call``; ``where`` tells the address. The first difference ends it, unless ``go_on``."""
    differences: list[Difference] = []
    results: list[ToolResult] = []
    for number, expected in enumerate(script.steps, 1):
        result = await call(expected.tool, dict(expected.arguments))
        results.append(result)
        category = "extraction" if expected.data is not None else ""
        found = step_of(expected.tool, category, {}, result, where())
        new = list(_differences(number, expected, found))
        differences += new
        if new and not go_on:
            break
    return Replay(len(results), len(script.steps), tuple(differences), tuple(results))


def _differences(number: int, expected: Step, found: Step) -> Sequence[Difference]:
    pairs: list[tuple[str, Any, Any]] = [
        ("success", expected.success, found.success),
        ("error_code", expected.error_code, found.error_code),
        ("the page", _path(expected.url), _path(found.url)),
    ]
    if expected.matched:
        pairs.append(("the element", expected.matched, found.matched))
    if expected.data is not None:
        pairs += [(f"data{where}", old, new) for where, old, new in _unlike(expected.data, found.data)]
    return [Difference(number, expected.tool, what, old, new) for what, old, new in pairs if old != new]


def _unlike(old: Any, new: Any, where: str = "") -> list[tuple[str, Any, Any]]:
    """The places where two values differ, the first few of them."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = [entry for key in old for entry in _unlike(old[key], new.get(key), f"{where}.{key}")]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        found = [
            entry for at, pair in enumerate(zip(old, new, strict=True)) for entry in _unlike(*pair, f"{where}[{at}]")
        ]
    else:
        found = [] if old == new else [(where, old, new)]
    return found[:3]


def _matches(result: ToolResult) -> dict[str, dict[str, Any]]:
    data = result.data if isinstance(result.data, dict) else {}
    matched = data.get("matched") or []
    listed = matched if isinstance(matched, list) else [matched]
    return {match["handle"]: match for match in listed if isinstance(match, dict) and "handle" in match}


def _without_passing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_passing(inner) for key, inner in value.items() if key not in _PASSING}
    if isinstance(value, list | tuple):
        return [_without_passing(inner) for inner in value]
    return value


def _path(url: str) -> str:
    """An address without its host: a script recorded against one server plays against another."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path
