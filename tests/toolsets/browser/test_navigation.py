"""Going places: goto, navigate, back, forward, refresh, and the tabs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

from toolcrib.toolsets.browser.tools import interaction

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_goto_tells_where_it_came_out(agent: Agent, web: Web) -> None:
    assert await agent("goto", url=f"{web.url}/redirect?to=/pricing") == {
        "url": f"{web.url}/pricing",
        "title": "Pricing",
        "status": 200,
    }
    assert (await agent("goto", url=f"{web.url}/status/404"))["status"] == 404


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://version", "javascript:alert(1)", "view-source:file:///etc/passwd"]
)
async def test_goto_opens_web_addresses_only(agent: Agent, url: str) -> None:
    result = await agent.try_("goto", url=url)
    assert (result.success, result.error_code) == (False, "domain_denied")
    assert agent.session.page.url == "about:blank"


async def test_goto_says_why_an_address_did_not_open(agent: Agent) -> None:
    result = await agent.try_("goto", url="http://127.0.0.1:9/")
    assert result.error_code == "navigation_failed"
    assert result.metadata["retryable"] is True
    assert "ERR_" in (result.error or "")


@pytest.mark.parametrize(
    ("instruction", "path"),
    [
        ("open the pricing page", "/pricing"),
        ("contact", "/contact"),
        ("show me the documentation", "/docs"),
        ("I would like to sign up: create an account", "/form"),
    ],
)
async def test_navigate_finds_what_the_words_mean(agent: Agent, web: Web, instruction: str, path: str) -> None:
    await agent("goto", url=web.url)
    found = await agent("navigate", instruction=instruction)
    assert found["url"] == web.url + path
    assert found["navigated"] is True
    assert found["matched"]["role"] == "link"


async def test_navigate_takes_addresses_and_history(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    assert (await agent("navigate", instruction=f"please go to {web.url}/docs."))["title"] == "Docs"
    assert (await agent("navigate", instruction="go back"))["url"] == f"{web.url}/"


async def test_navigate_says_what_there_is_instead(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    result = await agent.try_("navigate", instruction="the careers of giraffes")
    assert result.error_code == "element_not_found"
    assert web.url in (result.error or "")


async def test_navigate_asks_the_model_where_its_own_means_end(agent: Agent, web: Web) -> None:
    asked: dict[str, Any] = {}

    async def model(task: str, material: dict[str, Any]) -> dict[str, Any]:
        asked.update(material, task=task)
        link = next(link for link in material["links"] if link["text"] == "Pricing")
        return {"handle": link["handle"]}

    await agent("goto", url=web.url)
    agent.session.model = model
    found = await agent("navigate", instruction="how expensive is it")
    assert (found["by"], found["title"]) == ("model", "Pricing")
    assert asked["task"] == "navigate"
    assert asked["instruction"] == "how expensive is it"


async def test_back_and_forward(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent("goto", url=f"{web.url}/docs")
    assert (await agent("back"))["title"] == "Toolworks"
    assert (await agent("forward"))["title"] == "Docs"
    result = await agent.try_("forward")
    assert (result.error_code, result.metadata["retryable"]) == ("navigation_failed", False)


async def test_refresh_loads_anew(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent("click", selector="#counter")
    assert await agent.text("#counter") == "Clicked 1"
    assert (await agent("refresh"))["status"] == 200
    assert await agent.text("#counter") == "Count"


async def test_tabs(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    assert await agent("new_tab", url=f"{web.url}/docs") == {
        "tab": "t2",
        "url": f"{web.url}/docs",
        "title": "Docs",
        "status": 200,
    }
    listed = (await agent("list_tabs"))["tabs"]
    assert [(tab["tab"], tab["title"], tab["current"]) for tab in listed] == [
        ("t1", "Toolworks", False),
        ("t2", "Docs", True),
    ]
    assert (await agent("switch_tab", tab="1"))["title"] == "Toolworks"
    assert (await agent("switch_tab", tab="/docs"))["tab"] == "t2"
    assert (await agent("close_tab"))["tab"] == "t1"
    assert agent.session.page.url == f"{web.url}/"
    result = await agent.try_("switch_tab", tab="t2")
    assert "t1" in (result.error or "")
    assert (await agent("close_tab", tab="t1"))["left"] == 0
    assert (await agent("goto", url=web.url))["title"] == "Toolworks"


async def test_a_window_that_the_page_opens_is_a_tab_and_told_of(
    agent: Agent, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interaction, "_NEW_TAB_SECONDS", 20)  # the next call tells of a tab that comes later
    await agent("goto", url=web.url)
    await agent.js("document.querySelector('#signup').target = '_blank'")
    result = await agent.try_("click", selector="Create an account", timeout=60_000)
    assert result.metadata["happened"][0]["kind"] == "tab_opened"
    assert agent.session.page.url == f"{web.url}/"
    assert (await agent("switch_tab", tab="t2"))["url"] == f"{web.url}/form"
