"""FlyBrowser: a browser with an agent in it.

async with FlyBrowser(llm_provider="openai", llm_model="gpt-5") as browser:
    browser.react_agent.tool_registry.register(MyCustomTool)
    done = await browser.agent("Use my custom tool to find the cheapest hammer")
    print(done.data)
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import fields
from typing import Any, Self

from toolcrib.agents import Agent, AgentEvent, AnthropicModel, OpenAIModel, Prices, Run
from toolcrib.agents.agent import Model
from toolcrib.calling.call import Approve
from toolcrib.core.errors import MissingConfigError, SettingsError, did_you_mean
from toolcrib.core.json import as_text
from toolcrib.core.safety import ModelCapability, SafetyLevel
from toolcrib.dialects.flybrowser import ToolRegistry
from toolcrib.dialects.flybrowser_result import ToolResult
from toolcrib.toolsets.browser import BrowserSession, browser_registry

SYSTEM = (
    "You work on a task in a web browser, through tools. Look at the page before you act on it: snapshot lists its "
    "elements with handles. Do one thing at a time and look what came of it. When the task is done call complete with "
    "the result; if it cannot be done call fail and say why."
)
_WORDS = {"max_iterations": "max_steps", "max_time_seconds": "max_seconds"}
"""FlyBrowser's words for an agent's limits."""
_OUR_PROVIDERS = {"openai": OpenAIModel, "anthropic": AnthropicModel}


class AgentResponse(Run):
    """What a task came to: a run, in FlyBrowser's words too."""

    @property
    def data(self) -> Any:
        """What the agent answered."""
        return self.answer

    @property
    def error_message(self) -> str | None:
        """Why the task was not done; None if it was."""
        return None if self.success else self.reason


class ReActAgent:
    """The agent of a browser: it reasons, acts with the tools of ``tool_registry``, and observes."""

    def __init__(self, model: Model | None, tool_registry: ToolRegistry, options: Mapping[str, Any]) -> None:
        self.model = model
        self.tool_registry = tool_registry
        self._options = dict(options)

    async def execute(self, task: str, *, after: Run | None = None, **options: Any) -> AgentResponse:
        """Work on a task; ``after`` goes on with another, ``options`` are those of an Agent, for this task alone."""
        run = await self._agent(options).run(task, after=after)
        return AgentResponse(**{each.name: getattr(run, each.name) for each in fields(Run)})

    def stream(self, task: str, *, after: Run | None = None, **options: Any) -> AsyncGenerator[AgentEvent, None]:
        """The same, told as it goes on; the last event has the run."""
        return self._agent(options).stream(task, after=after)

    def _agent(self, options: Mapping[str, Any]) -> Agent:
        if self.model is None:
            raise MissingConfigError(
                "the browser has no model to work on a task; give it model=..., or llm_provider= and llm_model="
            )
        said = {_WORDS.get(name, name): value for name, value in options.items()}
        return Agent(self.model, self.tool_registry.core, **{**self._options, **said})


