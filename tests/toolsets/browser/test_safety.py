"""Address rules that nothing gets around, and secrets that are nowhere."""

from __future__ import annotations

import asyncio
import logging
import socket
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.waiting import until
from tests.toolsets.browser.conftest import Agent
from tests.toolsets.browser.pages import Web

from toolcrib import AddressRules
from toolcrib.toolsets.browser import BrowserSession, Chromium, Secret
from toolcrib.toolsets.browser.guard import GuardProxy

pytestmark = pytest.mark.asyncio(loop_scope="module")

Agents = Callable[[BrowserSession], Agent]


@pytest.fixture
def guarded(chromium: Chromium, web: Web, world: Web, tmp_path: Path) -> BrowserSession:
    web.other = f"http://localhost:{world.port}"
    rules = AddressRules(allow=(f"127.0.0.1:{web.port}",))
    return BrowserSession(chromium=chromium, addresses=rules, folder=tmp_path / "files", service_workers="allow")


async def test_goto_refuses_before_it_asks(guarded: BrowserSession, web: Web, world: Web, agent_of: Agents) -> None:
    async with guarded:
        agent = agent_of(guarded)
        assert (await agent("goto", url=web.url))["status"] == 200
        result = await agent.try_("goto", url=world.url)
        assert (result.error_code, result.metadata["retryable"]) == ("domain_denied", False)
        assert "not among the allowed addresses" in (result.error or "")
        assert (await agent.try_("new_tab", url=world.url)).error_code == "domain_denied"
        assert (await agent.try_("download_file", url=world.url)).error_code == "domain_denied"
        assert agent.session.page.url == f"{web.url}/"
    assert world.requests == []


async def test_redirects_stay_inside(guarded: BrowserSession, web: Web, world: Web, agent_of: Agents) -> None:
    async with guarded:
        agent = agent_of(guarded)
        for tool in ("goto", "download_file"):
            result = await agent.try_(tool, url=f"{web.url}/redirect?to={world.url}/stolen?how={tool}")
            assert result.error_code == "domain_denied", tool
        await agent("goto", url=f"{web.url}/redirect?to=/pricing")
    assert world.requests == []


@pytest.mark.parametrize("way", ["click", "redirect", "form"])
async def test_a_click_stays_inside(guarded: BrowserSession, web: Web, world: Web, agent_of: Agents, way: str) -> None:
    async with guarded:
        agent = agent_of(guarded)
        await agent("goto", url=f"{web.url}/escape")
        result = await agent.try_("click", selector=f"Leave by {way}")
        assert result.error_code == "domain_denied"
        assert "localhost" in (result.error or "")
        assert (await agent("back"))["url"] == f"{web.url}/escape"
    assert world.requests == []


async def test_no_page_gets_out_by_any_means(guarded: BrowserSession, web: Web, world: Web, agent_of: Agents) -> None:
    ways = {
        "image", "script", "style", "frame", "frameredirect", "fetch", "fetchredirect", "xhr", "worker", "popup",
        "serviceworker",
    }  # fmt: skip
    tried = {"fetch", "redirect", "xhr", "websocket", "eventsource", "worker", "sw"}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        web.udp = udp.getsockname()[1]
        async with guarded:
            agent = agent_of(guarded)
            await agent.try_("goto", url=f"{web.url}/escape")

            async def all_tried() -> bool:
                return tried <= set(await agent.js("window.escaped ?? []"))

            await until(all_tried)

            def refused() -> set[str]:
                events = [event for event in guarded.happenings if event["kind"] == "refused"]
                return {event["url"].rpartition("how=")[2] for event in events}

            await until(lambda: ways <= refused())
        with pytest.raises(BlockingIOError):
            udp.recv(100)
    assert world.requests == []


async def test_without_rules_the_same_page_does_get_out(
    chromium: Chromium, web: Web, world: Web, agent_of: Agents
) -> None:
    web.other = f"http://localhost:{world.port}"
    out = {
        "image", "script", "frame", "frameredirect", "fetchredirect", "websocket", "worker", "popup", "beacon",
    }  # fmt: skip

    def ways() -> set[str]:
        return {path.rpartition("how=")[2] for path in world.paths()}

    async with BrowserSession(chromium=chromium) as session:
        agent = agent_of(session)
        await agent.try_("goto", url=f"{web.url}/escape")
        await until(lambda: out <= ways())

        async def has_asked_for_a_service_worker() -> bool:
            return "sw" in await agent.js("window.escaped ?? []")

        await until(has_asked_for_a_service_worker)
    assert "serviceworker" not in ways()


async def test_a_name_that_resolves_into_a_denied_network(chromium: Chromium, world: Web, agent_of: Agents) -> None:
    async with BrowserSession(chromium=chromium, addresses=AddressRules(deny=("127.0.0.0/8", "::1/128"))) as session:
        result = await agent_of(session).try_("goto", url=f"http://localhost:{world.port}/")
    assert result.error_code == "domain_denied"
    assert world.requests == []


