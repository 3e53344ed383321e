"""AgentForge's prompt options, as a type of their own and with the defaults that its sample shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from toolcrib.core.errors import ToolValidationError, did_you_mean


class PromptOptions(TypedDict, total=False):
    """What a prompt tells of each tool, and of which tools. Usage notes come with the examples if nothing is said."""

    include_examples: bool
    include_notes: bool
    include_limitations: bool
    group_by_category: bool
    categories: Iterable[str] | None
    max_examples_per_tool: int | None
    minimal: bool


def complete(options: Mapping[str, Any]) -> PromptOptions:
    """The options with the defaults of this dialect; ToolValidationError names one that there is not."""
    for name in options:
        if name not in PromptOptions.__annotations__:
            hint = did_you_mean(str(name), PromptOptions.__annotations__)
            raise ToolValidationError(f"generate_prompt has no option {name!r}{hint}")
    complete: PromptOptions = {"include_notes": bool(options.get("include_examples"))}
    complete.update(options)  # type: ignore[typeddict-item] # every name was looked at
    return complete
