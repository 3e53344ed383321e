"""Cookies, logins, the console, the network, files, scripts, search and captchas."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import until
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

from toolcrib.toolsets.browser import BrowserSession, Chromium, browser_registry

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_cookies(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent("set_cookie", name="theme", value="dark")
    await agent("set_cookie", name="lang", value="no")
    assert "theme=dark" in await agent.js("document.cookie")
    listed = await agent("get_cookies")
    assert {cookie["name"] for cookie in listed["cookies"]} == {"theme", "lang"}
    assert "dark" not in repr(listed)
    assert (await agent("get_cookies", names=["theme"], with_values=True))["cookies"][0]["value"] == "dark"
    assert await agent("clear_cookies", name="theme") == {"before": 2, "after": 1, "cleared": 1}
    assert await agent.js("document.cookie") == "lang=no"
    await agent("clear_cookies")
    assert await agent.js("document.cookie") == ""
    await agent.session.page.goto("about:blank")
    assert (await agent.try_("set_cookie", name="x", value="y")).error_code == "invalid_arguments"


async def test_a_login_survives_in_a_saved_state(
    agent: Agent, web: Web, chromium: Chromium, agent_of: Callable[[BrowserSession], Agent]
) -> None:
    await agent("goto", url=f"{web.url}/set-login")
    saved = await agent("save_state", file="login")
    assert saved == {"file": "login.json", "cookies": 1, "origins": 1}
    path = agent.session.files / "login.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await agent("clear_cookies")
    await agent.js("localStorage.clear()")
    assert await agent("load_state", file="login.json") == {"file": "login.json", "cookies": 1, "origins": 1}
    await agent("goto", url=web.url)
    assert await agent.js("[document.cookie, localStorage.getItem('user')]") == ["login=tok-123", "ada"]
    async with BrowserSession(chromium=chromium, state=path) as other:
        await agent_of(other)("goto", url=web.url)
        assert await other.page.evaluate("[document.cookie, localStorage.getItem('user')]") == ["login=tok-123", "ada"]
    (agent.session.files / "bad.json").write_text("[]")
    assert (await agent.try_("load_state", file="bad.json")).error_code == "invalid_arguments"
    assert (await agent.try_("load_state", file="../login.json")).error_code == "path_denied"


async def test_console_messages(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/noisy")
    await agent("wait_for_network_idle")
    everything = await agent("console_messages")
    assert "hello from the page" in [message["text"] for message in everything["messages"]]
    assert any("uncaught boom" in error for error in everything["errors"])
    errors = await agent("console_messages", level="error")
    assert {message["level"] for message in errors["messages"]} == {"error"}


async def test_network_requests(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/noisy")
    await agent("wait_for_network_idle")
    seen = await agent("network_requests", contains="/api/")
    assert [(entry["method"], entry["status"], entry["kind"]) for entry in seen["requests"]] == [("GET", 200, "fetch")]
    failed = await agent("network_requests", failed_only=True)
    assert {entry["url"].rpartition("/")[2]: entry["status"] for entry in failed["requests"]} == {
        "500": 500,
        "pixel.png": 404,
    }


async def test_block_resources(agent: Agent, web: Web) -> None:
    page = f"{web.url}/noisy?quieter"
    assert (await agent("block_resources", kinds=["image"], patterns=["*/api/*"]))["blocking"] is True
    await agent("goto", url=page)
    await agent("wait_for_network_idle")
    asked = {path for _, path, headers, _ in web.requests if headers.get("Referer") == page}
    assert asked - {"/favicon.ico"} == {"/status/500"}
    assert (await agent("block_resources"))["blocking"] is False
    await agent("goto", url=f"{web.url}/noisy")
    await agent("wait_for_text", text="user Real")


async def test_set_headers(agent: Agent, web: Web) -> None:
    assert await agent("set_headers", headers={"X-Team": "blue"}) == {"headers": ["X-Team"]}
    await agent("goto", url=f"{web.url}/echo-headers")
    assert json.loads(await agent.text("body"))["X-Team"] == "blue"
    await agent("set_headers", headers={})
    await agent("goto", url=f"{web.url}/echo-headers")
    assert "X-Team" not in json.loads(await agent.text("body"))
    assert (await agent.try_("set_headers", headers={"X": "a\r\nY: b"})).error_code == "invalid_arguments"


async def test_download_file_by_click_and_by_address(agent: Agent, web: Web, tmp_path: Path) -> None:
    await agent("goto", url=f"{web.url}/downloads")
    done = await agent("download_file", selector="Download the report")
    assert (done["file"], done["bytes"]) == ("report.csv", 8)
    assert (agent.session.files / "report.csv").read_text() == "a,b\n1,2\n"
    again = await agent("download_file", url=f"{web.url}/report.csv")
    assert (again["file"], (agent.session.files / "report-2.csv").read_text()) == ("report-2.csv", "a,b\n1,2\n")
    named = await agent("download_file", url=f"{web.url}/pricing", file="pages/pricing.html")
    assert "Pricing page" in (agent.session.files / "pages" / "pricing.html").read_text()
    assert named["type"].startswith("text/html")
    hostile = await agent("download_file", selector="Download with a hostile name")
    assert (agent.session.files / hostile["file"]).parent == agent.session.files
    assert not list(tmp_path.parent.glob("evil*"))
    assert (await agent.try_("download_file", url=f"{web.url}/report.csv", file="/etc/x")).error_code == "path_denied"
    assert (await agent.try_("download_file", url=f"{web.url}/status/404")).error_code == "navigation_failed"
    assert (await agent.try_("download_file")).error_code == "invalid_arguments"


async def test_a_download_that_does_not_begin_is_a_timeout(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/login")
    await agent.js("document.forms[0].action = '/slow?ms=60000&after=download'")
    result = await agent.try_("download_file", selector="Log in", timeout=5000)
    assert result.error_code == "timeout"
    assert [path.endswith("after=download") for path in web.paths()].count(True) == 1


async def test_any_click_that_downloads_is_told(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/downloads")
    await agent("click", selector="Download the report")
    happened = agent.session.happenings
    await until(lambda: "download" in [event["kind"] for event in happened])
    assert [event["file"] for event in happened if event["kind"] == "download"] == ["report.csv"]
    opened = await agent("goto", url=f"{web.url}/report.csv")
    assert opened["download"] is True


async def test_evaluate_javascript_needs_approval(session: BrowserSession, agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    refused = await browser_registry(session).execute("evaluate_javascript", {"script": "document.title = 'changed'"})
    assert refused.error_code == "approval_required"
    assert await agent.js("document.title") == "Toolworks"
    assert (await agent("evaluate_javascript", script="document.title"))["value"] == "Toolworks"
    done = await agent("evaluate_javascript", script="(element) => element.tagName", selector="Count")
    assert (done["value"], done["matched"]["selector"]) == ("BUTTON", "#counter")
    broken = await agent.try_("evaluate_javascript", script="nope()")
    assert broken.error_code == "browser_failed"
    assert "nope is not defined" in (broken.error or "")


async def test_mock_route(agent: Agent, web: Web) -> None:
    assert (await agent("mock_route", pattern="**/api/user", body='{"name": "Mocked"}'))["mocked"] == ["**/api/user"]
    await agent("goto", url=f"{web.url}/noisy")
    await agent("wait_for_text", text="user Mocked")
    assert (await agent("mock_route", pattern="**/api/user", remove=True))["mocked"] == []
    await agent("goto", url=f"{web.url}/noisy")
    await agent("wait_for_text", text="user Real")


@pytest.mark.parametrize(
    ("path", "first"),
    [("/search?q={query}", "First about red pandas"), ("/search.json?q={query}", "Hit 0 for red pandas")],
)
async def test_search_with_a_configured_engine(agent: Agent, web: Web, path: str, first: str) -> None:
    await agent("goto", url=web.url)
    assert (await agent.try_("search", query="red pandas")).error_code == "missing_config"
    agent.session.search = web.url + path
    found = await agent("search", query="red pandas", limit=2)
    assert (found["count"], found["results"][0]["title"]) == (2, first)
    assert found["results"][0]["url"].startswith("https://")
    assert found["results"][0]["snippet"]
    assert agent.session.page.url == f"{web.url}/"
    assert len(agent.session.tabs) == 1


async def test_search_with_a_function(agent: Agent) -> None:
    async def provider(session: BrowserSession, query: str, limit: int) -> list[dict[str, str]]:
        return [{"title": query, "url": f"https://{n}.example", "snippet": ""} for n in range(limit + 1)]

    agent.session.search = provider
    assert (await agent("search", query="x", limit=3))["count"] == 3


async def test_captchas(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    assert (await agent("detect_captcha"))["present"] is False
    assert (await agent("wait_for_captcha_resolved"))["was_present"] is False
    await agent("goto", url=f"{web.url}/captcha")
    found = (await agent("detect_captcha"))["captchas"]
    assert [(captcha["kind"], captcha["site_key"], captcha["solved"]) for captcha in found] == [
        ("recaptcha", "key-123", False)
    ]
    assert (await agent.try_("wait_for_captcha_resolved", timeout=300)).error_code == "timeout"
    assert (await agent.try_("solve_captcha")).error_code == "missing_config"

    async def solver(captcha: dict[str, Any]) -> str:
        return f"token for {captcha['site_key']}"

    agent.session.captcha_solver = solver
    assert (await agent("solve_captcha"))["kind"] == "recaptcha"
    assert await agent.js("document.querySelector('textarea').value") == "token for key-123"
    assert (await agent("detect_captcha"))["present"] is False
    assert (await agent.try_("solve_captcha")).error_code == "element_not_found"


async def test_wait_for_a_captcha_that_somebody_solves(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/captcha")
    # It is solved when it is looked at for the second time.
    await agent.js(
        "let looks = 0; Object.defineProperty(document.querySelector('textarea'), 'value', "
        "{ get: () => ++looks > 1 ? 'solved' : '' })"
    )
    done = await agent("wait_for_captcha_resolved")
    assert (done["resolved"], done["was_present"]) == (True, True)