async def test_a_connection_through_the_guard_is_for_one_request() -> None:
    """A server that keeps its connections open must not be sent what is meant for another."""
    heads: list[bytes] = []
    hung_up = asyncio.Event()

    async def stubborn(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                heads.append(head)
                writer.write(
                    b"HTTP/1.1 100 Continue\r\n\r\n"
                    b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok"
                )
                await writer.drain()
        writer.close()
        hung_up.set()

    server = await asyncio.start_server(stubborn, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    guard = GuardProxy(AddressRules(allow=("127.0.0.1",)), lambda *_: None)
    await guard.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", int(guard.address.rpartition(":")[2]))
    writer.write(f"GET http://127.0.0.1:{port}/a?b=c HTTP/1.1\r\nHost: 127.0.0.1\r\nKeep-Alive: 300\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\nok"), 60)
    assert heads == [b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"]
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert b"Connection: close" in answer
    assert b"keep-alive" not in answer
    writer.close()
    await guard.close()
    await asyncio.wait_for(hung_up.wait(), 60)
    server.close()


async def test_a_hostile_page(session: BrowserSession, agent: Agent, web: Web) -> None:
    session.tabs.limit = 5
    await agent("goto", url=f"{web.url}/hostile")
    await agent("wait_for_text", text="geo:denied")
    await agent("wait_for_text", text="mic:denied")

    def kinds() -> list[str]:
        return [event["kind"] for event in session.happenings]

    await until(lambda: "tab_refused" in kinds() and kinds().count("dialog") >= 2)
    assert len(session.tabs) <= 5
    assert "granted" not in await agent.text("#perm")
    assert (await agent("click", selector="Pricing"))["navigated"] is True
    assert (await agent("goto", url=web.url))["title"] == "Toolworks"


async def test_secrets_are_typed_and_nowhere_else(
    chromium: Chromium, web: Web, tmp_path: Path, agent_of: Agents, caplog: pytest.LogCaptureFixture
) -> None:
    password = 'pä"ss & w<ord/1'
    caplog.set_level(logging.DEBUG)
    session = BrowserSession(chromium=chromium, secrets={"password": password}, folder=tmp_path / "files", trace=True)
    async with session:
        agent = agent_of(session)
        await agent("goto", url=f"{web.url}/login")
        told = [
            await agent.try_("fill", selector="Password", value="{{password}}"),
            await agent.try_("type", selector="User", text="ada {{ password }}"),
            await agent.try_("get_form"),
            await agent.try_("get_element_info", selector="#pw"),
            await agent.try_(
                "extract_structured", schema={"type": "object", "properties": {"password": {"type": "string"}}}
            ),
            await agent.try_("evaluate_javascript", script="document.querySelector('#pw').value"),
            await agent.try_("snapshot"),
        ]
        assert await agent.js("document.querySelector('#pw').value") == password
        assert await agent.js("getComputedStyle(document.querySelector('#pw')).webkitTextSecurity") == "disc"
        told.append(await agent.try_("submit"))
        told += [
            await agent.try_(name)
            for name in ("extract_text", "get_page_content", "network_requests", "debug", "console_messages")
        ]
        told.append(await agent.try_("goto", url=f"{web.url}/search?q={password}"))
        told.append(await agent.try_("click", selector=f"a button called {password}", timeout=50))
        script = session.script().save(tmp_path / "script.json")
    assert web.requests[-1][1] != ""
    sent = next(body for method, path, _, body in web.requests if (method, path) == ("POST", "/login"))
    assert b"ss+%26+w" in sent
    forms = [password, "pä&quot;ss", "ss &amp; w", "ss%20%26%20w", "ss+%26+w", "ss & w<ord", "ss & w\\u003cord"]
    texts = [repr(result) for result in told] + [script.read_text(), caplog.text]
    for form in forms:
        assert not [text for text in texts if form in text], form
    assert "{{password}}" in repr(told[5])
    with zipfile.ZipFile(tmp_path / "files" / "trace-default.zip") as trace:
        entries = {name: trace.read(name) for name in trace.namelist()}
    assert entries
    for form in forms:
        assert not [name for name, data in entries.items() if form.encode() in data], form
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"trace-default.zip"}


async def test_a_secret_goes_only_to_its_domains(chromium: Chromium, web: Web, agent_of: Agents) -> None:
    secrets = {
        "token": Secret("tok-987", domains=("bank.example",)),
        "local": Secret("loc-987", domains=("127.0.0.1",)),
    }
    async with BrowserSession(chromium=chromium, secrets=secrets) as session:
        agent = agent_of(session)
        await agent("goto", url=f"{web.url}/login")
        result = await agent.try_("fill", selector="User", value="{{token}}")
        assert result.error_code == "secret_denied"
        assert (await agent.try_("set_headers", headers={"X-Token": "{{local}}"})).error_code == "secret_denied"
        assert (await agent.try_("set_cookie", name="t", value="{{token}}")).error_code == "secret_denied"
        assert (await agent.try_("fill", selector="User", value="{{unknown}}")).error_code == "missing_config"
        assert await agent.js("document.querySelector('input').value") == ""
        await agent("fill", selector="User", value="{{local}}")
        assert await agent.js("document.querySelector('input').value") == "loc-987"


async def test_without_secrets_braces_are_text(agent: Agent, web: Web) -> None:
    await agent("goto", url=f"{web.url}/login")
    assert (await agent("fill", selector="User", value="{{name}}"))["after"] == "{{name}}"
