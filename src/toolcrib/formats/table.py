"""Every format that tools are handed over in: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from toolcrib.core.content import Part
from toolcrib.core.errors import ExportError
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import anthropic, compact, gemini, mcp, openai, openai_responses, openapi, prompt
from toolcrib.formats.naming import ANY_NAME, NameRule
from toolcrib.formats.provider import Asked, Loss


class Provider(Protocol):
    """What a module offers whose models call tools."""

    def from_definition(self, given: Mapping[str, Any]) -> ToolSpec: ...

    def read_call(self, call: Mapping[str, Any]) -> Asked: ...

    def render_result(self, call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]: ...

    def takes(self, part: Part) -> bool:
        """Whether a result may hold an image, audio or file like this, other than as base64."""
        ...

    def together(self, answers: list[dict[str, Any]]) -> list[dict[str, Any]]: ...


Define = Callable[[ToolSpec, str, list[Loss]], dict[str, Any]]
"""One tool under its exported name; what cannot be said goes into the list."""


@dataclass(frozen=True)
class Format:
    title: str
    names: NameRule
    definition: Define
    provider: Provider | None = None
    mark: str = ""
    """A key that only this format's definitions have, if there is one."""
    strict: Callable[[], Define] | None = None
    """Makes the strict definitions of one request, if the provider has such."""
    cache: Callable[[list[dict[str, Any]]], None] | None = None
    """Marks the definitions for the provider's cache, if it wants that said."""


_FORMATS = {
    "openai": Format(
        "OpenAI", openai.NAMES, openai.definition, openai, "function",
        strict=lambda: partial(openai.definition, strict=True),
    ),
    "openai-responses": Format(
        "OpenAI Responses", openai_responses.NAMES, openai_responses.definition, openai_responses,
        strict=lambda: partial(openai_responses.definition, strict=True),
    ),
    "openrouter": Format(
        "OpenRouter", openai.NAMES, partial(openai.definition_elsewhere, provider="OpenRouter"), openai,
        strict=lambda: partial(openai.definition_elsewhere, provider="OpenRouter", strict=True),
    ),
    "mistral": Format(
        "Mistral", openai.NAMES, partial(openai.definition_elsewhere, provider="Mistral"), openai,
    ),
    "anthropic": Format(
        "Anthropic", anthropic.NAMES, anthropic.definition, anthropic, "input_schema",
        strict=anthropic.StrictDefinitions, cache=anthropic.add_cache_control,
    ),
    "gemini": Format("Gemini", gemini.NAMES, gemini.definition, gemini, "parametersJsonSchema"),
    "mcp": Format("MCP", mcp.NAMES, mcp.definition, mcp, "inputSchema"),
    "openapi": Format("OpenAPI", ANY_NAME, openapi.definition),
    "compact": Format("the compact form", ANY_NAME, compact.definition),
    "prompt": Format("a prompt", ANY_NAME, prompt.definition),
}  # fmt: skip

FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The formats that tools can be handed over in."""


def format_named(name: str) -> Format:
    if name not in _FORMATS:
        raise ExportError(f"there is no format {name!r}; there are {', '.join(map(repr, FORMATS))}")
    return _FORMATS[name]


def provider_named(name: str) -> Provider:
    found = _FORMATS.get(name)
    if found is None or found.provider is None:
        known = ", ".join(repr(each) for each, form in _FORMATS.items() if form.provider)
        raise ExportError(f"models do not call tools in the format {name!r}; they do in {known}")
    return found.provider


def recognise_format(definition: Mapping[str, Any]) -> str | None:
    """The format of a definition, told by the key that only that format has."""
    return next((name for name, form in _FORMATS.items() if form.mark and form.mark in definition), None)
