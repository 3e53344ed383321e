"""Running the tools of a registry, by name or as a model asks for it."""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import AsyncGenerator, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from toolcrib.calling.call import Calls
from toolcrib.calling.layers import Layer, concerning, only
from toolcrib.calling.observing import Observer
from toolcrib.calling.streaming import stream
from toolcrib.calling.sync import run_sync
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import ToolcribError, ToolValidationError, shown
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.tool import Tool
from toolcrib.formats import calls_of, together
from toolcrib.formats.naming import CALL_TOOL, READ_RESULT
from toolcrib.registry.answering import Answer, Answering, Answers, Execute
from toolcrib.registry.large_results import LargeResults, takes_all
from toolcrib.registry.usage import TokenCounts, UsageReport


class Running:
    """What a registry does with the tools that it holds."""

    _calls: Calls
    _tokens: TokenCounts
    _large: LargeResults | None
    _tools: dict[str, Tool]
    _offered: dict[str, Tool]
    _lock: threading.RLock

    if TYPE_CHECKING:

        async def _execute_named(self, asked: Mapping[str, Any] | None, context: ToolContext) -> ToolResult: ...

    def use(
        self,
        layer: Layer,
        *,
        tools: Iterable[str] = (),
        tags: Iterable[str] = (),
        safety_level: SafetyLevel | str | None = None,
    ) -> None:
        """Put a layer around calls, inside of those that are there: see :mod:`toolcrib.layers`.

        It concerns every tool, or those called one of ``tools``, those with one of ``tags``, and those of
        ``safety_level`` and above.
        """
        if concerns := concerning(tools, tags, safety_level):
            layer = only(layer, concerns)
        with self._lock:
            self._calls = replace(self._calls, layers=(*self._calls.layers, layer))

    def observe(self, observer: Observer) -> None:
        """Tell ``observer`` of every call from now on, also of those that are refused: ``OpenTelemetry()`` is one."""
        with self._lock:
            self._calls = replace(self._calls, observers=(*self._calls.observers, observer))

    def usage(self, *, reset: bool = False) -> UsageReport:
        """What became of the calls of each tool, and what it costs in tokens; as text, a table.

        Counted since the registry was made, or since somebody asked with ``reset=True``. Registries that
        :meth:`ToolRegistry.for_model` makes count together with the one that they come from.
        """
        with self._lock:
            tools = dict(self._tools)
        return self._tokens.report(tools, reset=reset)

    def execute(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        context: ToolContext = NO_CONTEXT,
        timeout_seconds: float | None = None,
    ) -> Coroutine[Any, Any, ToolResult]:
        """Run a tool: ``result = await registry.execute("add", {"a": 1})``.

        Never raises: what went wrong is in the result, with a stable ``error_code``. ``timeout_seconds`` is the
        deadline of this call; the tool's own holds if that is shorter.
        """
        if timeout_seconds is not None:
            return self._execute_within(timeout_seconds, name, arguments, context)
        if name == CALL_TOOL:
            return self._execute_named(arguments, context)
        return self._calls.execute(name, arguments, context)

    async def _execute_within(
        self, seconds: float | None, name: str, arguments: Mapping[str, Any] | None, context: ToolContext
    ) -> ToolResult:
        try:
            context = context if seconds is None else context.within(seconds)
        except ToolcribError as error:
            return self._calls.refuse(self._tools.get(name), name, arguments, error, context)
        return await self.execute(name, arguments, context=context)

    def execute_sync(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        context: ToolContext = NO_CONTEXT,
        timeout_seconds: float | None = None,
    ) -> ToolResult:
        """The same for code without an event loop: ``result = registry.execute_sync("add", {"a": 1})``."""
        return run_sync(self.execute(name, arguments, context=context, timeout_seconds=timeout_seconds))

    def stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        context: ToolContext = NO_CONTEXT,
        timeout_seconds: float | None = None,
    ) -> AsyncGenerator[ToolEvent, None]:
        """Run a tool and hear of it: ``async for event in registry.stream("crawl", {"url": url})``.

        Its progress and the items that it yields come as they are told; the last event has the ``result``.
        """
        return stream(
            lambda heard: self.execute(name, arguments, context=heard, timeout_seconds=timeout_seconds), context
        )

    async def execute_call(
        self,
        format: str,
        call: Any,
        *,
        context: ToolContext = NO_CONTEXT,
        timeout_seconds: float | None = None,
    ) -> Answer:
        """Run a tool call as a model's provider writes it, and answer as that provider reads it.

        ``call`` is an object of the provider's SDK or a dict. Whatever is wrong with it becomes an answer. An item of
        OpenAI Responses is answered by one, also as ``openai``. The answer is the provider's dict; its ``result`` is
        what the tool said, its ``is_terminal`` whether that ends the task.
        """
        if format == "openai" and calls_of([call])[0] == "openai-responses":
            format = "openai-responses"  # noqa: A001
        answering = self._answering(format, context, timeout_seconds)
        return await answering.answer(answering.read(call))

    async def execute_calls(
        self,
        message: Any,
        *,
        context: ToolContext = NO_CONTEXT,
        timeout_seconds: float | None = None,
        at_once: int = 16,
    ) -> Answers:
        """Run the calls of a model's message: ``messages.extend(await registry.execute_calls(message))``.

        ``message`` is what the model said, as an object of its provider's SDK or a dict; which provider's it is, its
        shape tells. ``at_once`` calls run at the same time, each with its own deadline. What comes back is appended to
        the conversation: the answers in the order of the calls, nothing if there were none. Never raises, whatever the
        model said. The list knows the ``results`` of the calls too, and whether one ``is_terminal``: it ends the task.
        """
        if type(at_once) is not int or at_once < 1:
            raise ToolValidationError(f"at_once must be a whole number above 0, not {shown(at_once)}")
        speaker, calls = calls_of(message)
        if not calls:
            return Answers()
        answering = self._answering(speaker, context, timeout_seconds)
        answers = await answering.answer_all(list(map(answering.read, calls)), at_once)
        return Answers(together(speaker, answers), answers.results)

    def _answering(self, format: str, context: ToolContext, timeout_seconds: float | None) -> Answering:
        tools = ChainMap(self._tools, self._offered) if self._offered else self._tools
        execute: Execute = partial(self._execute_within, timeout_seconds)
        if timeout_seconds is None and CALL_TOOL not in tools:
            execute = self._calls.execute
        return Answering(format, tools, self._calls, execute, context, self._tokens.answered, self._large_results())

    def _large_results(self) -> LargeResults | None:
        """What shortens results for a model: nothing if it could not read the rest."""
        large = self._large
        return large if large is not None and self._tools.get(READ_RESULT) is large.reader else None

    async def _execute_for_model(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """As ``execute``, but a long result is shortened; the framework renders images by itself."""
        result = await self.execute(name, arguments, context=context)
        large = self._large_results()
        return result if large is None else large.shortened(result, self._tools, context, takes_all)
