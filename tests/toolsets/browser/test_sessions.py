"""Sessions: started, side by side, crashed, recorded, gone."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.waiting import until
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web
from tests.toolsets.browser.processes import alive, descendants, none_left

from toolcrib import AddressRules, MissingDependencyError, SettingsError
from toolcrib.core.addresses import fence
from toolcrib.toolsets.browser import (
    BrowserError,
    BrowserSession,
    BrowserSessions,
    Chromium,
    find_chromium,
    standalone_tool,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

Agents = Callable[[BrowserSession], Agent]


async def test_chromium_is_found(monkeypatch: pytest.MonkeyPatch, chromium_path: str, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOLCRIB_CHROMIUM", chromium_path)
    assert find_chromium() == chromium_path
    assert find_chromium("/bin/sh") == "/bin/sh"
    monkeypatch.delenv("TOOLCRIB_CHROMIUM")
    own = tmp_path / "chrome"
    own.touch()
    assert find_chromium(own=str(own)) == str(own)
    with pytest.raises(MissingDependencyError, match="apt install chromium"):
        find_chromium("/no/such/browser")
    monkeypatch.setattr(shutil, "which", lambda _: None)  # this machine has one
    with pytest.raises(MissingDependencyError):
        find_chromium()


async def test_what_a_page_does_without_end_is_cut_off(session: BrowserSession, agent: Agent) -> None:
    for number in range(2000):
        session.note("refused", url=f"https://{number}.example", reason="no")
    result = await agent.try_("list_tabs")
    assert len(result.metadata["happened"]) == 20
    assert result.metadata["happened_more"] == 480
    assert "happened" not in (await agent.try_("list_tabs")).metadata


async def test_a_name_that_could_be_a_path_is_refused() -> None:
    with pytest.raises(SettingsError, match="session name"):
        BrowserSession(name="../x")


async def test_a_browser_that_does_not_start(agent_of: Agents, tmp_path: Path) -> None:
    before = descendants()
    session = BrowserSession(chromium="/bin/false", addresses=AddressRules(allow=("127.0.0.1",)))
    result = await agent_of(session).try_("goto", url="http://127.0.0.1/")
    assert result.error_code == "browser_failed"
    assert "'/bin/false' did not start" in (result.error or "")
    await session.close()
    assert await none_left(before) == {}
    missing = await agent_of(BrowserSession(chromium="/no/such/browser")).try_("list_tabs")
    assert missing.error_code == "missing_dependency"


async def test_without_playwright_the_result_says_what_to_install(
    agent_of: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    result = await agent_of(BrowserSession()).try_("list_tabs")
    assert result.error_code == "missing_dependency"
    assert "pip install '.[browser]'" in (result.error or "")


async def test_a_session_starts_by_itself_and_leaves_nothing(chromium_path: str, web: Web, agent_of: Agents) -> None:
    before = descendants()
    session = BrowserSession(chromium=chromium_path)
    agent = agent_of(session)
    assert not session.files.exists()
    assert (await agent("goto", url=web.url))["title"] == "Toolworks"
    assert session.files.is_dir()
    assert descendants(beyond=before)
    await session.close()
    assert not session.files.exists()
    assert await none_left(before) == {}
    result = await agent.try_("goto", url=web.url)
    assert "closed" in (result.error or "")
    await session.close()


async def test_sessions_side_by_side_share_nothing(chromium_path: str, web: Web, agent_of: Agents) -> None:
    async with BrowserSessions(chromium_path) as sessions:
        ada, bob = await sessions.open("ada"), await sessions.open("bob")
        assert await sessions.open("ada") is ada
        assert list(sessions) == ["ada", "bob"]
        for session in (ada, bob):
            await agent_of(session)("goto", url=web.url)
            await agent_of(session)("set_cookie", name="who", value=session.name)
        assert [await session.page.evaluate("document.cookie") for session in (ada, bob)] == ["who=ada", "who=bob"]
        async with ada.isolated("third") as third:
            await agent_of(third)("goto", url=web.url)
            assert await third.page.evaluate("document.cookie") == ""
        await sessions.close("bob")
        with pytest.raises(BrowserError, match="ada"):
            sessions.get("bob")
        assert (await agent_of(ada)("refresh"))["status"] == 200


async def test_a_session_that_is_kept_for_long_remembers_the_last_calls_alone(
    chromium: Chromium, agent_of: Agents
) -> None:
    async with BrowserSession(chromium=chromium, max_steps=3) as session:
        agent = agent_of(session)
        for number in range(5):
            told = await agent.try_("goto", url=f"data:text/html,<script>alert({number})</script>")
            assert [event["message"] for event in told.metadata["happened"]] == [str(number)]
        assert len(session.steps) == 3 and len(session.happenings) == 3


@pytest.mark.timeout(400)
async def test_many_sessions_leave_no_process(chromium_path: str, web: Web, agent_of: Agents) -> None:
    before = descendants()
    async with BrowserSessions(chromium_path) as sessions:
        for batch in range(2):
            opened = await asyncio.gather(*(sessions.open(f"s{batch}-{n}") for n in range(9)))
            assert (await agent_of(opened[0])("goto", url=f"{web.url}/docs"))["title"] == "Docs"
            await asyncio.gather(*(sessions.close(session.name) for session in opened))
    for _ in range(2):
        async with BrowserSession(chromium=chromium_path) as session:
            assert session.page.url == "about:blank"
    assert await none_left(before) == {}


def kill_browser(before: dict[int, str]) -> None:
    browser = min(
        pid
        for pid, command in descendants(beyond=before).items()
        if "--remote-debugging-pipe" in command and "--type=" not in command
    )
    os.kill(browser, signal.SIGKILL)


async def test_a_crashed_browser_is_told_of_and_replaced(chromium_path: str, web: Web, agent_of: Agents) -> None:
    before = descendants()
    async with BrowserSession(chromium=chromium_path) as session:
        agent = agent_of(session)
        await agent("goto", url=web.url)
        kill_browser(before)
        connection = session.context.browser
        assert connection is not None
        await until(lambda: not connection.is_connected())
        result = await agent.try_("click", selector="Count")
        assert (result.error_code, result.metadata["retryable"]) == ("browser_crashed", True)
        assert (await agent("goto", url=web.url))["title"] == "Toolworks"
        assert (await agent("click", selector="Count"))["clicked"] == "button 'Count'"
    assert await none_left(before) == {}


async def test_a_browser_that_dies_during_a_call(chromium_path: str, web: Web, agent_of: Agents) -> None:
    before = descendants()
    session = BrowserSession(chromium=chromium_path)
    agent = agent_of(session)
    await agent("goto", url=web.url)
    call = asyncio.create_task(agent.try_("goto", url=f"{web.url}/slow?ms=60000&until=death"))
    await until(lambda: "/slow?ms=60000&until=death" in web.paths())
    kill_browser(before)
    result = await call
    assert result.error_code == "browser_crashed"
    await session.close()
    assert await none_left(before) == {}


async def test_nothing_survives_a_program_that_is_killed(chromium_path: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from toolcrib.toolsets.browser import BrowserSession\n"
        "async def main():\n"
        f"    async with BrowserSession(chromium={chromium_path!r}):\n"
        "        print('ready', flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"ready\n"
    started = descendants(child.pid)
    assert len(started) > 3
    child.kill()
    await child.wait()
    await until(lambda: not any(map(alive, started)))


async def test_a_crashed_tab_is_told_of_and_replaced(session: BrowserSession, agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    crashing = await agent.try_("goto", url="data:text/html,<p>calm</p>")
    assert crashing.success
    devtools = await session.context.new_cdp_session(session.page)
    gone = asyncio.ensure_future(devtools.send("Page.crash"))
    await until(lambda: session.tab.crashed)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    result = await agent.try_("extract_text")
    assert result.error_code == "browser_crashed"
    assert (await agent("goto", url=web.url))["title"] == "Toolworks"


async def test_deadlines_are_kept_and_the_session_goes_on(session: BrowserSession, agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    slow = agent.registry.get("goto")
    agent.registry.update("goto", slow.with_spec(slow.spec.with_changes(timeout_seconds=0.3)))
    result = await agent.try_("goto", url=f"{web.url}/slow?ms=60000")
    assert result.error_code == "timeout"
    assert session.steps[-1].error_code == "timeout"
    assert "Welcome to Toolworks" in (await agent("extract_text"))["text"]


async def test_a_page_that_never_comes_is_given_up(session: BrowserSession, agent: Agent, web: Web) -> None:
    await agent("goto", url=web.url)
    result = await agent.try_("goto", url=f"{web.url}/slow?ms=60000", timeout=500)
    assert result.error_code == "timeout"
    assert "Welcome to Toolworks" in (await agent("extract_text"))["text"]
    result = await agent.try_("goto", url=f"{web.url}/slow?ms=60000", timeout=500)
    assert (await agent("goto", url=f"{web.url}/docs"))["title"] == "Docs"


async def test_trace_and_video(chromium: Chromium, web: Web, tmp_path: Path, agent_of: Agents) -> None:
    async with BrowserSession(name="film", chromium=chromium, folder=tmp_path, trace=True, video=True) as session:
        agent = agent_of(session)
        await agent("goto", url=web.url)
        await agent("click", selector="Count")
        await until(session.films["t1"].close)
    with zipfile.ZipFile(tmp_path / "trace-film.zip") as trace:
        assert any(name.endswith(".trace") for name in trace.namelist())
    film = (tmp_path / "video-film-t1.avi").read_bytes()
    assert (film[:4], film[8:12]) == (b"RIFF", b"AVI ")
    assert struct.unpack("<I", film[4:8])[0] == len(film) - 8
    frames = struct.unpack("<I", film[48:52])[0]
    assert frames == film.count(b"\xff\xd8\xff") >= 1


async def test_a_tool_alone_opens_its_own_browser(chromium_path: str, web: Web) -> None:
    before = descendants()
    goto = standalone_tool("goto", chromium=chromium_path)
    assert goto.spec.binding.python == "goto"
    result = await goto.execute({"url": f"{web.url}/docs"})
    assert result.data["title"] == "Docs"
    read = await standalone_tool("extract_text", start_url=f"{web.url}/docs", chromium=chromium_path).execute({})
    assert "Docs page" in read.data["text"]
    failed = await standalone_tool("extract_text", start_url="file:///etc/passwd", chromium=chromium_path).execute({})
    assert failed.error_code == "domain_denied"
    with fence(AddressRules(public_only=True)):
        assert (await goto.execute({"url": web.url})).error_code == "domain_denied"
    assert await none_left(before) == {}
