"""Tools as a model's provider takes them, and the way back from the provider's names to ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from typing_extensions import Unpack

from toolcrib.core.errors import ExportError, ToolNotFoundError, did_you_mean
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import openai_responses, openapi
from toolcrib.formats.naming import SEARCH_TOOLS, exported_names
from toolcrib.formats.provider import Loss
from toolcrib.formats.table import Define, Format, format_named


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


class Options(TypedDict, total=False):
    """How definitions are wanted."""

    strict: bool
    """The provider holds its model to the schemas; the losses name the tools whose schema does not allow that."""
    cache: bool
    """Anthropic keeps what comes before and in the definitions; other providers do so without being told."""


def handover(specs: Iterable[ToolSpec], format: str, **options: Unpack[Options]) -> Handover:
    """``specs`` as ``format`` takes them, one definition each and in their order; "openapi" is one document.

    Raises ExportError if the format is unknown or has no such option, or if two tools would share an exported name.
    """
    form = format_named(format)
    check_options(options, Options)
    define = _definer(form, options)
    specs = list(specs)
    names = exported_names(specs, form.names, form.title)
    losses: list[Loss] = []
    definitions = []
    for spec, exported in zip(specs, names, strict=True):
        if exported != spec.name:
            losses.append(Loss(spec.name, "name", f"{form.title} does not allow it; it is called {exported!r} there"))
        definitions.append(define(spec, exported, losses))
    if format == "openapi":
        definitions = [openapi.document(definitions)]
    handed = Handover(format, definitions, names, tuple(losses))
    if options.get("cache"):
        mark_for_cache(handed)
    return handed


def check_options(given: Iterable[str], known: type) -> None:
    """ExportError if one of them is not among those that ``known`` types."""
    for name in given:
        if name not in known.__annotations__:
            raise ExportError(f"definitions have no option {name!r}{did_you_mean(name, known.__annotations__)}")


def _definer(form: Format, options: Options) -> Define:
    if not options.get("strict"):
        return form.definition
    if form.strict is None:
        raise ExportError(f"{form.title} has no strict definitions; leave out strict=True")
    return form.strict()


def mark_for_cache(handed: Handover) -> None:
    """Mark the definitions up to which the provider caches them."""
    form = format_named(handed.format)
    if form.cache is None:
        raise ExportError(f"{form.title} does not have to be told to cache definitions; leave out cache=True")
    form.cache(handed.definitions)


def tool_called(names: Iterable[str], format: str, exported_name: str) -> str:
    """Which of the tools a model means by an exported name; ToolNotFoundError if it means none of them.

    What :meth:`Handover.resolve` says, for a caller who has tools and no handover at hand.
    """
    rule = format_named(format).names
    known = list(names)
    if exported_name == openai_responses.SEARCHED:
        exported_name = SEARCH_TOOLS
    for name in known:
        if rule.apply(name) == exported_name:
            return name
    raise ToolNotFoundError(exported_name, known)
