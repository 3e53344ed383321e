"""Tools as a model's provider takes them, and the way back from the provider's names to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.core.errors import ExportError, ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import anthropic, compact, gemini, mcp, openai, openapi, prompt
from toolcrib.formats.naming import ANY_NAME, NameRule, exported_names
from toolcrib.formats.provider import Loss


@dataclass(frozen=True)
class Handover:
    """Definitions for one provider.

    The definitions share nothing with the specs: a caller may change them. ``names`` leads from exported names to
    tool names; ``losses`` says what the provider cannot express.
    """

    format: str
    definitions: list[dict[str, Any]]
    names: Mapping[str, str]
    losses: tuple[Loss, ...] = ()

    def resolve(self, exported_name: str) -> str:
        """The tool behind a name that a model called; ToolNotFoundError if it was never handed over."""
        if exported_name not in self.names:
            raise ToolNotFoundError(exported_name, self.names)
        return self.names[exported_name]


@dataclass(frozen=True)
class _Format:
    title: str
    names: NameRule
    definition: Callable[[ToolSpec, str, list[Loss]], dict[str, Any]]
    """One tool under its exported name; what cannot be said goes into the list."""


_FORMATS = {
    "openai": _Format("OpenAI", openai.NAMES, openai.definition),
    "openrouter": _Format("OpenRouter", openai.NAMES, openai.openrouter_definition),
    "anthropic": _Format("Anthropic", anthropic.NAMES, anthropic.definition),
    "gemini": _Format("Gemini", gemini.NAMES, gemini.definition),
    "mcp": _Format("MCP", mcp.NAMES, mcp.definition),
    "openapi": _Format("OpenAPI", ANY_NAME, openapi.definition),
    "compact": _Format("the compact form", ANY_NAME, compact.definition),
    "prompt": _Format("a prompt", ANY_NAME, prompt.definition),
}

FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The formats that :func:`handover` knows."""


def handover(specs: Iterable[ToolSpec], format: str) -> Handover:
    """``specs`` as ``format`` takes them, one definition each and in their order; "openapi" is one document.

    Raises ExportError if the format is unknown, or if two tools would share an exported name.
    """
    form = _format(format)
    specs = list(specs)
    names = exported_names(specs, form.names, form.title)
    losses: list[Loss] = []
    definitions = []
    for spec, exported in zip(specs, names, strict=True):
        if exported != spec.name:
            losses.append(Loss(spec.name, "name", f"{form.title} does not allow it; it is called {exported!r} there"))
        definitions.append(form.definition(spec, exported, losses))
    if format == "openapi":
        definitions = [openapi.document(definitions)]
    return Handover(format, definitions, names, tuple(losses))


def tool_called(names: Iterable[str], format: str, exported_name: str) -> str:
    """Which of the tools a model means by an exported name; ToolNotFoundError if it means none of them.

    What :meth:`Handover.resolve` says, for a caller who has tools and no handover at hand.
    """
    rule = _format(format).names
    known = list(names)
    for name in known:
        if rule.apply(name) == exported_name:
            return name
    raise ToolNotFoundError(exported_name, known)


def _format(name: str) -> _Format:
    if name not in _FORMATS:
        raise ExportError(f"there is no format {name!r}; there are {', '.join(map(repr, FORMATS))}")
    return _FORMATS[name]
