"""Calls recorded as a script and replayed without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.toolsets.browser import pages
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

from toolcrib import ToolValidationError
from toolcrib.toolsets.browser import BrowserSession, Chromium, Script, Step

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _record(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/form")
    outline = (await agent("snapshot"))["snapshot"]
    handle = next(line for line in outline.splitlines() if '"Email address"' in line).partition("[")[2].split()[0]
    await agent("fill", selector=handle, value="ada@example.com")
    await agent("fill", selector="Password", value="{{password}}")
    await agent("select", selector="Country", value="Norway")
    await agent("get_form")
    await agent.try_("click", selector="#nope", timeout=50)
    await agent("submit")
    await agent("extract_text", selector="h1")


async def test_a_script_replays_the_same(chromium: Chromium, web: Web, tmp_path: Path, agent_of) -> None:
    options: dict[str, Any] = {"chromium": chromium, "secrets": {"password": "hunter22"}}
    before = len(web.requests)
    async with BrowserSession(**options) as session:
        await _record(agent_of(session), web)
        path = session.script().save(tmp_path / "signup.json")
    assert "hunter22" not in path.read_text()
    steps = json.loads(path.read_bytes())["steps"]
    assert (steps[2]["tool"], steps[2]["arguments"]["selector"], steps[2]["matched"]) == (
        "fill",
        "#email",
        "textbox 'Email address'",
    )
    assert steps[3]["arguments"]["value"] == "{{password}}"
    async with BrowserSession(**options) as session:
        played = await session.replay(Script.load(path))
    assert played.same, str(played)
    assert str(played) == "all 9 steps went as recorded"
    sent = [body for method, where, _, body in web.requests[before:] if (method, where) == ("POST", "/submitted")]
    assert len(sent) == 2
    assert sent[0] == sent[1]


async def test_a_replay_says_where_it_differs(
    chromium: Chromium, web: Web, tmp_path: Path, agent_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with BrowserSession(chromium=chromium, secrets={"password": "hunter22"}) as session:
        await _record(agent_of(session), web)
        script = session.script()
    monkeypatch.setattr(pages, "FORM", pages.FORM.replace("Email address", "E-mail").replace("Norway", "Norge"))
    async with BrowserSession(chromium=chromium, secrets={"password": "hunter22"}) as session:
        played = await session.replay(script)
        assert not played.same
        assert (played.played, played.differences[0].step, played.differences[0].what) == (3, 3, "the element")
        assert "\"textbox 'Email address'\", now it is \"textbox 'E-mail'\"" in str(played)
        everything = await session.replay(script, go_on=True)
    assert everything.played == 9
    assert {(difference.step, difference.what) for difference in everything.differences} >= {
        (3, "the element"),
        (5, "success"),
    }
    assert any(difference.what.startswith("data.forms[0]") for difference in everything.differences)


async def test_a_replay_asks_for_approval_and_knows_its_tools(session: BrowserSession) -> None:
    script = Script((Step("evaluate_javascript", {"script": "document.title = 'run'"}, url="about:blank"),))
    played = await session.replay(script)
    assert (played.same, played.results[0].error_code) == (False, "approval_required")
    assert (await session.replay(script, approve=lambda *_: True)).same
    assert (await session.replay(Script((Step("no_such_tool"),)))).results[0].error_code == "tool_not_found"


async def test_a_file_that_is_no_script(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("nonsense", "{}", '{"version": 9, "steps": []}', '{"version": 1, "steps": [{"what": 1}]}'):
        path.write_text(text)
        with pytest.raises(ToolValidationError, match=r"x\.json"):
            Script.load(path)
