"""FlyBrowser's words in a real browser: custom tools on its page, and the agent in it, with a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from tests.dialects.flybrowser_samples import ClickTool
from tests.toolsets.browser.pages import Web

from toolcrib import MissingConfigError, SettingsError, ToolContext, ToolExistsError, tool
from toolcrib.dialects.flybrowser import (
    BaseTool,
    FlyBrowser,
    ModelCapability,
    PageController,
    ToolCategory,
    ToolMetadata,
    ToolRegistry,
    ToolResult,
)
from toolcrib.testing import ScriptedModel, call
from toolcrib.toolsets.browser import BrowserSession, Chromium, browser_registry

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chromium(chromium_path: str) -> AsyncIterator[Chromium]:
    async with Chromium(chromium_path) as browser:
        yield browser


# The samples of the seed


class MyCustomTool(BaseTool):
    metadata = ToolMetadata(
        name="my_custom_tool",
        description="Does something custom",
    )

    async def execute(self, **kwargs) -> ToolResult:
        return ToolResult.success_result(await self.page.title())


async def test_the_last_sample_runs(chromium: Chromium, web: Web) -> None:
    model = ScriptedModel(
        [
            call("goto", url=web.url),
            lambda request: (
                call("my_custom_tool") if "my_custom_tool" in request.tool_names else "There is no such tool"
            ),
            lambda request: call("complete", summary="Read the title", result=list(request.answers.values())[-1]),
        ]
    )
    async with FlyBrowser(model=model, chromium=chromium) as browser:
        browser.react_agent.tool_registry.register(MyCustomTool)

        # Now the agent can use my_custom_tool
        done = await browser.agent("Use my custom tool to tell me the title")
    assert done.success, done.reason
    assert done.ended == "terminal"
    assert done.data == {"summary": "Read the title", "result": "Toolworks"}
    assert [(each.name, each.result.success) for each in done.transcript.calls if each.result] == [
        ("goto", True), ("my_custom_tool", True), ("complete", True),
    ]  # fmt: skip
    assert done.error_message is None


async def test_the_click_sample_clicks_in_place_of_ours(chromium: Chromium, web: Web) -> None:
    async with FlyBrowser(chromium=chromium) as browser:
        await browser.goto(web.url)
        tools = browser.react_agent.tool_registry
        with pytest.raises(ToolExistsError, match="replace=True"):
            tools.register(ClickTool)
        tools.register(ClickTool, replace=True)
        result = await tools.execute("click", {"selector": "#counter"})
        assert result.data == {"clicked": "#counter", "success": True}
        assert await browser.page.inner_text("#counter") == "Clicked 1"
        failed = await tools.execute("click", {"selector": "#nothing", "timeout": 1})
        assert str(failed.error).startswith("Failed to click #nothing")
        assert isinstance(tools.get_tool("click"), ClickTool)
        assert tools.get_tool("click").page is browser.page
        assert tools.list_tools().count("click") == 1


class Title(BaseTool):
    metadata = ToolMetadata(name="title", description="The title", requires_page=True)

    def __init__(self, page_controller: PageController | None = None) -> None:
        super().__init__(page_controller)
        self.calls = 0

    async def execute(self, **kwargs: Any) -> ToolResult:
        self.calls += 1
        return ToolResult.success_result(await self.page.title())


async def test_a_class_or_an_instance_in_a_browser_registry_works_on_the_current_tab(
    chromium: Chromium, web: Web
) -> None:
    other = Title()
    async with BrowserSession(chromium=chromium) as session:
        tools = browser_registry(session)
        tools.register(Title)
        instance = browser_registry(session)
        instance.register(other)
        await tools.execute("goto", {"url": web.url})
        for registry in (tools, instance):
            assert (await registry.execute("title")).data == "Toolworks"
        await tools.execute("new_tab", {"url": f"{web.url}/form"})
        for registry in (tools, instance):
            assert (await registry.execute("title")).data == "Sign up"
        assert other.calls == 2
        assert other.page is None, "the page was lent for the call"
        own = browser_registry(session)
        own.register(Title(session.page))
        await tools.execute("switch_tab", {"tab": "t1"})
        assert (await own.execute("title")).data == "Sign up", "a page of its own is kept"


async def test_a_tool_that_needs_a_page_starts_the_browser(chromium: Chromium) -> None:
    session = BrowserSession(chromium=chromium)
    try:
        tools = browser_registry(session)
        tools.register(Title)
        assert (await tools.execute("title")).data == ""
    finally:
        await session.close()


async def test_a_function_finds_the_page_in_its_context_and_tells_no_secret(chromium: Chromium, web: Web) -> None:
    @tool(requires_page=True)
    async def shown(context: ToolContext) -> list[str]:
        """What is in the password field."""
        return [await context.values["page"].input_value("#pw")]

    async with BrowserSession(chromium=chromium, secrets={"password": "hunter22"}) as session:
        tools = browser_registry(session)
        tools.register(shown)
        await tools.execute("goto", {"url": f"{web.url}/form"})
        await tools.execute("fill", {"selector": "#pw", "value": "{{password}}"})
        assert (await tools.execute("shown")).data == ["{{password}}"]


async def test_replace_in_the_registry_of_the_core(chromium: Chromium, web: Web) -> None:
    async with BrowserSession(chromium=chromium) as session:
        tools = browser_registry(session)
        count, changed = len(tools), []
        tools.on("tool:updated", lambda event: changed.append(event.name))
        with pytest.raises(ToolExistsError, match="replace=True"):
            tools.register(ClickTool)
        tools.register(ClickTool, replace=True)
        assert (len(tools), changed) == (count, ["click"])
        await tools.execute("goto", {"url": web.url})
        assert (await tools.execute("click", {"selector": "#counter"})).data["success"] is True


async def test_a_terminal_tool_is_told_by_the_answers(chromium: Chromium) -> None:
    async with FlyBrowser(chromium=chromium) as browser:
        tools = browser.react_agent.tool_registry
        shape = {"id": "1", "type": "function", "function": {"name": "complete", "arguments": '{"summary": "Done"}'}}
        answer = await tools.execute_call("openai", shape)
        assert (answer.is_terminal, answer.result.data["summary"]) == (True, "Done")
        answers = await tools.execute_calls({"role": "assistant", "tool_calls": [shape]})
        assert answers.is_terminal
        assert answers == [answer]
        waited = shape | {"function": {"name": "wait", "arguments": '{"seconds": 0}'}}
        assert not (await tools.execute_call("openai", waited)).is_terminal


async def test_every_tool_of_the_browser_is_in_one_of_the_six_categories(chromium: Chromium) -> None:
    tools = FlyBrowser(chromium=chromium).react_agent.tool_registry
    found = {category: {each.metadata.name for each in tools.get_by_category(category)} for category in ToolCategory}
    assert sum(map(len, found.values())) == len(tools)
    assert all(found.values())
    assert {"goto", "navigate", "back", "forward"} <= found[ToolCategory.NAVIGATION]
    assert {"click", "type", "scroll", "hover"} <= found[ToolCategory.INTERACTION]
    assert {"extract_text", "extract_structured", "get_page_content", "screenshot"} <= found[ToolCategory.EXTRACTION]
    assert {"fill_form", "submit"} <= found[ToolCategory.FORM]
    assert {"wait", "complete", "fail", "save_state"} <= found[ToolCategory.SYSTEM]
    assert {"log", "debug", "search"} <= found[ToolCategory.UTILITY]
    assert tools.get_by_category("navigation")[0].metadata.category is ToolCategory.NAVIGATION
    assert tools.get_tool("extract").metadata.category is ToolCategory.EXTRACTION
    assert tools.get_tool("get_content").metadata.name == "get_page_content"


async def test_steps_without_a_model(chromium: Chromium, web: Web) -> None:
    async with FlyBrowser(chromium=chromium) as browser:
        assert (await browser.goto(web.url)).success
        assert (await browser.navigate("create an account")).data["url"].endswith("/form")
        read = await browser.tool_registry.execute("extract", {"selector": "h1"})
        assert read.data["text"] == "Sign up"
        assert (await browser.screenshot()).success
        schema = {"type": "object", "properties": {"title": {"type": "string"}}}
        assert (await browser.extract(schema=schema)).data["data"] == {"title": "Sign up"}
        with pytest.raises(MissingConfigError, match="llm_provider="):
            await browser.agent("Buy a hammer")


async def test_the_agent_asks_before_what_is_dangerous_and_goes_on(chromium: Chromium, web: Web) -> None:
    script = [
        call("evaluate_javascript", script="1 + 1"),
        call("fail", reason="It is not allowed"),
        lambda request: "Two." if "2" in str(list(request.answers.values())[-1]) else "Still not.",
    ]
    asked: list[str] = []

    async with FlyBrowser(ScriptedModel(script), chromium=chromium, max_iterations=5) as browser:
        await browser.goto(web.url)
        refused = await browser.agent("What is one and one?")
        assert (refused.success, refused.ended) == (False, "terminal")
        assert "It is not allowed" in str(refused.error_message)
        assert refused.transcript.calls[0].result is not None
        assert refused.transcript.calls[0].result.error_code == "approval_required"

        def approve(spec: Any, arguments: Any) -> bool:
            asked.append(spec.name)
            return True

        browser.react_agent.model = ScriptedModel([script[0], script[2]])
        told = await browser.act("add one and one", approve=approve, max_iterations=2)
        assert (told.data, asked) == ("Two.", ["evaluate_javascript"])


async def test_the_agent_streams(chromium: Chromium, web: Web) -> None:
    model = ScriptedModel([["I go there.", call("goto", url=web.url)], "Done."], format="anthropic")
    async with FlyBrowser(model, chromium=chromium) as browser:
        events = [event async for event in browser.react_agent.stream("Go to the page")]
    assert [event.kind for event in events] == ["said", "call", "result", "said", "end"]
    assert events[0].text == "I go there."


async def test_a_text_model_is_not_handed_what_needs_eyes(chromium: Chromium) -> None:
    browser = FlyBrowser(chromium=chromium, capabilities=[ModelCapability.TEXT_GENERATION])
    assert "screenshot" not in browser.tool_registry
    assert "goto" in browser.tool_registry


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"llm_provider": "openai"}, "llm_model="),
        ({"llm_provider": "acme", "llm_model": "m"}, "base_url="),
        ({"hedless": True}, "did you mean 'headless'"),
        ({"session": BrowserSession(), "trace": True}, "trace"),
    ],
)
async def test_wrong_words_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        FlyBrowser(**options)


async def test_a_provider_is_named_in_flybrowsers_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for provider, speaks in [("openai", "openai"), ("anthropic", "anthropic")]:
        browser = FlyBrowser(llm_provider=provider, llm_model="m", api_key="k", headless=True)
        assert getattr(browser.react_agent.model, "format", "") == speaks
        await browser.stop()
    with pytest.raises(MissingConfigError, match="OPENAI_API_KEY"):
        FlyBrowser(llm_provider="openai", llm_model="m")


async def test_what_is_left_of_a_registry_follows_the_tabs_too(chromium: Chromium, web: Web) -> None:
    async with FlyBrowser(chromium=chromium) as browser:
        browser.tool_registry.register(Title)
        left = browser.tool_registry.get_filtered_registry([ModelCapability.TEXT_GENERATION])
        await left.execute("new_tab", {"url": f"{web.url}/form"})
        assert left.get_tool("title").page is browser.page
        assert "screenshot" not in left
        assert "screenshot" in browser.tool_registry


async def test_a_registry_of_the_dialect_over_any_other(web: Web, chromium: Chromium) -> None:
    async with BrowserSession(chromium=chromium) as session:
        tools = ToolRegistry(core=browser_registry(session))
        tools.register(Title)
        assert (await tools.execute("navigate", {"instruction": web.url})).success
        assert (await tools.execute("title")).data == "Toolworks"
