"""What the tools of a registry are used for and what they cost, as a program reads it and as a person does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.calling.usage import UNKNOWN, Usage, UsageCounter, token_counter
from toolcrib.core.counting import CountTokens
from toolcrib.core.json import as_text
from toolcrib.core.tool import Tool
from toolcrib.formats import handover

_COLUMNS = ("tool", "calls", "errors", "p50 ms", "p95 ms", "definition", "results", "last used")


class UsageReport(dict[str, Usage]):
    """The usage of each tool by its name. As text it is a table, the tools with most calls first; tokens are about."""

    def __str__(self) -> str:
        used = sorted(self.items(), key=lambda entry: (-entry[1].calls, entry[0]))
        rows = [_COLUMNS, *(_row(name, usage) for name, usage in used)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(_line(row, widths) for row in rows)


def _row(name: str, usage: Usage) -> tuple[str, ...]:
    times = ("-" if seconds is None else f"{seconds * 1000:.1f}" for seconds in (usage.p50, usage.p95))
    tokens = (f"{count:,}" for count in (usage.definition_tokens, usage.result_tokens))
    last = "-" if usage.last_used is None else f"{usage.last_used:%Y-%m-%d %H:%M:%S}"
    return name, f"{usage.calls:,}", f"{usage.errors:,}", *times, *tokens, last


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    name, *numbers, last = row
    cells = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
    return "  ".join([name.ljust(widths[0]), *cells, last]).rstrip()


class TokenCounts:
    """Counts what is for a model, and keeps of each tool's definition what it came to."""

    def __init__(self, counter: UsageCounter, count: CountTokens | None = None) -> None:
        self._counter = counter
        self._tokens = token_counter(count)
        self.format = "openai"
        """The format in which definitions were handed out last."""

    def answered(self, names: Iterable[str], answers: Iterable[Mapping[str, Any]]) -> None:
        """A model is given these answers to calls of tools by these names, UNKNOWN where there is none."""
        count, tokens = self._tokens, defaultdict[str, int](int)
        for name, answer in zip(names, answers, strict=True):
            content = answer.get("content")
            tokens[name] += count(content if type(content) is str else _text(answer))
        for name, more in tokens.items():
            self._counter.answered(name, more)

    def report(self, tools: Mapping[str, Tool], *, reset: bool) -> UsageReport:
        """On these tools, and on calls of tools that there are not, if there were any."""
        counted = self._counter.taken(reset=reset)
        report = UsageReport()
        for name, tool in tools.items():
            usage = counted.get(name, _NEVER)
            report[name] = replace(usage, definition_tokens=self._of_definition(tool))
        if UNKNOWN in counted and counted[UNKNOWN].calls:
            report[UNKNOWN] = counted[UNKNOWN]
        return report

    def _of_definition(self, tool: Tool) -> int:
        return sum(self._tokens(as_text(each)) for each in handover([tool.spec], self.format).definitions)


_NEVER = Usage()


def _text(answer: Mapping[str, Any]) -> str:
    """What a model reads as text of an answer in its provider's shape: not its images, audio and files."""
    content = answer.get("content")
    if content is None:
        content = answer.get("output")
    if content is None and "functionResponse" in answer:
        content = answer["functionResponse"].get("response")
    if type(content) is str:
        return content
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
    return as_text(content)
