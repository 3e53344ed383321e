"""ToolRegistry: the live tools of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from typing_extensions import Unpack

import toolcrib
from toolcrib.calling.authorising import Authoriser
from toolcrib.calling.call import Approve, Calls
from toolcrib.calling.layers import Layer
from toolcrib.calling.recording import Recorder
from toolcrib.calling.usage import UsageCounter
from toolcrib.core.counting import CountTokens
from toolcrib.core.errors import ToolExistsError, ToolNotFoundError, ToolValidationError
from toolcrib.core.events import RegistryCleared, ToolRegistered, ToolRemoved, ToolUpdated
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.tool import P, R_co, Tool
from toolcrib.define import SupportsTool
from toolcrib.formats import Handover, HandoverOptions, generate_prompt
from toolcrib.frameworks import tool_of, tools_of
from toolcrib.ports import Audit, Policy
from toolcrib.registry import selection
from toolcrib.registry.discovery import GROUPS, Discovery, Found, find_plugins
from toolcrib.registry.frameworks import Frameworks
from toolcrib.registry.handovers import Handovers
from toolcrib.registry.large_results import LargeResults, ResultReader
from toolcrib.registry.listeners import Handler, Listeners
from toolcrib.registry.running import Running
from toolcrib.registry.tool_search import ToolSearch
from toolcrib.registry.usage import TokenCounts

_ANOTHER_NAME = "give one another name, as tool(name='...')(thing) does"


class ToolRegistry(Running, ToolSearch, Frameworks):
    """Holds live tools: register, look up, filter, search, hand over, execute. Safe to use from several threads.

    ``highest_safety_level`` is what runs without asking; above it ``approve(spec, arguments)`` is asked, and if there
    is nobody to ask the call is refused. ``policy`` is asked before every call, ``audit`` told of it; ``layers`` wrap
    the run. ``count_tokens`` counts for :meth:`usage`, which otherwise estimates. With ``max_result_characters`` a
    model is given the beginning of a longer result, and the tool ``read_result``, which is added to the others, for
    the rest; so it is for a tool that has a limit of its own.
    """

    def __init__(  # noqa: PLR0913 - each is one thing that a user may say, by its name
        self,
        tools: Iterable[Any] = (),
        *,
        highest_safety_level: SafetyLevel | str = SafetyLevel.HIGH_RISK,
        approve: Approve | None = None,
        policy: Policy | None = None,
        audit: Audit | None = None,
        layers: Iterable[Layer] = (),
        count_tokens: CountTokens | None = None,
        max_result_characters: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        counter = UsageCounter(clock)
        self._tokens = TokenCounts(counter, count_tokens)
        self._calls = Calls(
            self._resolve,
            SafetyLevel(highest_safety_level),
            approve,
            None if policy is None else Authoriser(policy),
            None if audit is None else Recorder(audit, clock),
            tuple(layers),
            usage=counter,
        )
        self._large = None if max_result_characters is None else LargeResults(max_result_characters)
        self._tools: dict[str, Tool] = {}
        self._offered: dict[str, Tool] = {}
        self._lock = threading.RLock()
        self._listeners = Listeners()
        self._discovered: set[str] = set()
        self._handovers = Handovers()
        self.left_out: dict[str, str] = {}
        """In a registry made by :meth:`for_model`: the tools that did not come along, and why."""
        self.suboptimal: dict[str, str] = {}
        """In a registry made by :meth:`for_model`: the tools that want more than the model has, and what."""
        self.register_many(tools)

    # Keeping

    @overload
    def register(  # type: ignore[overload-overlap] # the last one is for everything else
        self, thing: Tool[P, R_co], *, replace: bool = False
    ) -> Tool[P, R_co]: ...  # pyright: ignore[reportOverlappingOverload]

    @overload
    def register(  # type: ignore[overload-overlap] # as above
        self, thing: SupportsTool | type[SupportsTool], *, replace: bool = False
    ) -> Tool: ...

    @overload
    def register(  # type: ignore[overload-overlap] # of a class, not a function
        self, thing: type[object], *, replace: bool = False
    ) -> list[Tool]: ...

    @overload
    def register(  # type: ignore[overload-overlap] # as above
        self, thing: Callable[P, R_co], *, replace: bool = False
    ) -> Tool[P, R_co]: ...

    @overload
    def register(self, thing: object, *, replace: bool = False) -> list[Tool]: ...

    def register(self, thing: Any, *, replace: bool = False) -> Any:
        """Add a tool: a Tool, a function, a BaseTool class or instance. Raises ToolExistsError for a taken name.

        Of an object with ``@tool`` methods all of them are added, or none, and the answer is the list of them. A tool
        of LangChain, LlamaIndex, pydantic-ai or OpenAI's Agents SDK is taken as by ``add_langchain`` and its siblings,
        and so is a toolset of pydantic-ai: the answer is the list of its tools.

        With ``replace`` a tool takes the place of one that has its name, as by :meth:`update`.
        """
        found = tools_of(thing)
        self._add(found if isinstance(found, list) else [found], replacing=replace)
        return found

    def register_many(self, things: Iterable[Any]) -> list[Tool]:
        """Add all of them, or none if one is wrong or its name is taken."""
        tools: list[Tool] = []
        for thing in things:
            found = tools_of(thing)
            tools += found if isinstance(found, list) else [found]
        self._add(tools)
        return tools

    def _add(self, tools: list[Tool], *, replacing: bool = False) -> None:
        tools = self._with_reader(tools)
        names: set[str] = set()
        for tool in tools:
            if tool.name in names:
                raise ToolExistsError(tool.name, f"it is in the list twice; {_ANOTHER_NAME}")
            names.add(tool.name)
        with self._lock:
            before = {name: self._tools[name] for name in names if name in self._tools}
            for tool in () if replacing else tools:
                if tool.name in before:
                    raise ToolExistsError(tool.name, f"{_ANOTHER_NAME}, or register it with replace=True")
            self._tools.update((tool.name, tool) for tool in tools)
        for tool in tools:
            previous = before.get(tool.name)
            self._listeners.tell(ToolRegistered(tool) if previous is None else ToolUpdated(tool.name, tool, previous))

    def _with_reader(self, tools: list[Tool]) -> list[Tool]:
        """And the tool that reads what is left out of their results, if that may happen; no other registry's."""
        if self._large is None and any(tool.spec.max_result_characters is not None for tool in tools):
            self._large = LargeResults()
        reader = None if self._large is None else self._large.reader
        tools = [tool for tool in tools if tool is reader or not isinstance(tool, ResultReader)]
        if reader is None or reader in tools or self._tools.get(reader.name) is reader:
            return tools
        return [*tools, reader]

    def update(self, name: str, thing: Any) -> Tool:
        """Put another tool in the place of the one called ``name``. It must bear that name."""
        tool = tool_of(thing)
        if tool.name != name:
            raise ToolValidationError(f"{name!r} cannot be updated to a tool called {tool.name!r}; names stay")
        with self._lock:
            previous = self.get(name)
            self._tools[name] = tool
        self._listeners.tell(ToolUpdated(name, tool, previous))
        return tool

    def remove(self, name: str) -> bool:
        """Whether there was such a tool; now there is none."""
        with self._lock:
            tool = self._tools.pop(name, None)
        if tool is None:
            return False
        self._listeners.tell(ToolRemoved(tool))
        return True

    def clear(self) -> None:
        with self._lock:
            self._tools.clear()
        self._listeners.tell(RegistryCleared())

    # Looking up

    def get(self, name: str) -> Tool:
        """The tool, or ToolNotFoundError, which is a KeyError."""
        try:
            return self._tools[name]
        except (KeyError, TypeError):  # a model may call anything, even something that cannot be a name
            raise ToolNotFoundError(name, self._tools) from None

    def has(self, name: str) -> bool:
        return name in self._tools

    def get_all(self) -> list[Tool]:
        """Every tool, in order of registration."""
        with self._lock:
            return list(self._tools.values())

    def get_by_category(self, category: str) -> list[Tool]:
        return self.filter(category=category)

    def get_by_tag(self, tag: str) -> list[Tool]:
        return self.filter(tags=[tag])

    def filter(
        self,
        *,
        category: str | None = None,
        tags: Iterable[str] | None = None,
        name_pattern: str | None = None,
        **fields: Any,
    ) -> list[Tool]:
        """The tools for which every criterion holds: all of ``tags``, a regular expression for the name, any field."""
        tools = self.get_all()
        criteria = {"category": category, "tags": tags, "name_pattern": name_pattern, **fields}
        selection.check_criteria(criteria, tools)
        matches = selection.compile_filter(criteria)
        return [tool for tool in tools if matches(tool.spec)]

    def search(self, text: str, limit: int | None = None, *, any_word: bool = False) -> list[Tool]:
        """The tools whose name, tags, category or description hold every word, the best first.

        With ``any_word`` those that hold any of them, for text that is no list of keywords: a sentence, a task.
        """
        return selection.search(self.get_all(), text, limit, any_word)

    def for_model(self, capabilities: Iterable[str]) -> ToolRegistry:
        """A registry of the tools that a model with these capabilities can use; ``left_out`` says why not others."""
        has = frozenset(str(capability) for capability in capabilities)
        fitting, usable = ToolRegistry(), []
        for tool in self.get_all():
            if reason := selection.why_not(tool.spec, has):
                fitting.left_out[tool.name] = reason
                continue
            usable.append(tool)
            if remark := selection.not_at_best(tool.spec, has):
                fitting.suboptimal[tool.name] = remark
        fitting._take_over(self, usable)
        return fitting

    def _take_over(self, other: ToolRegistry, tools: Iterable[Tool], **changes: Any) -> None:
        """Hold these tools of ``other``. Calls go as they do there, but for ``changes``."""
        self._calls, self._large = replace(other._calls, resolve=self._resolve, **changes), other._large
        self._tokens = other._tokens
        self._tools = {tool.name: self.searching_here(tool) for tool in tools}

    # Handing over

    def handover(self, format: str = "openai", **options: Unpack[HandoverOptions]) -> Handover:
        """The tools as a provider wants them, with the way back from its names and what it cannot express.

        Made once for as long as the tools are the same; the definitions are the caller's own all the same. The options
        are those of :meth:`definitions`.
        """
        handed = self._handovers.handover(self.get_all(), format, options)
        self._tokens.format = format
        self._offer(handed.names)
        return handed

    def definitions(self, format: str = "openai", **options: Unpack[HandoverOptions]) -> list[dict[str, Any]]:
        """The tools as a provider wants them: openai, openai-responses, openrouter, anthropic, gemini, mcp, compact ...

        ``strict=True``: the provider holds its model to the schemas. ``cache=True``: Anthropic keeps the definitions.

        ``defer`` is for many tools: True, or a function that says which are searched for when they are needed instead
        of told up front; those ``pinned`` by name are always told. ``namespaces`` groups tools for a provider that has
        groups: by "category", by first "tag", or as a function of a spec says. If a provider has a search it is used
        unless ``search`` is "own"; otherwise it is :meth:`search_tool`, which :meth:`execute_calls` then knows.
        """
        return self.handover(format, **options).definitions

    def generate_prompt(self, **options: Any) -> str:
        """The tools as text for a prompt; the options are those of :func:`toolcrib.formats.generate_prompt`."""
        return generate_prompt([tool.spec for tool in self.get_all()], **options)

    # Listening and discovering

    def on(self, event: str, handler: Handler) -> None:
        """Call ``handler(event)`` at tool:registered, tool:updated, tool:removed or registry:cleared."""
        self._listeners.on(event, handler)

    def off(self, event: str, handler: Handler) -> None:
        self._listeners.off(event, handler)

    def discover(
        self, *, groups: Iterable[str] = GROUPS, folders: Iterable[str | Path] | None = None, reload: bool = False
    ) -> Discovery:
        """Register the tools of installed plugins, then of ``folders``; by default of those that the settings name.

        The first of a name wins. A broken plugin is a warning in the log and in the answer, and stops nobody else.
        ``reload=True`` forgets what was discovered before, so that files which have changed or gone are seen as they
        are now. Everything is found first and then put in place at once: nobody sees a part of it.
        """
        looked_in = toolcrib.plugin_folders() if folders is None else folders
        discovery = find_plugins(groups, looked_in)
        for found in self._take_up(discovery, forgetting=reload):
            discovery.note_duplicate(found)
        return discovery

    def _take_up(self, discovery: Discovery, *, forgetting: bool) -> list[Found]:
        """Hold what was found, without what was found before if that is to be forgotten; what has no place here."""
        duplicates: list[Found] = []
        new: dict[str, Tool] = {}
        with self._lock:
            before, gone = self._tools, self._discovered if forgetting else set[str]()
            kept = {name: tool for name, tool in before.items() if name not in gone}
            for found in discovery.found:
                if found.tool.name in kept or found.tool.name in new:
                    duplicates.append(found)
                else:
                    new[found.tool.name] = found.tool
            with_reader = {tool.name: tool for tool in self._with_reader([*new.values()])}
            self._tools = kept | {name: tool for name, tool in with_reader.items() if name not in kept}
            self._discovered = (self._discovered - gone) | new.keys()
        for name in gone & (before.keys() - new.keys()):
            self._listeners.tell(ToolRemoved(before[name]))
        for name, tool in new.items():
            changed = name in gone and name in before
            self._listeners.tell(ToolUpdated(name, tool, before[name]) if changed else ToolRegistered(tool))
        return duplicates

    # A container of tools

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.get_all())

    def __getitem__(self, name: str) -> Tool:
        return self.get(name)

    def names(self) -> Collection[str]:
        with self._lock:
            return list(self._tools)

    def __repr__(self) -> str:
        return f"<ToolRegistry of {len(self)} tools>"
