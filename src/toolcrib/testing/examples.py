"""A tool's examples, run as tests: one that no longer gives its output fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolcrib.calling.call import Approve, Unguarded
from toolcrib.core.comparing import differences
from toolcrib.core.errors import Exit, kind_for_code
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolExample, ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.registry import ToolRegistry
from toolcrib.registry.large_results import ResultReader

Execute = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]


class Verdict(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NO_EXAMPLES = "no examples"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one example; ``example`` is its number, from 1, or None for a tool that has no examples."""

    tool: str
    example: int | None
    verdict: Verdict
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"tool": self.tool, "example": self.example, "verdict": self.verdict.value, "reason": self.reason}


def numbered(spec: ToolSpec) -> Iterator[tuple[int, ToolExample]]:
    """The examples of a tool as they are told of."""
    return enumerate(spec.examples, 1)


async def run_example(
    execute: Execute, spec: ToolSpec, number: int, example: ToolExample, tolerance: float = 0.0
) -> Outcome:
    """Run one example. Without an output it must succeed; what is refused, such as a dangerous tool, is skipped."""
    if example.call and not example.input and example.output is None:
        return Outcome(spec.name, number, Verdict.SKIPPED, "the example is a text, which cannot be run; give its input")
    result = await execute(spec.name, example.input)
    if result.success:
        wrong = [] if example.output is None else differences(example.output, result.to_json()["data"], tolerance)
        return Outcome(spec.name, number, Verdict.FAILED if wrong else Verdict.PASSED, "\n".join(wrong))
    verdict = Verdict.SKIPPED if _was_refused(result) else Verdict.FAILED
    return Outcome(spec.name, number, verdict, result.error or "the tool gave no reason")


def _was_refused(result: ToolResult) -> bool:
    """Whether a rule said no, before anything ran."""
    kind = kind_for_code(result.error_code)
    return kind is not None and kind.answer.exit == Exit.REFUSED


async def run_examples(
    registry: ToolRegistry,
    names: Iterable[str] | None = None,
    *,
    allow: Collection[str] = (),
    tolerance: float = 0.0,
) -> list[Outcome]:
    """Run the examples of the tools of ``registry``, or of those called ``names``, under its rules.

    Nobody is asked for approval: tools above the registry's safety level are skipped, but for those named in
    ``allow``. A tool without examples has one outcome that says so.
    """
    examined = Examined(registry, allow)
    tools = examined.written() if names is None else [registry.get(name) for name in names]
    return [outcome for tool in tools for outcome in await outcomes(examined.execute, tool.spec, tolerance)]


async def outcomes(execute: Execute, spec: ToolSpec, tolerance: float = 0.0) -> list[Outcome]:
    """What comes of all examples of one tool."""
    if not spec.examples:
        return [Outcome(spec.name, None, Verdict.NO_EXAMPLES)]
    return [await run_example(execute, spec, number, example, tolerance) for number, example in numbered(spec)]


def skipped(spec: ToolSpec, reason: str) -> list[Outcome]:
    """The outcomes for a tool that cannot run here."""
    if not spec.examples:
        return [Outcome(spec.name, None, Verdict.NO_EXAMPLES)]
    return [Outcome(spec.name, number, Verdict.SKIPPED, reason) for number, _ in numbered(spec)]


class Examined(ToolRegistry):
    """The tools of a registry under its rules, except that those named in ``allow`` are approved and no others."""

    def __init__(self, registry: ToolRegistry, allow: Collection[str] = ()) -> None:
        super().__init__()
        self._take_over(registry, registry.get_all(), approve=approving(allow))

    def written(self) -> list[Tool]:
        """The tools that somebody wrote: a registry adds others, with which a model finds tools and reads results."""
        return [tool for tool in self.get_all() if not isinstance(tool, Unguarded | ResultReader)]


def approving(allow: Collection[str]) -> Approve | None:
    """Approves the tools of these names."""
    if not allow:
        return None
    return lambda spec, _arguments: spec.name in allow
