"""Waiting, asking, ending, noting."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.support.waiting import until
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

from toolcrib.toolsets.browser.tools import system

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_wait_is_never_longer_than_half_a_minute(agent: Agent, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.LONGEST_WAIT == 30
    done = await agent("wait", seconds=0.2)
    assert done["waited_ms"] >= 200
    assert done["clamped"] is False
    monkeypatch.setattr(system, "LONGEST_WAIT", 0.1)
    done = await agent("wait", seconds=60)
    assert done["clamped"] is True
    assert done["waited_ms"] < 60_000
    monkeypatch.undo()
    await agent("goto", url=f"{web.url}/spa")
    await agent("click", selector="Settings")
    assert (await agent("wait", seconds=30, selector="Save settings"))["matched"]["selector"] == "#late"


async def test_wait_for_selector(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/spa")
    await agent("click", selector="Settings")
    assert (await agent("wait_for_selector", selector="#late"))["matched"]["name"] == "Save settings"
    assert (await agent("wait_for_selector", selector="#late", state="attached"))["matched"]["selector"] == "#late"
    result = await agent.try_("wait_for_selector", selector="#late", state="hidden", timeout=200)
    assert result.error_code == "timeout"
    await agent.js("setTimeout(() => late.remove(), 200)")
    assert (await agent("wait_for_selector", selector="#late", state="detached"))["matched"] is None
    result = await agent.try_("wait_for_selector", selector="#late", timeout=200)
    assert result.error_code == "element_not_found"


async def test_wait_for_text(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/spa")
    await agent("click", selector="Settings")
    assert (await agent("wait_for_text", text="settings  VIEW"))["gone"] is False
    waiting = asyncio.create_task(agent("wait_for_text", text="Settings view", gone=True))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await agent.js("view.textContent = ''")
    assert (await waiting)["gone"] is True
    result = await agent.try_("wait_for_text", text="never", timeout=200)
    assert (result.error_code, result.metadata["retryable"]) == ("timeout", True)


@pytest.mark.parametrize("url", ["/spa/settings", "**/spa/*", "/spa/set+ings$/"])
async def test_wait_for_url(agent: Agent, web: Web, url: str) -> None:
    await agent("goto", url=f"{web.url}/spa")
    await agent.js("setTimeout(() => history.pushState({}, '', '/spa/settings'), 200)")
    assert (await agent("wait_for_url", url=url))["url"] == f"{web.url}/spa/settings"
    result = await agent.try_("wait_for_url", url="/elsewhere", timeout=200)
    assert result.error_code == "timeout"
    assert "/spa/settings" in (result.error or "")


async def test_no_pattern_holds_up_the_loop(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/spa")
    await agent.js(f"history.pushState({{}}, '', '/spa/{'a' * 60}-')")
    await until(lambda: agent.session.page.url.endswith("a-"))
    for pattern in ("/(a+)+$/", "*a*" * 20 + "b"):
        assert (await agent.try_("wait_for_url", url=pattern, timeout=1)).error_code == "timeout"
    result = await agent.try_("wait_for_url", url="/(?=a)/")
    assert "'/(?=a)/' is not a regular expression" in (result.error or "")


async def test_wait_for_network_idle(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent("wait_for_network_idle")
    await agent.js("void fetch('/slow?ms=700').then((r) => r.text()).then(() => { document.title = 'fetched' })")
    assert (await agent("wait_for_network_idle"))["idle"] is True
    assert await agent.js("document.title") == "fetched"
    await agent.js("void fetch('/slow?ms=60000')")
    busy = await agent.try_("wait_for_network_idle", timeout=900)
    assert (busy.error_code, busy.metadata["open"]) == ("timeout", [f"{web.url}/slow?ms=60000"])


async def test_complete_and_fail_end_the_task(agent: Agent) -> None:
    done = await agent.try_("complete", summary="Found it", result={"price": 3})
    assert (done.success, done.data, done.is_terminal) == (True, {"summary": "Found it", "result": {"price": 3}}, True)
    assert agent.session.task["status"] == "complete"
    failed = await agent.try_("fail", reason="The shop is closed", recoverable=True)
    assert (failed.success, failed.error, failed.error_code, failed.is_terminal) == (
        False,
        "The shop is closed",
        "task_failed",
        True,
    )
    assert failed.metadata["recoverable"] is True
    assert (await agent.try_("fail", reason="No")).metadata["recoverable"] is False


async def test_ask_user(agent: Agent) -> None:
    assert (await agent.try_("ask_user", question="Which?")).error_code == "missing_config"
    asked = []

    async def answer(question: str) -> str:
        asked.append(question)
        return "Work"

    agent.session.ask_user = answer
    assert (await agent("ask_user", question="Which?", choices=["work", "private"]))["answer"] == "Work"
    assert asked == ["Which? (work / private)"]
    assert (await agent.try_("ask_user", question="Which?", choices=["red"])).error_code == "invalid_arguments"


async def test_log(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="toolcrib.browser"):
        assert (await agent("log", message="three candidates", level="warning"))["count"] == 1
    assert ("toolcrib.browser", logging.WARNING, "default: three candidates") in caplog.record_tuples


async def test_debug(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/noisy")
    await agent("wait_for_network_idle")
    await agent("log", message="noted")
    told = await agent("debug")
    assert told["tabs"] == [{"tab": "t1", "url": f"{web.url}/noisy", "crashed": False}]
    assert any("something is off" in str(entry) for entry in told["console_errors"])
    assert any("/status/500" in entry["url"] for entry in told["failed_requests"])
    assert told["last_calls"][0] == {"tool": "goto", "success": True, "error_code": ""}
    assert told["notes"] == [{"level": "info", "message": "noted"}]


async def test_highlight(agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    await agent.js("counter.style.outline = 'dotted'")
    await agent("highlight", selector="Count", seconds=0.1)

    async def as_before() -> bool:
        return bool(await agent.js("counter.style.outline") == "dotted")

    await until(as_before)
    done = await agent("highlight", selector="Count", color="blue")
    assert done["box"]["width"] > 0
    assert await agent.js("counter.style.outlineColor") == "blue"