class FlyBrowser:
    """A browser, its tools, and an agent that uses them. Leave it with ``async with`` or ``stop()``.

    ``model`` is what an :class:`toolcrib.agents.Agent` takes. In its place ``llm_provider`` ("openai", "anthropic", or
    any other that speaks as OpenAI does at ``base_url``), ``llm_model`` and ``api_key`` name one. ``capabilities`` are
    the model's: tools that need more are left out. What is more dangerous than ``highest_safety_level`` runs if
    ``approve(spec, params)`` says so. ``session`` is a session of your own; the other options are a session's.
    """

    def __init__(  # noqa: PLR0913 - each is one thing that a user may say, by its name
        self,
        model: Model | None = None,
        *,
        llm_provider: str = "",
        llm_model: str = "",
        api_key: str | None = None,
        base_url: str | None = None,
        headless: bool = True,
        session: BrowserSession | None = None,
        capabilities: Iterable[ModelCapability | str] | None = None,
        highest_safety_level: SafetyLevel | str = SafetyLevel.HIGH_RISK,
        approve: Approve | None = None,
        system: str = SYSTEM,
        max_iterations: int = 50,
        max_time_seconds: float | None = None,
        max_tokens: int | None = None,
        prices: Prices | None = None,
        **options: Any,
    ) -> None:
        self._endpoint = None if model is not None else _model(llm_provider, llm_model, api_key, base_url)
        if session is None:
            session = _session({"headless": headless, **options})
        elif options:
            raise SettingsError(
                f"the session is given, so {', '.join(options)} cannot be said of it; make it with them"
            )
        self.session = session
        core = browser_registry(session, highest_safety_level=highest_safety_level, approve=approve)
        if capabilities is not None:
            core = core.for_model(str(capability) for capability in capabilities)
        told = {"system": system, "prices": prices, "max_tokens": max_tokens}
        limits = {"max_steps": max_iterations, "max_seconds": max_time_seconds}
        self.react_agent = ReActAgent(model or self._endpoint, _Tools(session, core), told | limits)

    # Life

    async def start(self) -> Self:
        await self.session.start()
        return self

    async def stop(self) -> None:
        """Close the browser, and the connections of a model that was made here."""
        try:
            await self.session.close()
        finally:
            if self._endpoint is not None:
                await self._endpoint.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def tool_registry(self) -> ToolRegistry:
        return self.react_agent.tool_registry

    @property
    def page(self) -> Any:
        """The page of the current tab, Playwright's."""
        return self.session.page

    # Tasks, and single steps

    async def agent(self, task: str, **options: Any) -> AgentResponse:
        """Let the agent work on a task: ``done.success``, ``done.data``. ``options`` as of ``react_agent.execute``."""
        return await self.react_agent.execute(task, **options)

    async def act(self, instruction: str, **options: Any) -> AgentResponse:
        """Let the agent do one thing on this page."""
        return await self.agent(f"On the page that is open now, do this and nothing more: {instruction}", **options)

    async def goto(self, url: str) -> ToolResult:
        return await self.tool_registry.execute("goto", {"url": url})

    async def navigate(self, instruction: str) -> ToolResult:
        """Follow the link, button or address that the words mean; no model is needed."""
        return await self.tool_registry.execute("navigate", {"instruction": instruction})

    async def extract(self, query: str = "", schema: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """What the page says of ``query``. With a JSON Schema alone it is read from the page, without a model."""
        if schema is not None and not query:
            return await self.tool_registry.execute("extract_structured", {"schema": dict(schema)})
        shape = f" Give the result as JSON of this schema: {as_text(dict(schema))}" if schema is not None else ""
        return await self.agent(
            f"Extract from the page that is open now, without leaving it: {query}.{shape}", **options
        )

    async def screenshot(self, full_page: bool = False) -> ToolResult:
        return await self.tool_registry.execute("screenshot", {"full_page": full_page})


class _Tools(ToolRegistry):
    """The registry of a browser: a class gets the page of the current tab whenever it is made."""

    def __init__(self, session: BrowserSession, core: Any) -> None:
        self._session = session
        super().__init__(core=core)

    @property
    def page_controller(self) -> Any:
        tab = self._session.tabs.current
        return None if tab is None else tab.page

    @page_controller.setter
    def page_controller(self, page_controller: Any) -> None:
        """It is the session's, whatever is given."""


def _model(provider: str, name: str, api_key: str | None, base_url: str | None) -> Any:
    """The endpoint that FlyBrowser's words name; None if they name none."""
    if not provider and not name:
        return None
    provider = provider or "openai"
    if not name:
        raise SettingsError(f"llm_provider={provider!r} is given without its model; add llm_model='...'")
    if provider not in _OUR_PROVIDERS and base_url is None:
        raise SettingsError(
            f"llm_provider={provider!r} has no known address; if it speaks as OpenAI does give base_url=..., "
            f"or model=...; known are {', '.join(map(repr, _OUR_PROVIDERS))}"
        )
    return _OUR_PROVIDERS.get(provider, OpenAIModel)(name, api_key=api_key, base_url=base_url)


def _session(options: Mapping[str, Any]) -> BrowserSession:
    known = {each.name for each in fields(BrowserSession)}
    if unknown := [name for name in options if name not in known]:
        raise SettingsError(f"a FlyBrowser has no option {unknown[0]!r}{did_you_mean(unknown[0], known)}")
    return BrowserSession(**options)
