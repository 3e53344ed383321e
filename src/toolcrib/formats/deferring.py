"""A thousand tools for one model: most are deferred, which is to say searched for when they are needed.

Anthropic, OpenAI Responses and OpenRouter take deferred tools and search among them. For everybody else, or if that is
wished, the search is ours: ``search_tools``, and ``call_tool`` for providers that call only what is on the list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from typing_extensions import Unpack

from toolcrib.core.errors import ExportError, did_you_mean, shown
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.handover import Handover, Options, check_options, handover, mark_for_cache
from toolcrib.formats.naming import CALL_TOOL, READ_RESULT, SEARCH_TOOLS, exported_names
from toolcrib.formats.provider import Loss
from toolcrib.formats.strict import not_strict
from toolcrib.formats.table import Format, format_named

Defer = bool | Callable[[ToolSpec], bool]
Namespaces = Literal["category", "tag"] | Callable[[ToolSpec], str | None]
SearchedBy = Literal["provider", "own"]
HandOver = Callable[[list[ToolSpec]], Handover]


class HandoverOptions(Options, total=False):
    """How definitions are wanted, many of them perhaps."""

    defer: Defer
    """Which tools are searched for when they are needed; True for all of them."""
    pinned: Collection[str]
    """The names of tools that are never deferred."""
    namespaces: Namespaces | None
    """What the tools are grouped by, for a provider that has groups."""
    search: SearchedBy
    """Whose search it is; ours where the provider has none."""


USUALLY_FOUND, MOST_FOUND = 5, 50
_TOOL_TYPE = "tool_search"
_ANTHROPIC, _RESPONSES = "anthropic", "openai-responses"
_THEIR_SEARCH: Mapping[str, dict[str, Any]] = {
    _ANTHROPIC: {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    _RESPONSES: {"type": "tool_search"},
    "openrouter": {"type": "openrouter:tool_search"},
}
"""Of the providers that have one."""
_LOADS_WHAT_WE_FIND = (_ANTHROPIC, _RESPONSES)
"""The providers whose models can call what an answer of our search names."""
_MOST_DESCRIBED = 1_000
_BY_WORD: Mapping[str, Callable[[ToolSpec], str | None]] = {
    "category": lambda spec: spec.category,
    "tag": lambda spec: spec.tags[0] if spec.tags else None,
}


def handed_over(specs: Iterable[ToolSpec], format: str, **options: Unpack[HandoverOptions]) -> Handover:
    """As :func:`handover`, with those deferred that are to be."""
    deferring = Deferring.of(options)
    plainly = partial(handover, format=format, strict=options.get("strict", False))
    handed = deferring.handover(specs, format, plainly) if deferring else plainly(specs)
    if options.get("cache"):
        mark_for_cache(handed)
    return handed


def search_spec(limit: int) -> ToolSpec:
    """What our search is, for a model; it finds ``limit`` tools if the model does not say how many."""
    query = {"type": "string", "description": "What has to be done, in a few words"}
    most = {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "default": limit, "description": "At most so many"}
    return ToolSpec(
        name=SEARCH_TOOLS,
        description="Find the tools for a task. There are many more tools than are listed; search before you say that "
        "something cannot be done.",
        tool_type=_TOOL_TYPE,
        parameters={
            "type": "object",
            "properties": {"query": query, "limit": most},
            "required": ["query"],
            "additionalProperties": False,
        },
        timeout_seconds=30,
    )


CALL_SPEC = ToolSpec(
    name=CALL_TOOL,
    description=f"Call a tool that {SEARCH_TOOLS} found.",
    tool_type=_TOOL_TYPE,
    parameters={
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The tool's name, as it was found"},
            "arguments": {"type": "object", "default": {}, "description": "What the tool is called with, by name"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
)


def is_own(spec: ToolSpec) -> bool:
    """Whether it is our search or what calls the tools that it finds."""
    return spec.tool_type == _TOOL_TYPE and spec.name in (SEARCH_TOOLS, CALL_TOOL)


class _Answers:
    """What a function said of each tool, by name."""

    __slots__ = ("_said",)

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said

    def __call__(self, spec: ToolSpec) -> Any:
        return self._said[spec.name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Answers) and self._said == other._said

    def __hash__(self) -> int:
        return hash(tuple(self._said.items()))


@dataclass(frozen=True, slots=True)
class Deferring:
    """Which tools are deferred, how they are grouped, and who searches.

    ``defer`` is True for all of them or says which; those that are ``pinned``, by name, never are. ``namespaces`` names
    the group of a tool: its category, its first tag, or what a function says. ``search`` is "provider" for theirs,
    where there is one, and "own" for ours.
    """

    defer: Defer = False
    pinned: Collection[str] = ()
    namespaces: Namespaces | None = None
    search: SearchedBy = "provider"

    def __post_init__(self) -> None:
        if isinstance(self.pinned, str) or not isinstance(self.pinned, Iterable):
            raise ExportError(f"pinned is a list of names, not {shown(self.pinned)}")
        pinned = tuple(self.pinned)
        for name in pinned:
            if not isinstance(name, str):
                raise ExportError(f"pinned is a list of names, and {shown(name)} in it is none")
        object.__setattr__(self, "pinned", pinned)

    def __bool__(self) -> bool:
        return self != Deferring()

    @classmethod
    def of(cls, options: HandoverOptions) -> Deferring:
        check_options(options, HandoverOptions)
        return cls(
            options.get("defer", False),
            options.get("pinned", ()),
            options.get("namespaces"),
            options.get("search", "provider"),
        )

    def answered(self, specs: Iterable[ToolSpec]) -> Deferring:
        """With what functions say of these tools in their place. It equals another if they say the same again."""
        if not (callable(self.defer) or callable(self.namespaces)):
            return self
        tools = [spec for spec in specs if not is_own(spec)]
        defer, namespaces = self.defer, self.namespaces
        if callable(defer):
            never = self._never_deferred()
            defer = _Answers({spec.name: bool(defer(spec)) for spec in tools if spec.name not in never})
        if callable(namespaces):
            namespaces = _Answers({spec.name: namespaces(spec) for spec in tools})
        return replace(self, defer=defer, namespaces=namespaces)

    def handover(self, specs: Iterable[ToolSpec], format: str, hand_over: HandOver) -> Handover:
        """What ``hand_over`` makes of the tools for ``format``, with those deferred that are to be.

        Raises ExportError for what makes no sense and for what the provider forbids.
        """
        form = format_named(format)
        specs = list(specs)
        self._check(specs)
        own = {spec.name: spec for spec in specs if is_own(spec)}
        tools = [spec for spec in specs if not is_own(spec)]
        deferred = self._deferred(tools)
        ours = bool(deferred) and (self.search == "own" or SEARCH_TOOLS in own or format not in _THEIR_SEARCH)
        if ours:
            handed = _with_our_search(tools, deferred, own, form, hand_over, format)
        else:
            handed = _marked(hand_over(specs), specs, deferred)
        if format == _RESPONSES and not ours:
            handed = _grouped(handed, specs, self._spaces(tools, form))
        elif self.namespaces is not None:
            handed = replace(handed, losses=(*handed.losses, *self._unspoken(tools, form, format)))
        return _with_their_search(handed, format, form) if deferred and not ours else handed

    def _check(self, specs: list[ToolSpec]) -> None:
        if not isinstance(self.defer, bool) and not callable(self.defer):
            raise ExportError(f"defer is True, False, or a function of a spec, not {shown(self.defer)}")
        if self.search not in ("provider", "own"):
            raise ExportError(f"search is 'provider' or 'own', not {shown(self.search)}")
        if not (self.namespaces is None or callable(self.namespaces) or self.namespaces in tuple(_BY_WORD)):
            raise ExportError(f"namespaces is 'category', 'tag', or a function of a spec, not {shown(self.namespaces)}")
        names = [spec.name for spec in specs]
        known = set(names)
        for name in self.pinned:
            if name not in known:
                raise ExportError(f"no tool is called {shown(name)}, which is pinned{did_you_mean(name, names)}")

    def _deferred(self, tools: list[ToolSpec]) -> set[str]:
        never = self._never_deferred()
        chosen = self.defer if callable(self.defer) else lambda _: self.defer
        return {spec.name for spec in tools if spec.name not in never and chosen(spec)}

    def _never_deferred(self) -> set[str]:
        return {*self.pinned, READ_RESULT}  # a result tells of it, and nobody searches for it

    def _space_of(self, spec: ToolSpec) -> str | None:
        found = self.namespaces(spec) if callable(self.namespaces) else _BY_WORD[str(self.namespaces)](spec)
        if found is not None and not isinstance(found, str):
            raise ExportError(f"a namespace is text or None, not {shown(found)}, which was given for {spec.name!r}")
        return found or None

    def _spaces(self, tools: list[ToolSpec], form: Format) -> dict[str, str]:
        """Tool name -> namespace, checked."""
        if self.namespaces is None:
            return {}
        spaces = {spec.name: space for spec in tools if (space := self._space_of(spec))}
        apart = {form.names.apply(spec.name): spec.name for spec in tools if spec.name not in spaces}
        for name, space in spaces.items():
            if form.names.apply(space) != space:
                raise ExportError(
                    f"{form.title} does not allow the namespace {shown(space)}, which tool {name!r} is in: it takes "
                    f"{form.names.max_length} letters, digits, '_' and '-'; let namespaces be a function that names it"
                )
            if space in apart:
                raise ExportError(
                    f"the namespace {space!r} of tool {name!r} has the name that tool {apart[space]!r} has for "
                    f"{form.title}; rename one of them"
                )
        return spaces

    def _unspoken(self, tools: list[ToolSpec], form: Format, format: str) -> list[Loss]:
        reason = f"{form.title} has no namespaces"
        if format == _RESPONSES:
            reason = "what our own search finds is in no namespace"
        return [Loss(spec.name, "namespace", reason) for spec in tools if self._space_of(spec)]


def _marked(handed: Handover, specs: list[ToolSpec], deferred: set[str]) -> Handover:
    if not deferred:
        return handed
    definitions = [
        definition | {"defer_loading": True} if spec.name in deferred else definition
        for spec, definition in zip(specs, handed.definitions, strict=True)
    ]
    return replace(handed, definitions=definitions)


def _grouped(handed: Handover, specs: list[ToolSpec], spaces: Mapping[str, str]) -> Handover:
    """Each namespace in the place of its first tool, with all of its tools."""
    if not spaces:
        return handed
    definitions: list[dict[str, Any]] = []
    groups: dict[str, list[dict[str, Any]]] = {}
    for spec, definition in zip(specs, handed.definitions, strict=True):
        space = spaces.get(spec.name)
        if space is None:
            definitions.append(definition)
            continue
        if space not in groups:
            groups[space] = []
            definitions.append({"type": "namespace", "name": space, "description": "", "tools": groups[space]})
        groups[space].append(definition)
    for definition in definitions:
        if definition["type"] == "namespace":
            definition["description"] = _described([tool["name"] for tool in definition["tools"]])
    return replace(handed, definitions=definitions)


def _described(names: list[str]) -> str:
    """What a namespace holds: a model sees no more of it until it searches."""
    told, length = [], 0
    for name in names:
        length += len(name) + 2
        if length > _MOST_DESCRIBED:
            break
        told.append(name)
    more = f" and {len(names) - len(told)} more" if len(told) < len(names) else ""
    return f"Tools: {', '.join(told)}{more}"


def _with_their_search(handed: Handover, format: str, form: Format) -> Handover:
    search = dict(_THEIR_SEARCH[format])
    if (name := search.get("name")) in handed.names:
        raise ExportError(f"tool {handed.names[str(name)]!r} has the name of {form.title}'s own search; rename it")
    return replace(handed, definitions=[search, *handed.definitions])


def _with_our_search(
    tools: list[ToolSpec],
    deferred: set[str],
    own: Mapping[str, ToolSpec],
    form: Format,
    hand_over: HandOver,
    format: str,
) -> Handover:
    search = own.get(SEARCH_TOOLS, search_spec(USUALLY_FOUND))
    if format not in _LOADS_WHAT_WE_FIND:
        own = {CALL_TOOL: CALL_SPEC, **own}
    first = [search, *(spec for spec in own.values() if spec.name == CALL_TOOL)]
    for spec in tools:
        if spec.name in [mine.name for mine in first]:
            raise ExportError(f"tool {spec.name!r} has the name of our own search for {form.title}; rename it")
    if format == _ANTHROPIC:  # a reference leads to a definition, which must be on the list
        return _marked(hand_over([*first, *tools]), [*first, *tools], deferred)
    listed = [spec for spec in tools if spec.name not in deferred]
    if format == _RESPONSES:  # the answer of a search brings the definitions
        handed = hand_over([*first, *listed])
        found = exported_names([search, *tools], form.names, form.title)
        asked = handed.definitions[0]
        theirs = {"type": "tool_search", "execution": "client"}
        theirs |= {key: asked[key] for key in ("description", "parameters") if key in asked}
        why = "an answer of our own search brings it"
        brought = [not_strict(spec.name, "parameters", why) for spec in tools if spec.name in deferred]
        return replace(
            handed,
            definitions=[theirs, *handed.definitions[1:]],
            names={**handed.names, **found},
            losses=(*handed.losses, *brought) if asked.get("strict") else handed.losses,
        )
    return hand_over([*first, *listed])
